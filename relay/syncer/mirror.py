"""What of a space lies at the parent, and what is to be done until that is all that is meant.

Pure: it is told what the space has and what the parent keeps, and says what to do next. Only the
node itself writes its copies, so as long as their place is as it was left, nothing is read back.
Else all is said again, and what lay there before goes: what ended meanwhile does not come back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

from relay.ports import CopiesPlace
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import (
    COPY_BESIDE_BYTES,
    EDGE_MAX_BYTES,
    EDGE_MAX_OBJECTS,
    WRITE_EVERY_SECONDS,
)

RETRY_SECONDS = 2.0
REFUSED_SECONDS = 30.0
STALE_MAX = 1000


@dataclass(frozen=True, slots=True)
class SendCopy:
    """Read the object, and put its copy before the parent."""

    key: ObjectKey


@dataclass(frozen=True, slots=True)
class EraseCopy:
    """Erase the object's copy."""

    key: ObjectKey


@dataclass(frozen=True, slots=True)
class EraseCopiesBefore:
    """Erase what lies before a place: all that is to be there was said since."""

    before: int


MirrorAction = SendCopy | EraseCopy | EraseCopiesBefore


@dataclass(frozen=True, slots=True)
class _Held:
    version: str
    digest: bytes
    size: int


@dataclass(frozen=True, slots=True)
class _Unfit:
    version: str
    reason: str
    # What it would take, 0 if it is too large by itself.
    size: int


