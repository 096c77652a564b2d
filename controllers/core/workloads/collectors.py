"""The StatusCollectors of a workload description space, as placements name them.

One that is invalid counts as one that is not there; creating or correcting it fills in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from relay.objects.expressions.programs import program_faults
from schemas.api import BindingPolicySpec, EdgePlacementSpec, StatusCollector, parse_wish
from schemas.collectors import WHOLE, Program
from schemas.faults import InvalidObject
from schemas.objects import ObjectKey

COLLECTED_VALUES_MAX = 100_000
"""Of one placement: expressions of its collectors, filters included, times their objects."""
COLLECTORS = ("control.kubestellar.io", "statuscollectors")
COMBINED = ("control.kubestellar.io", "combinedstatuses")

Object = Mapping[str, Any]


class Collectors:
    """What collectors there are, and who names them."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}
        self.invalid: dict[str, tuple[str, ...]] = {}
        self.objects: dict[str, Object] = {}
        self._naming: dict[str, frozenset[str]] = {}
        # Those of them that are named of what comes up, and need a source.
        self._of_upsync: dict[str, frozenset[str]] = {}

    def put(self, name: str, obj: Object) -> frozenset[str]:
        """Learn what a collector says; the placements that name it, if that is another program.

        One that is terminating counts as gone.
        """
        if obj["metadata"].get("deletionTimestamp"):
            return self.remove(name)
        before, was_there = self.programs.get(name), self.objects.get(name)
        self.objects[name] = obj
        if was_there is not None and was_there.get("spec") == obj.get("spec"):
            return frozenset()
        self.programs.pop(name, None)
        self.invalid.pop(name, None)
        try:
            parsed = parse_wish(obj)
            assert isinstance(parsed, StatusCollector)
        except InvalidObject as error:
            self.invalid[name] = tuple(str(fault) for fault in error.faults)
        else:
            faults = program_faults(parsed.program)
            if faults:
                self.invalid[name] = tuple(str(fault) for fault in faults)
            else:
                self.programs[name] = parsed.program
        return frozenset() if before == self.programs.get(name) else self._who_names(name)

    def remove(self, name: str) -> frozenset[str]:
        """Learn that a collector is gone; the placements that name it."""
        self.objects.pop(name, None)
        self.invalid.pop(name, None)
        gone = self.programs.pop(name, None)
        return frozenset() if gone is None else self._who_names(name)

    def put_placement(self, name: str, spec: EdgePlacementSpec | BindingPolicySpec) -> None:
        """Learn which collectors a placement names."""
        self.remove_placement(name)
        upsync = spec.upsync if isinstance(spec, EdgePlacementSpec) else ()
        of_upsync = frozenset(each for item in upsync for each in item.status_collectors)
        named = frozenset(each for clause in spec.downsync for each in clause.status_collectors)
        if named or of_upsync:
            self._naming[name] = named | of_upsync
            self._of_upsync[name] = of_upsync

    def remove_placement(self, name: str) -> None:
        self._naming.pop(name, None)
        self._of_upsync.pop(name, None)

    def missing(self, name: str) -> tuple[str, ...] | None:
        """The collectors that a placement names and that are not there; None if it names none."""
        named = self._naming.get(name)
        return None if named is None else tuple(sorted(named - self.programs.keys()))

    def sourceless(self, name: str) -> tuple[str, ...]:
        """The collectors that a placement names of what comes up, and that are not over such."""
        of_upsync = self._of_upsync.get(name, frozenset()) & self.programs.keys()
        return tuple(sorted(each for each in of_upsync if self.programs[each].source is None))

    def of(
        self, name: str, named: Mapping[ObjectKey, Iterable[str]]
    ) -> dict[ObjectKey, tuple[Program, ...]]:
        """The programs that are there of those that each object has, by object.

        WHOLE has those that are over what comes up, wherever the placement `name` names them.
        """
        found = {
            key: tuple(
                self.programs[each]
                for each in sorted(names)
                if each in self.programs and self.programs[each].source is None
            )
            for key, names in named.items()
        }
        whole = (self.programs.get(each) for each in sorted(self._naming.get(name, ())))
        found[WHOLE] = tuple(it for it in whole if it is not None and it.source is not None)
        return {key: programs for key, programs in found.items() if programs}

    @staticmethod
    def within_budget(
        found: Mapping[ObjectKey, tuple[Program, ...]],
    ) -> tuple[dict[ObjectKey, tuple[Program, ...]], tuple[str, ...]]:
        """What a placement may collect of this, in the order of the collectors' names.

        And of each collector that finds no room why, and what to do.
        """
        objects = Counter(program for programs in found.values() for program in programs)
        room, over = COLLECTED_VALUES_MAX, dict[Program, str]()
        for program, count in sorted(objects.items(), key=lambda item: item[0].name):
            columns = len(program.group_by) + len(program.combined) + len(program.select) + 1
            if columns * count <= room:
                room -= columns * count
                continue
            over[program] = (
                f"StatusCollector {program.name} is left out: {columns} expressions over {count} "
                f"objects, and of {COLLECTED_VALUES_MAX} for a placement {room} are left; select "
                "fewer objects with it, collect fewer columns, or use several placements"
            )
        if not over:
            return dict(found), ()
        kept = {key: tuple(it for it in each if it not in over) for key, each in found.items()}
        return {key: each for key, each in kept.items() if each}, tuple(over.values())

    def _who_names(self, name: str) -> frozenset[str]:
        return frozenset(who for who, named in self._naming.items() if name in named)
