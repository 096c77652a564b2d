"""What happened in a tree lately, as Kubernetes says its events: bounded, equal ones counted."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from controllers.core.status.unreturned import STATUS_REFUSED
from relay.core.effects import Noted
from relay.core.link.session import CATCHING_UP
from relay.objects.stored_object import timestamp
from relay.ports import Clock
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, Space, SpaceEvent
from schemas.records.hold_reasons import MAINTENANCE, NEEDS_A_PERSON
from schemas.records.placements import KINDS, kind_of, placement_at, title
from schemas.reports.states import IN_MAINTENANCE, NEVER_JOINED
from schemas.values.identity import NodePath
from schemas.values.wording import repair_text

EVENTS_MAX = 1_000
NORMAL, WARNING = "Normal", "Warning"
PLACEMENTS = frozenset(Interest(kind.group, kind.resource) for kind in KINDS)
_WARNINGS = frozenset(
    {
        "Invalid",
        "RemovalHeld",
        STATUS_REFUSED,
        "ObjectsRefused",
        "Failing",
        "Degraded",
        "Unreachable",
        "NoDestinations",
        "UnknownKind",
        "NamespaceNotFound",
        "NothingSelected",
        "KindUnreadable",
        "AlmostAllObjects",
        "Frozen",
        "CustomizerMissing",
        "NeverJoined",
    }
)
_LACKS = frozenset({"UnknownKind", "NamespaceNotFound", "NothingSelected", "KindUnreadable"})
"""The condition ObjectsSelected tells of these; that it is not synced either is no more news."""
_STORY = {
    "Synced": ("Delivered", "delivered to", "synced"),
    "Healthy": ("Working", "working at", "healthy"),
}
"""The good end of these conditions is told, and why they cannot come to it: not each step."""
_ON_THE_WAY = frozenset({"Incomplete", "Pending", "Progressing", "Degraded", "Unreachable"})
_OF_READY = frozenset({"Reconciling", "Stalled"})
"""They say of Ready what kind of false it is, in its words."""
_GOOD_NEWS = frozenset({"FreshView", "DiskHasRoom", "HubHeld", "CollectorBack"})
_DESTINATIONS = re.compile(r" \((\d+) destinations?, e\.g\. ([^()]*)\)$")
_TOLD_OTHERWISE = frozenset({"Unreachable", "Left", "Dropped"})
"""`reached` tells who is silent, and the centre what was deleted: each node need not."""
_OF_CHILDREN = frozenset(
    {
        "MailDiffers",
        "ReportsDiffer",
        "SecondHome",
        "BadReport",
        "Behind",
        "BadAnswer",
    }
)
_OF_STATE = {
    "up": ("Reached", "is back"),
    "stopped": ("Stopped", "was shut down"),
    "unreachable": ("Unreachable", "is silent"),
}
_JOINED = ("Joined", "joined for the first time")
_AWAITED = frozenset({"connecting", NEVER_JOINED})


class LoggedCondition(NamedTuple):
    """A condition of a placement; `changed` is Kubernetes' form of a moment, or empty."""

    status: str
    reason: str
    message: str
    changed: str


class _Repair(NamedTuple):
    """That a copy was put right, as a placement's status has it."""

    time: str
    path: str
    object: str
    field: str
    manager: str


@dataclass(slots=True)
class LoggedEvent:
    """One event: `sequence` is new each time it happens again; times are ms since 1970."""

    sequence: int = field(init=False, default=0)
    first_ms: int
    last_ms: int
    count: int = field(init=False, default=0)
    type: str
    reason: str
    node: str
    object: str
    message: str


