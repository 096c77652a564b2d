"""Who runs what: a node's own word on its release, and counts of it over a subtree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.value import Value
from schemas.values.wire import Meta, Natural, WireRecord

COUNTS_MAX = 64
FAULTS_MAX = 8
WORD_MAX_CHARACTERS = 64
WHY_MAX_CHARACTERS = 300
OTHER = "other"

_Word = Annotated[str, Meta(max_length=WORD_MAX_CHARACTERS)]


class ReleaseState(StrEnum):
    """What becomes of a release at a node."""

    # No launcher runs it: an image or a package manager says what it runs.
    ELSEWHERE = "managed-elsewhere"
    # Its owner named no publisher: nothing is installed through the tree.
    UNPINNED = "pins-no-publisher"
    # Nothing is wanted of it.
    IDLE = "idle"
    # It may not begin at this hour.
    WINDOW = "waits-for-window"
    FETCHING = "fetching"
    # What its launcher says.
    INSTALLING = "installing"
    STARTING = "starting"
    SOAKING = "soaking"
    HEALTHY = "healthy"
    ROLLED_BACK = "rolled-back"
    REFUSED = "refused"


FAILED = frozenset({ReleaseState.ROLLED_BACK, ReleaseState.REFUSED})
UNMANAGED = frozenset({ReleaseState.ELSEWHERE, ReleaseState.UNPINNED})
SETTLED = FAILED | UNMANAGED | {ReleaseState.HEALTHY}
"""Who is in one of these has nothing to do, or does nothing by itself."""
NOT_BEGUN = UNMANAGED | {ReleaseState.IDLE, ReleaseState.WINDOW}
"""Who is in one of these says why only if it gets no placement before it is upgraded."""


class RunningCount(WireRecord, frozen=True):
    """So many nodes run this version, of which the tree wants that one."""

    version: _Word
    # Empty if nothing is wanted of them.
    wanted: _Word
    # The number of the wave in which it is wanted.
    wave: Natural
    state: _Word
    count: Natural


class RunningFault(WireRecord, frozen=True):
    """A node that could not take what was wanted, or gets nothing before it does."""

    path: str
    wanted: _Word
    state: _Word
    why: Annotated[str, Meta(max_length=WHY_MAX_CHARACTERS)]


class Running(Value, frozen=True):
    """Who runs what at and below a node."""

    counts: tuple[RunningCount, ...] = ()
    # Some of those that could not do what was wanted.
    faults: tuple[RunningFault, ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes it is about."""
        return sum(each.count for each in self.counts)

    def below(self, path: NodePath) -> Running:
        """The same without faults of nodes that do not hang there."""
        return Running(self.counts, tuple(it for it in self.faults if _hangs_at(path, it.path)))


def running_here(
    path: str, version: str, wanted: str, wave: int, state: str, why: str = ""
) -> Running:
    """What one node says of itself."""
    count = RunningCount(version[:WORD_MAX_CHARACTERS], wanted, wave, state, 1)
    is_told = state in FAILED or (why and state in NOT_BEGUN)
    fault = (RunningFault(path, wanted, state, why[:WHY_MAX_CHARACTERS]),) if is_told else ()
    return Running((count,), fault)


def _hangs_at(path: NodePath, said: str) -> bool:
    try:
        return path.holds(NodePath.parse(said))
    except BadIdentity:
        return False


def held_back(path: str, why: str) -> Running:
    """What a parent says in the place of a child that knows no releases, and gets nothing."""
    why = why[:WHY_MAX_CHARACTERS]
    return Running((), (RunningFault(path, "", ReleaseState.ELSEWHERE, why),))


def of_silent(said: Running) -> Running:
    """What counts of a child that is silent for long: nobody knows that others are under way."""
    return Running(
        tuple(
            each
            if each.state in SETTLED or not each.wanted
            else RunningCount(each.version, "", 0, OTHER, each.count)
            for each in said.counts
        ),
        said.faults,
    )


def merged(parts: Iterable[Running]) -> Running:
    """The sum of what several say: the same in whatever order they come."""
    numbers: Counter[tuple[str, str, int, str]] = Counter()
    faults: set[tuple[str, str, str, str]] = set()
    for part in parts:
        for each in part.counts:
            numbers[each.version, each.wanted, each.wave, each.state] += each.count
        faults.update((it.path, it.wanted, it.state, it.why) for it in part.faults)
    ranked = sorted(numbers.items(), key=lambda item: (item[0][0] == OTHER, -item[1], item[0]))
    kept = dict(ranked if len(ranked) <= COUNTS_MAX else ranked[: COUNTS_MAX - 1])
    if rest := numbers.total() - sum(kept.values()):
        unnamed = (OTHER, "", 0, OTHER)
        kept[unnamed] = kept.get(unnamed, 0) + rest
    counts = tuple(RunningCount(*key, count) for key, count in sorted(kept.items()))
    return Running(counts, tuple(RunningFault(*it) for it in sorted(faults)[:FAULTS_MAX]))
