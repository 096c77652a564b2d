"""What happened in a tree lately, as Kubernetes says its events: bounded, equal ones counted."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from relay.core.effects import Noted
from relay.ports import Clock, ResumeTooOld, Space, SpaceError
from schemas.api import GROUP
from schemas.identity import NodePath

EVENTS_MAX = 1_000
RETRY_SECONDS = 2.0
NORMAL, WARNING = "Normal", "Warning"
PLACEMENTS = (GROUP, "edgeplacements")
_WARNINGS = frozenset(
    {
        "Invalid",
        "RemovalHeld",
        "ObjectsRefused",
        "Failing",
        "Degraded",
        "Unreachable",
        "NoDestinations",
    }
)
_GOOD_NEWS = frozenset({"FreshView", "LedgerReadBack", "DiskHasRoom"})
_DESTINATIONS = re.compile(r" \(\d+ destinations?, e\.g\. [^()]*\)$")
_OF_SILENCE = frozenset({"Unreachable", "Left"})
_OF_CHILDREN = frozenset(
    {
        "MailDiffers",
        "ReportsDiffer",
        "SecondHome",
        "SecondRun",
        "BadReport",
        "ChildStale",
        "BadAnswer",
    }
)
_OF_STATE = {
    "up": ("Reached", "it is heard of again"),
    "stopped": ("Stopped", "it ended in good order"),
    "unreachable": ("Unreachable", "nothing is heard of it"),
}


@dataclass(slots=True)
class Happening:
    """One event: `sequence` is new each time it happens again; times are ms since 1970."""

    sequence: int
    first_ms: int
    last_ms: int
    count: int
    type: str
    reason: str
    node: str
    object: str
    message: str


class EventLog:
    """The last `EVENTS_MAX` different events, the one that happened last at the end.

    `run` names this log: another one counts its events from the beginning again.
    """

    def __init__(self, run: str = "", most: int = EVENTS_MAX) -> None:
        self.run = run
        self._most = most
        self._sequence = 0
        self._found: OrderedDict[tuple[str, str, str, str], Happening] = OrderedDict()

    def add(
        self,
        now_ms: int,
        *,
        kind: str,
        reason: str,
        node: str,
        about: str,
        message: str,
    ) -> None:
        """Take in an event; one that is as an earlier one counts there."""
        self._sequence += 1
        key = (reason, node, about, message)
        held = self._found.pop(key, None)
        if held is None:
            held = Happening(0, now_ms, now_ms, 0, kind, reason, node, about, message)
        held.sequence, held.last_ms, held.count = self._sequence, now_ms, held.count + 1
        self._found[key] = held
        if len(self._found) > self._most:
            self._found.popitem(last=False)

    def noted(
        self,
        path: NodePath,
        noted: Noted,
        now_ms: int,
        placement_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Take in what a node noted, but who is silent: `reached` has that.

        `placement_of` gives the name of a placement by its mail key, which nobody could read.
        """
        if noted.reason in _OF_SILENCE:
            return
        about, key = noted.subject, noted.subject.removeprefix("mail ")
        if noted.reason in _OF_CHILDREN:
            about = str(path.child(noted.subject))
        elif name := placement_of(key):
            about = f"edgeplacement/{name}"
        self.add(
            now_ms,
            kind=NORMAL if noted.reason in _GOOD_NEWS else WARNING,
            reason=noted.reason,
            node=str(path),
            about=about,
            message=noted.detail,
        )

    def reached(
        self, before: Mapping[NodePath, str], now: Mapping[NodePath, str], now_ms: int
    ) -> None:
        """Take in which nodes are `up`, `stopped` or `unreachable`, before and now."""
        for path, state in now.items():
            if state == before.get(path, "up"):
                continue
            reason, message = _OF_STATE[state]
            self.add(
                now_ms,
                kind=WARNING if state == "unreachable" else NORMAL,
                reason=reason,
                node=str(path.parent),
                about=str(path),
                message=message,
            )

    @property
    def through(self) -> int:
        """The sequence of the last event."""
        return self._sequence

    def since(self, sequence: int) -> list[dict[str, Any]]:
        """The events after a sequence, oldest first."""
        return [asdict(item) for item in self._found.values() if item.sequence > sequence]


async def follow_conditions(space: Space, events: EventLog, clock: Clock) -> None:
    """Add an event for each change of a placement's conditions, and for each new error of its."""
    while True:
        try:
            await _follow(space, events, clock)
        except ResumeTooOld:
            continue
        except SpaceError:
            await clock.sleep(RETRY_SECONDS)


async def _follow(space: Space, events: EventLog, clock: Clock) -> None:
    listing = await space.list(*PLACEMENTS)
    known = {str(obj["metadata"]["name"]): conditions_of(obj) for obj in listing.objects}
    stuck: dict[str, set[str]] = {}

    def note_errors(obj: Mapping[str, Any]) -> None:
        """What is wrong with a placement already when the tree starts is news, too."""
        name, errors = str(obj["metadata"]["name"]), errors_of(obj)
        for error in sorted(errors - stuck.get(name, set())):
            events.add(
                clock.now().wall_ms,
                kind=WARNING,
                reason="Stuck",
                node="/",
                about=f"edgeplacement/{name}",
                message=error,
            )
        stuck[name] = errors

    for obj in listing.objects:
        note_errors(obj)
    async for change in space.watch(listing.revision):
        key = change.key
        if (key.group, key.resource) != PLACEMENTS:
            continue
        if change.kind == "deleted":
            known.pop(key.name, None)
            stuck.pop(key.name, None)
            continue
        before, now = known.get(key.name, {}), conditions_of(change.object)
        known[key.name] = now
        for type_, (status, reason, message) in now.items():
            if before.get(type_, ("", "", ""))[:2] == (status, reason):
                continue
            events.add(
                clock.now().wall_ms,
                kind=WARNING if reason in _WARNINGS else NORMAL,
                reason=reason or type_,
                node="/",
                about=f"edgeplacement/{key.name}",
                message=f"{type_} is {status}" + (f": {message}" if message else ""),
            )
        note_errors(change.object)


def errors_of(obj: Mapping[str, Any]) -> set[str]:
    """What is wrong, by the placement's status, without at how many destinations it is so."""
    listed = (obj.get("status") or {}).get("errors") or ()
    return {_DESTINATIONS.sub("", str(error)) for error in listed}


def conditions_of(obj: Mapping[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message of each condition, by its type."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {
        str(item.get("type")): (
            str(item.get("status", "")),
            str(item.get("reason") or ""),
            str(item.get("message") or ""),
        )
        for item in found
    }