class EventLog:
    """The last `EVENTS_MAX` different events, the one that happened last at the end."""

    def __init__(self, run: str = "", began_ms: int = 0, *, most: int = EVENTS_MAX) -> None:
        # Names this log: another one counts its events from the beginning again.
        self.run = run
        # When its run began (ms since 1970): what is older belongs to a former one.
        self.began_ms = began_ms
        self._most = most
        self._sequence = 0
        self._found: OrderedDict[tuple[str, str, str, str], LoggedEvent] = OrderedDict()

    def add(
        self, now_ms: int, kind: str, reason: str, *, node: str, about: str, message: str
    ) -> None:
        """Take in an event; one that is as an earlier one counts there."""
        self._sequence += 1
        key = (reason, node, about, message)
        held = self._found.pop(key, None)
        if held is None:
            held = LoggedEvent(now_ms, now_ms, kind, reason, node, about, message)
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
        """Take in what a node noted, unless others tell it.

        `placement_of` gives the name of a placement by its mail key, which nobody could read.
        """
        if noted.reason in _TOLD_OTHERWISE:
            return
        about, key = noted.subject, noted.subject.removeprefix("mail ")
        if noted.reason in _OF_CHILDREN:
            about = str(path.child(noted.subject))
        elif name := placement_of(key):
            about = title(name)
        kind = NORMAL if noted.reason in _GOOD_NEWS else WARNING
        self.add(now_ms, kind, noted.reason, node=str(path), about=about, message=noted.detail)

    def reached(
        self, before: Mapping[NodePath, str], now: Mapping[NodePath, str], now_ms: int
    ) -> None:
        """Take in in which state nodes are (leafcast.daemon.tree_facts), before and now."""
        for path, word in now.items():
            state, former = _seen_as(word), _seen_as(before.get(path, "up"))
            first = former == NEVER_JOINED != state
            if state == former or (not first and _AWAITED & {state, former}):
                continue
            reason, words = _JOINED if first else _OF_STATE[state]
            kind, message = WARNING if state == "unreachable" else NORMAL, f"{path} {words}"
            self.add(now_ms, kind, reason, node=str(path.parent), about=str(path), message=message)

    def tells_of(self, reason: str, node: str, about: str, message: str, since: str) -> bool:
        """Whether it has just this event of a node, from that moment on (in Kubernetes' form)."""
        held = self._found.get((reason, node, about, message))
        return held is not None and timestamp(held.last_ms) >= since

    @property
    def through(self) -> int:
        """The sequence of the last event."""
        return self._sequence

    def since(self, sequence: int) -> list[dict[str, Any]]:
        """The events after a sequence, oldest first."""
        return [asdict(item) for item in self._found.values() if item.sequence > sequence]


def _seen_as(state: str) -> str:
    """Who reads what came meanwhile is there."""
    return "up" if state == CATCHING_UP else state


async def follow_conditions(space: Space, events: EventLog, clock: Clock) -> None:
    """Tell how placements fare: created, delivered, working, failing and why; and other conditions.

    Of what is there already, what came to be since the log began is news. Counts that are still
    open and steps on the way are no events: people would read flips.
    """
    await space.follow(Interests(PLACEMENTS), _Conditions(events, clock).tell)


class _Conditions:
    """What is known of placements: what changed while nobody could look is news all the same."""

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._events, self._clock = events, clock
        self._since = timestamp(events.began_ms)
        self._listed = set[Interest | None]()
        self._known: dict[str, dict[str, LoggedCondition]] = {}
        self._stuck: dict[str, dict[str, str]] = {}
        # Of which objects repairs are told of that its status names still, by placement.
        self._repaired: dict[str, frozenset[_Repair]] = {}

    async def tell(self, event: SpaceEvent) -> None:
        """Take in what a space tells of placements."""
        match event:
            case ObjectsListed(interest, objects):
                here = {placement_at(key): obj for key, obj in objects.items()}
                for name in sorted(self._known.keys() - here.keys()):
                    if interest is None or interest.resource == kind_of(name).resource:
                        self._forget(name)
                for placement, obj in here.items():
                    self._take(placement, obj, listed=interest in self._listed)
                self._listed.add(interest)
            case ObjectChange("deleted", key):
                self._forget(placement_at(key))
            case ObjectChange(_, key, obj):
                self._take(placement_at(key), obj, listed=True)
            case _:
                return

    def _forget(self, name: str | None) -> None:
        if name is None:
            return
        if self._known.pop(name, None) is not None:
            self._add(name, NORMAL, "Deleted", "deleted")
        self._stuck.pop(name, None)
        self._repaired.pop(name, None)

    def _take(self, name: str | None, obj: Mapping[str, Any], *, listed: bool) -> None:
        if name is None:
            return
        before, now = self._known.get(name), conditions_of(obj)
        made = str(obj["metadata"].get("creationTimestamp") or "")
        if before is None and (listed or made >= self._since):
            self._add(name, NORMAL, "Created", "created")
        self._known[name] = now
        for type_, told in now.items():
            if (before or {}).get(type_, ("", ""))[:2] == told[:2] or _is_told_by_another(
                type_, now
            ):
                continue
            # What the first list shows was so before the tree started, unless it changed since.
            if listed or told.changed >= self._since:
                self._tell(name, type_, told, obj.get("status") or {})
        # What is wrong with a placement already when the tree starts is news, too.
        errors, known = errors_of(obj), self._stuck.get(name, {})
        told_apart = now["SingletonReported"].message if _is_refused(now) else ""
        news = [error for error in errors.keys() - known.keys() if error not in told_apart]
        for said in _by_cause({error: errors[error] for error in news}):
            self._add(name, WARNING, "Failing", f"failing{said}")
        self._stuck[name] = errors
        self._tell_repairs(name, obj.get("status") or {})

    def _tell_repairs(self, name: str, status: Mapping[str, Any]) -> None:
        """Tell what edges put right that run elsewhere; those that run here noted it."""
        last = (status.get("repairs") or {}).get("last") or ()
        told = [_Repair(*(str(said.get(part, "")) for part in _Repair._fields)) for said in last]
        known, about = self._repaired.get(name, frozenset()), title(name)
        for repair in reversed(told):
            moment, path, *texts = repair
            message = repair_text(*texts)
            if (
                repair in known
                or moment <= self._since
                or self._events.tells_of("Repaired", path, about, message, moment)
            ):
                continue
            now_ms = self._clock.now().wall_ms
            self._events.add(now_ms, WARNING, "Repaired", node=path, about=about, message=message)
        self._repaired[name] = frozenset(told)

    def _tell(
        self, name: str, type_: str, told: LoggedCondition, status: Mapping[str, Any]
    ) -> None:
        """Tell of a condition what a person would: its good end, or why it does not come to it."""
        kind = WARNING if told.reason in _WARNINGS | NEEDS_A_PERSON else NORMAL
        if type_ in ("Valid", "Ready") and told.status == "True":
            return None
        if type_ not in _STORY:
            said = f"{type_} is {told.status}" + (f": {told.message}" if told.message else "")
            return self._add(name, kind, told.reason or type_, said)
        reason, done, counted = _STORY[type_]
        if told.status == "True":
            apart = {"never joined": status.get("neverJoined") or 0, IN_MAINTENANCE: _kept(status)}
            said = ", ".join(f"{count} {words}" for words, count in apart.items() if count)
            more = f" ({said})" if said else ""
            figures = f"{status.get(counted, 0)} of {status.get('destinations', 0)}"
            return self._add(name, NORMAL, reason, f"{done} {figures}{more}")
        if told.status == "False" and type_ == "Synced" and told.reason not in _ON_THE_WAY:
            said = f"not {done} all: {told.message}"
            self._add(name, kind, told.reason, said)
        return None

    def _add(self, name: str, kind: str, reason: str, message: str) -> None:
        now_ms, text = self._clock.now().wall_ms, f"{name} {message}"
        self._events.add(now_ms, kind, reason, node="/", about=title(name), message=text)


