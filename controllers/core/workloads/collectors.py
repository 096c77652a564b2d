"""The StatusCollectors of a workload description space, as placements name them.

One that is invalid counts as one that is not there; creating or correcting it fills in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from controllers.core.workloads.read_objects import ReadObjects
from relay.objects.expressions.programs import program_faults
from schemas.api.collectors import StatusCollector
from schemas.api.parsing import parse_wish
from schemas.api.placement import EdgePlacementSpec
from schemas.api.policy import BindingPolicySpec
from schemas.objects.objects import Object, ObjectKey
from schemas.reports.collectors import WHOLE, Program
from schemas.values.faults import InvalidObject
from schemas.values.wire import encode

COLLECTED_VALUES_MAX = 100_000
"""Expressions of all collectors of one placement, filters included, times their objects."""
COLLECTED_TEXT_MAX_BYTES = 256 * 1024
"""All collectors of one placement share it: a node compiles them to a hundred times as much."""
COLLECTED_NAMES_MAX_BYTES = 5 * 1024 * 1024
"""The names of the objects over which they are travel in one blob."""
MERGED_NAMES_MAX_BYTES = 9 * 1024 * 1024
"""The names of objects whose copies' statuses are merged travel in the same blob."""
_FEW = 2_500
"""So many objects find room in any case."""
_OF_NAME_BYTES = 32
COLLECTORS = ("control.kubestellar.io", "statuscollectors")
COMBINED = ("control.kubestellar.io", "combinedstatuses")


def names_too_much(merged: Collection[ObjectKey]) -> str:
    """Why no status of all copies is merged of these objects; "" if it is."""
    if len(merged) <= _FEW or (size := bytes_of_names(merged)) <= MERGED_NAMES_MAX_BYTES:
        return ""
    return (
        f"no status is merged: the names of {len(merged)} objects have {size} bytes, at most "
        f"{MERGED_NAMES_MAX_BYTES} are allowed; use several placements"
    )


class _Budget:
    """What the collectors of one placement may still say, over objects and in text."""

    def __init__(self) -> None:
        self._values = COLLECTED_VALUES_MAX
        self._text = COLLECTED_TEXT_MAX_BYTES
        self._named = set[ObjectKey]()
        self._names = 0

    def take(self, program: Program, keys: Collection[ObjectKey]) -> str:
        """Take what a collector needs; "" if it finds room, else why it does not."""
        columns = len(program.group_by) + len(program.combined) + len(program.select) + 1
        values, text = columns * len(keys), len(encode(program))
        if values > self._values:
            return (
                f"{columns} expressions over {len(keys)} objects, and of {COLLECTED_VALUES_MAX} "
                f"for a placement {self._values} are left; select fewer objects with it, collect "
                "fewer columns, or use several placements"
            )
        if text > self._text:
            return (
                f"it has {text} bytes, and of {COLLECTED_TEXT_MAX_BYTES} for a placement "
                f"{self._text} are left; write less, or use several placements"
            )
        news = {key for key in keys if key not in self._named}
        names = self._names_with(news)
        if names > COLLECTED_NAMES_MAX_BYTES:
            return (
                f"with its {len(keys)} objects the names of all have {names} bytes, at most "
                f"{COLLECTED_NAMES_MAX_BYTES} are allowed for a placement; select fewer objects "
                "with it, or use several placements"
            )
        self._values, self._text, self._names = self._values - values, self._text - text, names
        self._named |= news
        return ""

    def _names_with(self, news: Collection[ObjectKey]) -> int:
        """How many bytes all names have with these; 0 while there are few, which find room."""
        if len(self._named) + len(news) <= _FEW:
            return 0
        return (self._names or bytes_of_names(self._named)) + bytes_of_names(news)


def bytes_of_names(keys: Iterable[ObjectKey]) -> int:
    """How many bytes it takes to name these where it is said what is collected of each."""
    return sum(len(str(key).encode(errors="replace")) + _OF_NAME_BYTES for key in keys)


class Collectors(ReadObjects[Program, str]):
    """What collectors there are, and who names them."""

    def __init__(self) -> None:
        super().__init__()
        self._naming: dict[str, frozenset[str]] = {}
        # Those of them that are named of what comes up, and need a source.
        self._of_upsync: dict[str, frozenset[str]] = {}

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
        return None if named is None else tuple(sorted(named - self.values.keys()))

    def sourceless(self, name: str) -> tuple[str, ...]:
        """The collectors that a placement names of what comes up, and that are not over such."""
        of_upsync = self._of_upsync.get(name, frozenset()) & self.values.keys()
        return tuple(sorted(each for each in of_upsync if self.values[each].source is None))

    def of(
        self, name: str, named: Mapping[ObjectKey, Iterable[str]]
    ) -> dict[ObjectKey, tuple[Program, ...]]:
        """The programs that are there of those that each object has, by object.

        WHOLE has those that are over what comes up, wherever the placement `name` names them.
        """
        found = {
            key: tuple(
                self.values[each]
                for each in sorted(names)
                if each in self.values and self.values[each].source is None
            )
            for key, names in named.items()
        }
        whole = (self.values.get(each) for each in sorted(self._naming.get(name, ())))
        found[WHOLE] = tuple(it for it in whole if it is not None and it.source is not None)
        return {key: programs for key, programs in found.items() if programs}

    @staticmethod
    def within_budget(
        found: Mapping[ObjectKey, tuple[Program, ...]],
    ) -> tuple[dict[ObjectKey, tuple[Program, ...]], tuple[str, ...]]:
        """What a placement may collect of this, in the order of the collectors' names.

        And of each collector that finds no room why, and what to do.
        """
        objects: dict[Program, list[ObjectKey]] = defaultdict(list)
        for key, programs in found.items():
            for program in programs:
                objects[program].append(key)
        budget, over = _Budget(), dict[Program, str]()
        for program, keys in sorted(objects.items(), key=lambda item: item[0].name):
            if why := budget.take(program, keys):
                over[program] = f"StatusCollector {program.name} is left out: {why}"
        if not over:
            return dict(found), ()
        kept = {key: tuple(it for it in each if it not in over) for key, each in found.items()}
        return {key: each for key, each in kept.items() if each}, tuple(over.values())

    def _read(self, name: str, obj: Object) -> Program:
        parsed = parse_wish(obj)
        assert isinstance(parsed, StatusCollector)
        if faults := program_faults(parsed.program):
            raise InvalidObject("StatusCollector", name, faults)
        return parsed.program

    def _touched(
        self, name: str, _before: Program | None, _after: Program | None
    ) -> frozenset[str]:
        """The placements that name it."""
        return frozenset(who for who, named in self._naming.items() if name in named)
