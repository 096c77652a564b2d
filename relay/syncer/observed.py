"""What a syncer knows of the objects it looks after, and what of that is news to its node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.core.destination.object_outcome import REASON_MAX_CHARACTERS
from relay.core.events import ObjectObserved
from relay.objects.awaited import Awaited, awaited
from relay.objects.ended import has_succeeded
from relay.objects.health import Assessment, assess, terminating
from relay.objects.health_rules import assess_as_said, assess_by_rule, health_said, is_done
from relay.objects.merge import SERVER_METADATA
from relay.syncer.object_marks import MANAGER, removal_said
from relay.syncer.ownership import ManagedFields, hold_of, is_marked
from schemas.objects.annotations import IGNORE
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import number_of
from schemas.records.health_rules import HealthProgram
from schemas.reports.reports import Done, Health
from schemas.values import codec
from schemas.values.value import Value
from schemas.values.wire import INT_MAX, replace

END_CHARACTERS = 56
_LEFT_OUT = " … "


class ObservedState(Value, frozen=True):
    """An object as last seen: whose it is, what we hold in it, how it does."""

    uid: str
    revision: str
    # A digest of the fields that we applied if it is managed, else of all but the status.
    held: str
    # Whether it says who holds what.
    managed: bool
    health: Health
    reason: str
    status: bytes | None
    # Whether it is being deleted.
    ending: bool
    # What it says becomes of it once it is wanted no more; "" if nothing.
    on_removal: str = ""
    # Whether it has done what it is for.
    ended: bool = False
    # Its own, which its controllers count by; 0 if it has none.
    generation: int = 0
    # What outside of it its health waits for.
    awaits: Awaited | None = None


def look_at(
    obj: Mapping[str, Any], hold: ManagedFields | None = None, rule: HealthProgram | None = None
) -> ObservedState:
    """Take in an object; raises CodecError if it is no JSON value.

    How well it is it says itself, or the HealthRule of its kind does, or its kind.
    """
    hold = hold or hold_of(obj, MANAGER)
    health, reason = _assessed(obj, hold, rule)
    is_judged = bool(health_said(obj)) or (rule is not None and bool(rule.healthy or rule.ignore))
    status = obj.get("status")
    return ObservedState(
        uid=str(obj["metadata"].get("uid", "")),
        revision=str(obj["metadata"].get("resourceVersion", "")),
        held=hold.digest if hold else _fingerprint(obj),
        managed=hold is not None,
        health=health,
        reason=reason,
        status=None if status is None else codec.canonical_of_decoded(status),
        ending=bool(obj["metadata"].get("deletionTimestamp")),
        on_removal=removal_said(obj),
        ended=is_done(rule, obj) if rule is not None and rule.done else has_succeeded(obj),
        generation=_generation(obj),
        awaits=None if is_judged else awaited(obj),
    )


def _assessed(
    obj: Mapping[str, Any], hold: ManagedFields | None, rule: HealthProgram | None
) -> Assessment:
    said = health_said(obj)
    if said == IGNORE:
        return assess_as_said(said, obj)
    if terminating(obj):
        return assess(obj)
    if said:
        return assess_as_said(said, obj)

    def by_kind() -> Assessment:
        return assess(obj, lambda path: hold is None or is_marked(path, hold.fields))

    return by_kind() if rule is None else assess_by_rule(rule, obj, by_kind)


class Observations:
    """Per object: the last sight, the address applied, what went wrong; tells what is new."""

    def __init__(self) -> None:
        self._sights: dict[ObjectKey, ObservedState] = {}
        self._told: dict[ObjectKey, ObjectObserved] = {}

    def sight(self, key: ObjectKey) -> ObservedState | None:
        return self._sights.get(key)

    def keys(self) -> set[ObjectKey]:
        """The objects that are known to be there."""
        return set(self._sights)

    def see(self, key: ObjectKey, sight: ObservedState | None) -> None:
        """None: the object is gone."""
        if sight is None:
            self._sights.pop(key, None)
        else:
            self._sights[key] = sight

    def mark_stale(self, key: ObjectKey) -> None:
        """Look at an object anew whatever it is: it is judged by another rule."""
        sight = self._sights.get(key)
        if sight is not None:
            self._sights[key] = replace(sight, revision="")

    def is_older(self, key: ObjectKey, obj: Mapping[str, Any] | None) -> bool:
        """Whether this is what the object was before it was seen last: an apply outruns a watch.

        Not asked of what a list shows: in a space that was restored it is the present, however old.
        """
        sight = self._sights.get(key)
        if sight is None or obj is None or obj["metadata"].get("uid", "") != sight.uid:
            return False
        revision = str(obj["metadata"].get("resourceVersion", ""))
        return number_of(revision) < number_of(sight.revision)

    def news(
        self,
        key: ObjectKey,
        address: str,
        error: str,
        reason: str,
        waits: str = "",
        done: Done | None = None,
        wish: int = 0,
    ) -> ObjectObserved | None:
        """The last word on the object, unless it was said already.

        `reason` is of its health, `waits` names what it waits for, `done` what was applied; `wish`
        is the number of the wish for it.
        """
        sight, error, waits = self._sights.get(key), shortened(error), shortened(waits)
        repaired = done.repaired if done is not None else None
        left = done is not None and (done.left or done.stay)
        if sight is None:
            said = replace(_absent(key, error=error), waits=waits, repaired=repaired)
        else:
            said = ObjectObserved(
                key,
                present=True,
                address=address,
                error=error,
                health=sight.health,
                status=sight.status,
                reason=shortened(reason),
                waits=waits,
                repaired=repaired,
                generation=None if left else sight.generation,
                wish=wish,
            )
        return self._tell(key, said)

    def keep(self, key: ObjectKey, reason: str) -> ObjectObserved | None:
        """The object is wanted no more and kept, unless that was said already."""
        said = ObjectObserved(
            key,
            present=True,
            address="",
            error="",
            health="unknown",
            status=None,
            reason=shortened(reason),
            kept=True,
        )
        return self._tell(key, said)

    def forget_object(self, key: ObjectKey, reason: str) -> ObjectObserved:
        """The object is not looked after any more.

        Said also of one that is known to be gone: while it was wanted, that was no last word.
        """
        self._sights.pop(key, None)
        self._told.pop(key, None)
        return _absent(key, reason=shortened(reason))

    def forget(self, key: ObjectKey) -> ObjectObserved | None:
        """The object never came to be, and is not wanted any more: the last word, if one is due."""
        told = key in self._told
        gone = self.forget_object(key, "")
        return gone if told else None

    def _tell(self, key: ObjectKey, said: ObjectObserved) -> ObjectObserved | None:
        if self._told.get(key) == said:
            return None
        self._told[key] = said
        return said


def shortened(text: str) -> str:
    """As much of what is said as a node reports, in whole words: its begin and its end.

    A server begins with what it refuses; the remedy stands at the end.
    """
    if len(text) <= REASON_MAX_CHARACTERS:
        return text
    start = text[: REASON_MAX_CHARACTERS - END_CHARACTERS - len(_LEFT_OUT)]
    end = text[-END_CHARACTERS:]
    return f"{start.rpartition(' ')[0] or start}{_LEFT_OUT}{end.partition(' ')[2] or end}"


def _absent(key: ObjectKey, *, error: str = "", reason: str = "") -> ObjectObserved:
    return ObjectObserved(
        key, present=False, address="", error=error, health="unknown", status=None, reason=reason
    )


def _generation(obj: Mapping[str, Any]) -> int:
    said = obj["metadata"].get("generation")
    return said if isinstance(said, int) and 0 <= said <= INT_MAX else 0


def _fingerprint(obj: Mapping[str, Any]) -> str:
    """Equal as long as nothing changed that a wish can say."""
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in SERVER_METADATA
    }
    plain = {name: value for name, value in obj.items() if name != "status"}
    return codec.digest({**plain, "metadata": metadata})