def _is_told_by_another(type_: str, now: Mapping[str, LoggedCondition]) -> bool:
    """Whether another condition tells the same, and better: one happening is one event."""
    told = now[type_]
    if told.reason in _LACKS:
        return type_ != "ObjectsSelected"
    if type_ in _OF_READY:
        return True
    ready = now.get("Ready")
    if type_ == "Ready":
        return told.reason in _ON_THE_WAY
    return type_ in _STORY and ready is not None and ready[:2] == told[:2]


def _is_refused(now: Mapping[str, LoggedCondition]) -> bool:
    """Whether a condition tells that the hub does not take statuses: the errors say it, too."""
    told = now.get("SingletonReported")
    return told is not None and told.reason == STATUS_REFUSED


def errors_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong, by the placement's status, and where: ` at /emea/s1`, or at how many."""
    listed = (obj.get("status") or {}).get("errors") or ()
    found = {}
    for error in map(str, listed):
        named = _DESTINATIONS.search(error)
        count, path = named.groups() if named else ("", "")
        where = f" at {path}" if count == "1" else f" at {count} destinations, such as {path}"
        found[_DESTINATIONS.sub("", error)] = where if named else ""
    return found


def _kept(status: Mapping[str, Any]) -> int:
    """At how many destinations a person works."""
    held = status.get("held") or ()
    return sum(hold.get("destinations") or 0 for hold in held if hold["reason"] == MAINTENANCE)


def _by_cause(errors: Mapping[str, str]) -> list[str]:
    """What is wrong and where, a line for each cause: ` at /emea/s1: 15 objects, such as x: y`."""
    alike: dict[tuple[str, str], list[str]] = {}
    for error in sorted(errors):
        what, _, reason = error.partition(": ")
        alike.setdefault((errors[error], reason), []).append(what)
    return [
        f"{where}: "
        + (f"{len(objects)} objects, such as " if len(objects) > 1 else "")
        + ": ".join(filter(None, (objects[0], reason)))
        for (where, reason), objects in alike.items()
    ]


def conditions_of(obj: Mapping[str, Any]) -> dict[str, LoggedCondition]:
    """Status, reason, message and last transition of each condition, by its type."""
    found = (obj.get("status") or {}).get("conditions") or ()
    names = ("status", "reason", "message", "lastTransitionTime")
    return {
        str(item.get("type")): LoggedCondition(*(str(item.get(n) or "") for n in names))
        for item in found
    }
