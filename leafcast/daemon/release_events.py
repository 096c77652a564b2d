"""What becomes of releases of Leafcast, as events: waves, ends, and who could not take them.

Nodes are counted, and some of them named, in the status of a LeafcastRelease. So what is told grows
with the causes, and not with the nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from leafcast.daemon.event_log import NORMAL, WARNING, EventLog
from leafcast.daemon.status_events import Status, StatusEvent, StatusStory, follow_statuses
from relay.ports import Clock
from relay.space_port import Interest, Space
from schemas.releases.release_phases import UNDER_WAY, has_ended
from schemas.reports.running import ReleaseState
from schemas.values.groups import RELEASES
from schemas.values.wording import many, some_of

CAUSES_MAX = 16
"""Of so many causes is told in one attempt of a release; its status goes on naming nodes."""
NAMED_MAX = 3
_TOLD = {
    "Waiting": (NORMAL, "ReleaseWaits"),
    "Paused": (WARNING, "ReleasePaused"),
    "Failed": (WARNING, "ReleaseFailed"),
    "Refused": (WARNING, "ReleaseRefused"),
    "Aborted": (WARNING, "ReleaseAborted"),
    "Complete": (NORMAL, "ReleaseComplete"),
}
"""Phases that are told, each as a kind and a reason."""
_AT_NODES = {
    ReleaseState.REFUSED.value: ("UpgradeRefused", "refused"),
    ReleaseState.ROLLED_BACK.value: ("UpgradeRolledBack", "taken back"),
}
_OUT = UNDER_WAY - {"Paused"}
_FIGURES = re.compile(r"\d+")
"""They are another at each node: so many MB are free, it ended with that code."""

_Cause = tuple[str, str]
"""The state of nodes, and why, without figures and without what helps."""


async def follow_releases(space: Space, events: EventLog, clock: Clock) -> None:
    """Tell of each LeafcastRelease of a space what happens from now on, and what is wrong now."""

    def story() -> StatusStory:
        return ReleaseStory().between

    interest = Interest(*RELEASES)
    await follow_statuses(space, interest, "leafcastrelease", story, events, clock)


class ReleaseStory:
    """What is told of one LeafcastRelease: each cause once in an attempt, whoever it befalls."""

    def __init__(self) -> None:
        self._told = set[_Cause]()
        # What nodes still say of the attempt before.
        self._former = set[_Cause]()

    def between(self, before: Status | None, status: Status) -> Iterator[StatusEvent]:
        """What happened between two statuses; at first what is wrong with one that has not ended.

        The centre itself may have been away as it came to be so.
        """
        told = [*self._between(before or {}, status)]
        if before is None:
            told = [it for it in told if it.kind == WARNING and not has_ended(status)]
        yield from told

    def _between(self, before: Status, status: Status) -> Iterator[StatusEvent]:
        yield from _steps(before, status)
        yield from self._at_nodes(before, status)
        phase, said = status.get("phase", ""), _summary(status)
        # It may wait, or be refused, for another reason than before.
        is_other = phase in ("Waiting", "Refused") and said != _summary(before)
        if phase in _TOLD and (phase != before.get("phase") or is_other):
            yield StatusEvent(*_TOLD[phase], said)

    def _at_nodes(self, before: Status, status: Status) -> Iterator[StatusEvent]:
        causes = _causes(status)
        if before and _attempt(status) != _attempt(before):
            self._told, self._former = set(), {*causes}
        self._former &= causes.keys()
        for cause, nodes in causes.items():
            if cause in self._told | self._former or len(self._told) == CAUSES_MAX:
                continue
            self._told.add(cause)
            (reason, did), (path, why) = _AT_NODES[cause[0]], nodes[0]
            names = ["the centre" if it == "/" else it for it, _ in nodes]
            said = f"{did} at {some_of(names, NAMED_MAX)}: {why}"
            if (total := _sum_of(status, "failed")) > len(nodes):
                said += f" ({total} nodes could not take it by now)"
            yield StatusEvent(WARNING, reason, said, path if len(nodes) == 1 else "/")


def _attempt(status: Status) -> int:
    return status.get("attempt") or 0


def _steps(before: Status, status: Status) -> Iterator[StatusEvent]:
    wave, attempt = status.get("waveName", ""), _attempt(status)
    was_out = before.get("phase") in _OUT or before.get("waveName")
    if status.get("phase") in _OUT and (not was_out or attempt != _attempt(before)):
        said = f"attempt {attempt} begins" if attempt else "it goes out"
        yield StatusEvent(NORMAL, "ReleaseBegan", said + (f' with wave "{wave}"' if wave else ""))
    elif wave and wave != before.get("waveName", ""):
        yield StatusEvent(NORMAL, "WaveBegan", f'it is at wave "{wave}"')


def _summary(status: Status) -> str:
    """What its status says, with how it went where it is through."""
    said = str(status.get("message", ""))
    if status.get("phase") != "Complete":
        return said
    words = {"failed": "could not take it", "elsewhere": "are upgraded otherwise"}
    words["unheard"] = "said nothing of it yet"
    counts = {name: _sum_of(status, name) for name in ("members", "healthy", *words)}
    parts = [f"{counts['healthy']} of {many(counts['members'], 'node')} healthy"]
    parts += [f"{counts[name]} {did}" for name, did in words.items() if counts[name]]
    return f"{said}: {', '.join(parts)}"


def _sum_of(status: Status, name: str) -> int:
    return sum(wave.get(name) or 0 for wave in status.get("waves") or ())


def _causes(status: Status) -> dict[_Cause, list[tuple[str, str]]]:
    """Of the nodes that are named as failed, where and why, by cause."""
    found: dict[_Cause, list[tuple[str, str]]] = {}
    for failure in status.get("failures") or ():
        path, _, rest = str(failure).partition(": ")
        state, _, why = rest.partition(": ")
        if state in _AT_NODES:
            cause = state, _FIGURES.sub("#", why.partition("; ")[0])
            found.setdefault(cause, []).append((path, why))
    return found
