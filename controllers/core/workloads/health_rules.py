"""The HealthRules of a workload description space: how well objects of a kind count at edges.

One that becomes invalid counts as it was last: a slip lets no wave go on. One that says too much in
all is refused where it is written; one that is there counts, as it may be from before that bound.
The first by name counts if there are several for one kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from controllers.core.workloads.read_objects import ReadObjects
from relay.objects.health_rules import field_faults, length_faults
from schemas.api.health_rule import HealthRule
from schemas.api.parsing import parse_wish
from schemas.objects.objects import GroupResource, Object, ObjectKey
from schemas.records.health_rules import HEALTH_PROGRAMS_MAX, HealthProgram
from schemas.values.faults import InvalidObject
from schemas.values.groups import DENATURED_GROUP

HEALTH_RULES = (DENATURED_GROUP, "healthrules")


class HealthRules(ReadObjects[HealthProgram, GroupResource]):
    """What rules there are; each change returns the kinds of objects that it touches."""

    def of(self, keys: Iterable[ObjectKey]) -> tuple[HealthProgram, ...]:
        """The rules of these objects' kinds, one of each; of very many the first."""
        if not self.values:
            return ()
        counting = self._counting()
        kinds = sorted({key.group_resource for key in keys} & counting.keys())
        return tuple(counting[kind] for kind in kinds[:HEALTH_PROGRAMS_MAX])

    def warnings(self, name: str, _served: AbstractSet[GroupResource] | None) -> tuple[str, ...]:
        """What is to be known of one that is valid."""
        own = self.values.get(name)
        if own is None:
            return ()
        said = [str(fault) for fault in length_faults(own)]
        first = self._counting()[_kind(own)]
        if first.name != name:
            said.append(f"the HealthRule {first.name} is of the same kind, and counts in its place")
        return tuple(said)

    def _read(self, name: str, obj: Object) -> HealthProgram:
        parsed = parse_wish(obj)
        assert isinstance(parsed, HealthRule)
        if faults := field_faults(parsed.program):
            raise InvalidObject("HealthRule", name, faults)
        return parsed.program

    def _unreadable(self, name: str, _obj: Object) -> HealthProgram | None:
        return self.values.get(name)

    def _touched(
        self, _name: str, before: HealthProgram | None, after: HealthProgram | None
    ) -> frozenset[GroupResource]:
        return frozenset(_kind(each) for each in (before, after) if each is not None)

    def _counting(self) -> dict[GroupResource, HealthProgram]:
        last_first = sorted(self.values.items(), reverse=True)
        return {_kind(program): program for _, program in last_first}


def _kind(program: HealthProgram) -> GroupResource:
    return program.group, program.resource
