"""Which objects are not as they were applied, how often they are repaired, and who is behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from relay.core.destination.claims import DesiredObject
from relay.objects.customization import CustomizationFailed
from relay.objects.differences import differing_fields
from relay.objects.merge import merge_applied, subsumes, wish_of
from relay.objects.nulls import said_by
from relay.objects.stored_object import timestamp
from relay.ports import Clock
from relay.space_port import Object
from relay.syncer.aggregated_roles import is_gathering
from relay.syncer.applier import Applier, ContentMissing
from relay.syncer.ended import is_over
from relay.syncer.going import Going
from relay.syncer.list_items import moved_items
from relay.syncer.losses import loss_text, lost_again, pause_left, taker
from relay.syncer.object_marks import MANAGER
from relay.syncer.observed import ObservedState, shortened
from relay.syncer.ownership import taken
from relay.syncer.repairs import Repairs
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import COUNT_MAX, Done, Repaired
from schemas.values.refusals import CodecError
from schemas.values.wire import replace
from schemas.values.wording import some_of

NAMED_MAX = 3
SAME_SECONDS = 2.0
"""A pause that ends so much later, or sooner, is the same: clocks are set."""

_UNKNOWN = "a field that is not known"


class Amiss(NamedTuple):
    """What differed in an object, empty if it was deleted, and who holds it, as far as known."""

    field: str
    manager: str
    # Whether it is no repair: it went as it was deleted for us, or a cluster gathers it.
    is_ours: bool = False


_GONE = Amiss("", "")
_TAKEN = Amiss("", "", is_ours=True)


class Drift:
    """Per object what it is known to hold of ours; the ones that lack something of it."""

    def __init__(self, applier: Applier, clock: Clock) -> None:
        self.drifted: set[ObjectKey] = set()
        # Those that were not where they were looked for.
        self.doubted: set[ObjectKey] = set()
        # Those that were doubted since they began to be applied last: what is made may be gone.
        self._doubted_since: set[ObjectKey] = set()
        # Those that lack what their space did not know: it may know it by now.
        self.again: set[ObjectKey] = set()
        # The uid of each that was deleted for us, and goes later.
        self._going: dict[ObjectKey, str] = {}
        # Those that are not as they were left, and of which something else is wanted by now.
        self._changed: set[ObjectKey] = set()
        self._holding: dict[ObjectKey, str] = {}
        # What differed in those that drifted, and by whom, until they are put right.
        self._amiss: dict[ObjectKey, Amiss] = {}
        self._repairs = Repairs()
        # When those that wait are repaired, as it was told: monotonic seconds, and in words.
        self._told: dict[ObjectKey, tuple[float, str]] = {}
        # What may have taken those that went.
        self._takers: dict[ObjectKey, str] = {}
        self._applier = applier
        self._clock = clock

    def doubts(self, key: ObjectKey) -> bool:
        """Whether the object may be another than it was left."""
        return key in self.drifted or key in self.doubted

    def doubt(self, key: ObjectKey) -> None:
        """The object may not be there."""
        self.doubted.add(key)
        self._doubted_since.add(key)

    def begins(self, key: ObjectKey) -> bool:
        """The object is applied from now on; whether it is to be looked at first."""
        self._doubted_since.discard(key)
        return key in self._changed or self.doubts(key)

    def look_again(self, record: Mapping[ObjectKey, Done]) -> list[ObjectKey]:
        """Have those applied again that lack what their space did not know."""
        self.again |= {key for key, done in record.items() if done.lesser}
        return sorted(self.again)

    def is_to_apply(self, key: ObjectKey) -> bool:
        """Whether the object is to be applied though it was applied already."""
        return key in self.drifted or key in self.again

    def applied(self, key: ObjectKey, sight: ObservedState) -> Amiss | None:
        """The object was made as wanted, and is this now; what was amiss, if it was put right."""
        amiss = self._amiss.pop(key, None)
        if key in self.drifted and amiss != _TAKEN:
            self._repairs.made(key, self._clock.now().seconds)
        self._settle(key)
        if key in self._doubted_since:
            self.doubted.add(key)
        self._holding[key] = sight.held
        return amiss

    def failed(self, key: ObjectKey, error: BaseException) -> None:
        """An action on the object failed: what was deleted for us may be still there."""
        if isinstance(error, Going):
            self._going[key] = error.uid

    def put_right(self, done: Done, amiss: Amiss) -> Done:
        """The record of an object that was repaired once more, if someone else was behind it."""
        if amiss.is_ours:
            self._takers.pop(done.key, None)
            return done
        now_ms = self._clock.now().wall_ms
        count = min(1 + (done.repaired.count if done.repaired is not None else 0), COUNT_MAX)
        repaired = Repaired(count, now_ms, shortened(amiss.field), shortened(amiss.manager))
        taken_by = self._takers.pop(done.key, "")
        lost = lost_again(done.lost, now_ms, taken_by) if amiss == _GONE else done.lost
        return replace(done, repaired=repaired, lost=lost)

    def went(self, key: ObjectKey, last: Object) -> None:
        """The object was deleted, and was this at last."""
        self._takers[key] = taker(last)

    def forget(self, key: ObjectKey) -> None:
        """The object is not looked after any more."""
        self._settle(key)
        for known in (self._takers, self._holding, self._amiss):
            known.pop(key, None)
        self._doubted_since.discard(key)
        self._repairs.forget(key)

    def _settle(self, key: ObjectKey) -> None:
        """There is another one now, or none is looked after."""
        self._told.pop(key, None)
        self._going.pop(key, None)
        for marked in (self.drifted, self.doubted, self.again, self._changed):
            marked.discard(key)

    def is_echo(self, key: ObjectKey, obj: Object, seen: ObservedState | None) -> bool:
        """Whether this is what was seen already, and holds what was applied."""
        if seen is None or self._holding.get(key) != seen.held:
            return False
        return bool(seen.revision) and seen.revision == obj["metadata"].get("resourceVersion")

    async def judge(
        self, obj: Object | None, sight: ObservedState | None, done: Done, want: DesiredObject
    ) -> str:
        """Take in how an object is; what is to be said of one that is repaired only later."""
        if not await self._differs(obj, sight, done, want):
            return ""
        self.drifted.add(done.key)
        lost = taken(obj, MANAGER, done.fields) if obj else {}
        self._amiss[done.key] = await self._looked_into(obj, done, want, lost)
        pause = self.due(done.key, done) - self._clock.now().seconds
        if pause <= 0:
            return ""
        due = self._when(done.key, pause)
        if done.lost is not None and self._amiss[done.key] == _GONE:
            return loss_text(done.lost, self._takers.get(done.key, ""), due)
        some = sorted(lost.items())[:NAMED_MAX]
        amiss = self._amiss[done.key]
        some = some or [(amiss.field, amiss.manager)] if amiss.manager else some
        who = ", ".join(f"manager {name} over {path}" for path, name in some) or "another writer"
        return f"Contended: contended with {who}; it is repaired again at {due}"

    def _when(self, key: ObjectKey, pause: float) -> str:
        """When a pause ends, said the same while it lasts: each other word would be news."""
        now = self._clock.now()
        due, told = now.seconds + pause, self._told.get(key)
        if told is None or abs(told[0] - due) > SAME_SECONDS:
            told = (due, timestamp(now.wall_ms + math.ceil(pause) * 1000))
            self._told[key] = told
        return told[1]

    async def _looked_into(
        self, obj: Object | None, done: Done, want: DesiredObject, lost: Mapping[str, str]
    ) -> Amiss:
        """What of an object differs, and who holds that: as far as the object tells."""
        if obj is None or obj["metadata"].get("uid") != done.uid:
            return _TAKEN if self._going.get(done.key) == done.uid else _GONE
        if lost:
            path = min(lost)
            taken_so = len(lost) == 1 and is_gathering(path, lost[path])
            return Amiss(some_of(sorted(lost), 1), lost[path], is_ours=taken_so)
        try:
            wish = await self._applier.wish(want, done)
        except (ContentMissing, CustomizationFailed, CodecError):
            return Amiss(_UNKNOWN, "")
        if moved := moved_items(obj, wish, done.fields):
            return Amiss(moved[0].path, moved[0].managers[0])
        there, wished = said_by(obj), said_by(wish)
        fields = differing_fields(wish_of(there), wish_of(merge_applied(there, {}, wished)))
        return Amiss(some_of(fields, 1) or _UNKNOWN, "")

    def due(self, key: ObjectKey, done: Done | None) -> float:
        """When the object may be repaired; 0 if it may be now."""
        if key not in self.drifted:
            return 0.0
        now = self._clock.now()
        due = self._repairs.due(key, now.seconds)
        if done is not None and self._amiss.get(key) == _GONE:
            due = max(due, now.seconds + pause_left(done.lost, now.wall_ms))
        return due if due > now.seconds else 0.0

    async def _differs(
        self, obj: Object | None, sight: ObservedState | None, done: Done, want: DesiredObject
    ) -> bool:
        """Whether the object is not what was applied: gone, another's, or without our fields."""
        if not done.uid or (obj is None and is_over(want, done)):
            return False
        if obj is None or sight is None or sight.uid != done.uid:
            return True
        if done.left or done.stay or want.create_only:
            return False
        if self._holding.setdefault(done.key, done.held) == sight.held:
            return False
        if done.address != want.address:
            self._changed.add(done.key)
            return False
        if sight.managed:
            return True
        try:
            holds = subsumes(obj, await self._applier.wish(want, done))
        except ContentMissing:
            return False
        if holds:
            self._holding[done.key] = sight.held
        return not holds
