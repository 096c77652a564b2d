"""The HealthRules of a workload description space: how well objects of a kind count at edges.

One that becomes invalid counts as it was last: a slip lets no wave go on. One that says too much in
all is refused where it is written; one that is there counts, as it may be from before that bound.
The first by name counts if there are several for one kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from relay.objects.health_rules import field_faults, length_faults
from schemas.api import DENATURED_GROUP, HealthRule, parse_wish
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HEALTH_PROGRAMS_MAX, HealthProgram
from schemas.values.faults import InvalidObject

HEALTH_RULES = (DENATURED_GROUP, "healthrules")

Object = Mapping[str, Any]
Kind = tuple[str, str]


class HealthRules:
    """What rules there are; each change returns the kinds of objects that it touches."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.invalid: dict[str, tuple[str, ...]] = {}
        self._programs: dict[str, HealthProgram] = {}

    def put(self, name: str, obj: Object) -> frozenset[Kind]:
        """Take the present state of one."""
        if obj["metadata"].get("deletionTimestamp"):
            return self.remove(name)
        was_there = self.objects.get(name)
        self.objects[name] = obj
        if was_there is not None and was_there.get("spec") == obj.get("spec"):
            return frozenset()
        self.invalid.pop(name, None)
        before = self._programs.get(name)
        try:
            parsed = parse_wish(obj)
            assert isinstance(parsed, HealthRule)
        except InvalidObject as error:
            self.invalid[name] = tuple(str(fault) for fault in error.faults)
            return frozenset()
        if faults := field_faults(parsed.program):
            self.invalid[name] = tuple(str(fault) for fault in faults)
            return frozenset()
        self._programs[name] = parsed.program
        if before == parsed.program:
            return frozenset()
        return frozenset(_kind(each) for each in (before, parsed.program) if each is not None)

    def remove(self, name: str) -> frozenset[Kind]:
        """Take it that one is gone."""
        self.objects.pop(name, None)
        self.invalid.pop(name, None)
        gone = self._programs.pop(name, None)
        return frozenset() if gone is None else frozenset({_kind(gone)})

    def of(self, keys: Iterable[ObjectKey]) -> tuple[HealthProgram, ...]:
        """The rules of these objects' kinds, one of each; of very many the first."""
        if not self._programs:
            return ()
        counting = self._counting()
        kinds = sorted({key.group_resource for key in keys} & counting.keys())
        return tuple(counting[kind] for kind in kinds[:HEALTH_PROGRAMS_MAX])

    def warnings(self, name: str) -> tuple[str, ...]:
        """What is to be known of one that is valid."""
        own = self._programs.get(name)
        if own is None:
            return ()
        said = [str(fault) for fault in length_faults(own)]
        first = self._counting()[_kind(own)]
        if first.name != name:
            said.append(f"the HealthRule {first.name} is of the same kind, and counts in its place")
        return tuple(said)

    def _counting(self) -> dict[Kind, HealthProgram]:
        last_first = sorted(self._programs.items(), reverse=True)
        return {_kind(program): program for _, program in last_first}


def _kind(program: HealthProgram) -> Kind:
    return program.group, program.resource
