"""Whether a wave is good, by counts of its own members; only exact counts are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal

from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import WaveStatus
from schemas.records.shares import share_of
from schemas.reports.reports import ORPHANED, Cell, ExceptionSample
from schemas.reports.states import MAINTAINED, NEVER_JOINED

_FAILED_STATES = ("failing", "frozen")
_NO_MEMBERS = (NEVER_JOINED, "leaving", MAINTAINED)


@dataclass(frozen=True, slots=True)
class WaveTally:
    """What is counted of the members of a wave: who never joined, or is in maintenance, is none."""

    members: int = 0
    healthy: int = 0
    synced: int = 0
    failing: int = 0
    waiting: int = 0
    unreachable: int = 0

    @property
    def reachable(self) -> int:
        return self.members - self.unreachable


def is_outrun(exceptions: Iterable[ExceptionSample]) -> bool:
    """Whether somebody holds something newer than this centre knows, as after a restore.

    Nothing is opened, aborted or undone over it: a person decides which one counts.
    """
    return any(it.reason.partition(":")[0] == ORPHANED for it in exceptions)


def tally(cells: Mapping[str, int], gate: str, of: str) -> WaveTally:
    """Count the members of a gate; what fails is what does not become `of` by itself."""
    members = healthy = synced = failing = waiting = unreachable = 0
    for text, count in cells.items():
        cell = Cell.parse(text)
        if cell is None or cell.gate != gate or cell.state in _NO_MEMBERS:
            continue
        members += count
        is_synced = cell.state == "synced"
        synced += count * is_synced
        healthy += count * (is_synced and cell.health == "healthy")
        waiting += count * (cell.state == "waiting")
        unreachable += count * (cell.state == "unreachable")
        broken = of == "healthy" and is_synced and cell.health == "degraded"
        failing += count * (cell.state in _FAILED_STATES or broken)
    return WaveTally(members, healthy, synced, failing, waiting, unreachable)


def tallied(wave: WaveStatus) -> WaveTally:
    """What was counted of a wave, as it shows it."""
    return WaveTally(*(getattr(wave, each.name) or 0 for each in fields(WaveTally)))


def failure(spec: RolloutSpec, found: WaveTally) -> str:
    """Why the wave failed; "" if it did not."""
    maximum = spec.failures.maximum
    limit = share_of(maximum) * found.members if isinstance(maximum, str) else Decimal(maximum)
    if found.failing < spec.failures.at_least or found.failing <= limit:
        return ""
    return f"{found.failing} of {found.members} fail, at most {maximum} may"


def shortfall(spec: RolloutSpec, found: WaveTally) -> str:
    """What the wave lacks to be good; "" if it is. A wave of nobody is good."""
    if found.members == 0:
        return ""
    offline = share_of(spec.offline.maximum) * found.members
    # Who cannot be heard proves nothing, however many may be away.
    if found.unreachable > offline or found.reachable == 0:
        most = spec.offline.maximum
        return f"{found.unreachable} of {found.members} are unreachable, at most {most} may be"
    of = spec.success.of
    good = found.healthy if of == "healthy" else found.synced
    if good < share_of(spec.success.minimum) * found.reachable:
        waiting = f", {found.waiting} wait for their window or another placement"
        said = f"{good} of {found.reachable} are {of}, {spec.success.minimum} must be"
        return said + (waiting if found.waiting else "")
    return ""