class Mirror:
    """The copies of one run of an edge. Each object has one action under way at a time."""

    def __init__(self) -> None:
        self._seen: dict[ObjectKey, str] = {}
        self._held: dict[ObjectKey, _Held] = {}
        self._unfit: dict[ObjectKey, _Unfit] = {}
        self._dirty: dict[ObjectKey, float] = {}
        self._not_before: dict[ObjectKey, float] = {}
        self._due: list[tuple[float, int, ObjectKey]] = []
        self._order = count()
        self._busy: set[ObjectKey] = set()
        # What is there and was not said in this place.
        self._unsaid: set[ObjectKey] = set()
        self._bytes = 0
        # By how much each action under way makes them more.
        self._reserved: dict[ObjectKey, int] = {}
        self._refused: dict[ObjectKey, str] = {}
        self.epoch = 0
        """Another each time that all is said again: what began before says nothing of what is."""
        self._place: CopiesPlace | None = None
        # Nobody knows what the parent has of these; and how often that came to be so.
        self._doubtful: set[ObjectKey] = set()
        self._unanswered = 0
        self._sweep_before = 0
        self._sweeping = False

    # What the space has.

    def put(self, key: ObjectKey, version: str, now: float) -> None:
        """An object that is meant is there, in this version."""
        if self._seen.get(key) == version:
            return
        self._seen[key] = version
        held = self._held.get(key)
        if held is not None and held.version == version and key not in self._busy:
            self._clean(key)
        else:
            self._dirt(key, now)
        self._look(key)

    def remove(self, key: ObjectKey, now: float) -> None:
        """An object is not there any more, or not meant."""
        if self._seen.pop(key, None) is None:
            return
        self._unfit.pop(key, None)
        self._refused.pop(key, None)
        if self._may_lie_there(key) or key in self._busy:
            self._dirt(key, now)
        else:
            self._clean(key)
        self._look(key)

    def listed(
        self,
        group: str,
        resource: str,
        namespace: str,
        versions: Mapping[ObjectKey, str],
        now: float,
    ) -> None:
        """These objects of a kind are there, in a namespace or ("") in all, and no others."""
        for key in [key for key in self._seen if key.group_resource == (group, resource)]:
            if key not in versions and namespace in ("", key.namespace):
                self.remove(key, now)
        for key, version in versions.items():
            self.put(key, version, now)

    def keep_only(self, is_meant: Callable[[ObjectKey], bool], now: float) -> None:
        """All other objects are not meant any more."""
        for key in [key for key in self._seen if not is_meant(key)]:
            self.remove(key, now)

    # What the parent keeps.

    def begin_session(self, place: CopiesPlace, now: float) -> None:
        """A session began, and the copies' place is this: go on there, or say all again."""
        goes_on = self._goes_on(place)
        self._place, self._unanswered = place, 0
        if goes_on:
            return
        self.epoch += 1
        self._held.clear()
        self._unfit.clear()
        self._bytes = 0
        self._sweep_before = place.last + 1 if place.count else 0
        self._sweeping = False
        self._unsaid = set(self._seen)
        for key in self._seen:
            self._dirt(key, now)
        for key in [key for key in self._dirty if key not in self._seen]:
            if key not in self._busy and key not in self._doubtful:
                # It goes with all that lay there before.
                self._clean(key)

    def _goes_on(self, place: CopiesPlace) -> bool:
        known = self._place
        if known is None or known.since != place.since:
            return False
        if not known.last <= place.last <= known.last + self._unanswered:
            return False
        more = place.count - len(self._held)
        return bool(self._sweep_before) or 0 <= more <= len(self._doubtful)

    # What is to be done.

    def next(self, now: float, *, may_sweep: bool) -> MirrorAction | None:
        """The next thing to do now. `may_sweep` says that all that is meant was told of."""
        if self._place is None:
            return None
        while self._due and self._due[0][0] <= now:
            key = heapq.heappop(self._due)[2]
            early = self._not_before.get(key, now) > now
            if early or key not in self._dirty or key in self._busy:
                # It was put into this place before something else came of it.
                continue
            self._busy.add(key)
            return SendCopy(key) if self._is_fit(key) else EraseCopy(key)
        if may_sweep and self._sweep_before and not self._sweeping and not self._unsaid:
            self._sweeping = True
            return EraseCopiesBefore(self._sweep_before)
        return None

    def deadline(self) -> float | None:
        """When `next` has something to say, if nothing happens before."""
        return self._due[0][0] if self._due else None

    def reserve(self, key: ObjectKey, size: int) -> str:
        """Set room aside for a copy of so many bytes that is under way; else why there is none."""
        if full := self._lacks_room(key, size):
            return full
        self._reserved[key] = max(_taken(size) - self._taken_by(key), 0)
        return ""

    def is_held(self, key: ObjectKey, digest: bytes) -> bool:
        """Whether the parent has just this."""
        held = self._held.get(key)
        return held is not None and held.digest == digest

    # What came of it.

    def confirm_unchanged(self, key: ObjectKey, version: str, now: float) -> None:
        """A new version says nothing new."""
        self._held[key] = replace(self._held[key], version=version)
        self._done(key, now)

    def sent(
        self, key: ObjectKey, version: str, digest: bytes, size: int, at: int, now: float
    ) -> None:
        """The parent keeps this copy."""
        place, held = self._place, self._held.get(key)
        assert place is not None
        self._place = CopiesPlace(place.since, max(place.last, at), place.count)
        self._doubtful.discard(key)
        self._bytes += _taken(size) - self._taken_by(key)
        self._held[key] = _Held(version, digest, size)
        self._unfit.pop(key, None)
        self._not_before[key] = now + WRITE_EVERY_SECONDS
        self._done(key, now)
        if held is not None and held.size > size:
            self._retry_unfit(now)

    def put_unfit(self, key: ObjectKey, version: str, reason: str, size: int, now: float) -> None:
        """This version cannot come up; what lies at the parent of it is outdated, and goes."""
        self._unfit[key] = _Unfit(version, reason, size)
        self._done(key, now)

    def erased(self, key: ObjectKey, now: float) -> None:
        """The parent keeps no copy."""
        self._doubtful.discard(key)
        if self._let_go(key):
            self._retry_unfit(now)
        self._done(key, now)

    def reread(self, named: Callable[[ObjectKey], bool], now: float) -> None:
        """Read once more what lies there of the objects that are named."""
        for key in [key for key in self._held if key in self._seen and named(key)]:
            self._dirt(key, now)

    def not_found(self, key: ObjectKey, now: float) -> None:
        """It was to be sent, and is not there."""
        self.remove(key, now)
        self._done(key, now)

    def erased_before(self) -> None:
        """What lay there before is gone."""
        self._sweep_before, self._sweeping = 0, False

    def failed(self, action: MirrorAction, now: float) -> None:
        """Nobody knows what came of it: it is done again."""
        if isinstance(action, EraseCopiesBefore):
            self._sweeping = False
            return
        self._unanswered += 1
        self._doubtful.add(action.key)
        self._let_go(action.key)
        self._dirty.setdefault(action.key, now)
        self._look(action.key)
        written = isinstance(action, SendCopy)
        self._again(action.key, now + (WRITE_EVERY_SECONDS if written else RETRY_SECONDS), now)

    def refused(self, key: ObjectKey, reason: str, now: float) -> None:
        """The space does not give the object away now; nothing else waits for it."""
        self._refused[key] = reason
        self._again(key, now + REFUSED_SECONDS, now)

    # How it stands.

    @property
    def is_complete(self) -> bool:
        """Whether all was said in this place, and nothing lies there that was not."""
        return self._place is not None and not self._sweep_before and not self._unsaid

    @property
    def behind_since(self) -> float | None:
        """The moment of which the copies are, None: they are as the space is now."""
        # The first to differ stands first.
        return next(iter(self._dirty.values()), None)

    def faults(self, most: int) -> Iterable[tuple[ObjectKey, str]]:
        """What cannot come up, and why."""
        reasons = {key: unfit.reason for key, unfit in self._unfit.items()} | self._refused
        return [(key, reasons[key]) for key in heapq.nsmallest(most, reasons)]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to come up, and nothing came up in this run."""
        return not (self._seen or self._held or self._dirty or self._doubtful)

    @property
    def is_placed(self) -> bool:
        """Whether it is known where the copies are."""
        return self._place is not None

    def assert_invariants(self) -> None:
        """Assert that what is derived agrees with what it is derived from."""
        assert self._bytes == sum(_taken(held.size) for held in self._held.values())
        assert self._bytes <= EDGE_MAX_BYTES
        waiting = {key for _, _, key in self._due}
        assert self._dirty.keys() - self._busy <= waiting
        for key, version in self._seen.items():
            held, unfit = self._held.get(key), self._unfit.get(key)
            is_said = (held and held.version == version) or (unfit and unfit.version == version)
            assert is_said or key in self._dirty
            assert (key in self._unsaid) == (not held and not unfit)
        assert self._unsaid <= self._seen.keys()
        assert list(self._dirty.values()) == sorted(self._dirty.values())

    def _lacks_room(self, key: ObjectKey, size: int) -> str:
        others = sum(taken for other, taken in self._reserved.items() if other != key)
        if self._bytes + others - self._taken_by(key) + _taken(size) > EDGE_MAX_BYTES:
            return f"TooMuch: at most {EDGE_MAX_BYTES >> 20} MiB of one edge come up"
        if key not in self._held and len(self._held) + len(self._reserved) >= EDGE_MAX_OBJECTS:
            return f"TooMuch: at most {EDGE_MAX_OBJECTS} objects of one edge come up"
        return ""

    def _is_fit(self, key: ObjectKey) -> bool:
        version, unfit = self._seen.get(key), self._unfit.get(key)
        return version is not None and (unfit is None or unfit.version != version)

    def _may_lie_there(self, key: ObjectKey) -> bool:
        return key in self._held or key in self._doubtful

    def _let_go(self, key: ObjectKey) -> bool:
        """Take it that the parent has no copy; whether it was known to have one."""
        self._bytes -= self._taken_by(key)
        return self._held.pop(key, None) is not None

    def _taken_by(self, key: ObjectKey) -> int:
        """What the copy that the parent has takes there."""
        held = self._held.get(key)
        return _taken(held.size) if held is not None else 0

    def _look(self, key: ObjectKey) -> None:
        if key in self._seen and key not in self._held and key not in self._unfit:
            self._unsaid.add(key)
        else:
            self._unsaid.discard(key)

    def _dirt(self, key: ObjectKey, now: float) -> None:
        if key in self._dirty:
            return
        self._dirty[key] = now
        if key not in self._busy:
            self._push(key, now)

    def _again(self, key: ObjectKey, at: float, now: float) -> None:
        self._busy.discard(key)
        self._reserved.pop(key, None)
        self._not_before[key] = at
        self._push(key, now)

    def _push(self, key: ObjectKey, now: float) -> None:
        at = max(now, self._not_before.get(key, now))
        heapq.heappush(self._due, (at, next(self._order), key))
        if len(self._due) > 2 * len(self._dirty) + STALE_MAX:
            # What came and went while nothing could be sent.
            last = {due[2]: due for due in self._due if due[2] in self._dirty}
            self._due = sorted(last.values())

    def _clean(self, key: ObjectKey) -> None:
        self._dirty.pop(key, None)
        if key not in self._seen:
            self._not_before.pop(key, None)

    def _done(self, key: ObjectKey, now: float) -> None:
        """An action is over: what is left to do of the object begins at its next turn."""
        self._busy.discard(key)
        self._reserved.pop(key, None)
        self._refused.pop(key, None)
        self._look(key)
        version, held = self._seen.get(key), self._held.get(key)
        unfit = self._unfit.get(key)
        if version is None or (unfit is not None and unfit.version == version):
            settled = not self._may_lie_there(key)
        else:
            settled = held is not None and held.version == version
        if settled:
            self._clean(key)
        else:
            self._dirty.setdefault(key, now)
            self._push(key, now)

    def _retry_unfit(self, now: float) -> None:
        for key in [key for key, unfit in self._unfit.items() if unfit.size]:
            if not self._lacks_room(key, self._unfit[key].size):
                del self._unfit[key]
                self._look(key)
                self._dirt(key, now)


def _taken(size: int) -> int:
    return size + COPY_BESIDE_BYTES
