"""What a syncer has before it: the next action that may begin, and those that wait after a failure.

An action begins only when those of lower rank have begun and ended, failed, or hung for so long
that one bad object would hold up the others.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

from relay.syncer.plan import ApplyObject, InspectObject, ObjectAction, PruneObject, rank
from schemas.objects.objects import ObjectKey

REQUESTS_MAX = 16
"""At the space at once."""
BEGUN_MIN, BEGUN_MAX = 32, 48
"""Begun at once, so that some are made ready while others are at the space; with fewer than the
first as many begin as there is room for: one write keeps the intents of all of them.
"""
PATIENCE_SECONDS = 1.0
BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.5, 300.0
_EXPONENT_MAX = 20


@dataclass(slots=True)
class _Waiting:
    """An action that is to be done; `due` is when it may begin, `tries` how often it failed."""

    action: ObjectAction
    due: float = 0.0
    tries: int = 0


class Pending:
    """The actions to be done, one per object at most, and those that are being done."""

    def __init__(self) -> None:
        self._waiting: dict[ObjectKey, _Waiting] = {}
        self._running: dict[ObjectKey, tuple[tuple[int, int], float]] = {}
        # Entries that the mapping does not hold any more are skipped when they come up.
        self._ready: list[tuple[tuple[int, int, ObjectKey], int, ObjectAction]] = []
        self._pushes = itertools.count()
        self._delayed: list[tuple[float, ObjectKey]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting or self._running)

    def put(self, key: ObjectKey, action: ObjectAction | None, due: float = 0.0) -> None:
        """What is to be done about the object; a change makes earlier failures forgotten.

        It may begin at once, or when it is due.
        """
        held = self._waiting.get(key)
        if action is None:
            self._waiting.pop(key, None)
        elif held is None or held.action != action:
            self._waiting[key] = _Waiting(action, due)
            if due:
                heapq.heappush(self._delayed, (due, key))
            else:
                self._push(action)

    def hurry(self, *keys: ObjectKey) -> None:
        """What made the actions fail may be over: try them again now."""
        for key in keys:
            held = self._waiting.get(key)
            if held and held.tries:
                held.due, held.tries = 0.0, 0
                self._push(held.action)

    def begin(self, now: float) -> list[ObjectAction]:
        """The next actions, which then run; none if none may begin now."""
        self._wake_delayed(now)
        begun: list[ObjectAction] = []
        room = BEGUN_MAX if len(self._running) < BEGUN_MIN else 0
        while self._ready and len(self._running) < room:
            order, _, action = self._ready[0]
            key = order[2]
            held = self._waiting.get(key)
            if held is None or held.action != action or held.due > now or key in self._running:
                # One that runs is looked at again when it ends.
                heapq.heappop(self._ready)
                continue
            if self._held_up(order[:2], now):
                break
            heapq.heappop(self._ready)
            self._running[key] = (order[:2], now)
            begun.append(action)
        return begun

    def succeeded(self, key: ObjectKey, action: ObjectAction) -> None:
        """The action was carried out; what it was superseded by becomes next."""
        del self._running[key]
        held = self._waiting.get(key)
        if held and held.action == action:
            del self._waiting[key]
        elif held:
            self._push(held.action)

    def failed(self, key: ObjectKey, action: ObjectAction, now: float, fraction: float) -> None:
        """The action is to be tried again after a while that doubles; `fraction` scatters it."""
        del self._running[key]
        held = self._waiting.get(key)
        if held is None:
            return
        if held.action != action:
            self._push(held.action)
            return
        span = BACKOFF_SECONDS_MIN * 2.0 ** min(held.tries, _EXPONENT_MAX)
        held.tries += 1
        held.due = now + min(span, BACKOFF_SECONDS_MAX) * (0.5 + fraction / 2)
        heapq.heappush(self._delayed, (held.due, key))

    def next_due(self, now: float) -> float | None:
        """When to look again if nothing else happens."""
        moments = [self._delayed[0][0]] if self._delayed else []
        if self._ready and len(self._running) < BEGUN_MIN:
            held_up_until = [since + PATIENCE_SECONDS for _, since in self._running.values()]
            moments += [moment for moment in held_up_until if moment > now]
        return min(moments, default=None)

    def _push(self, action: ObjectAction) -> None:
        heapq.heappush(self._ready, (rank(action), next(self._pushes), action))

    def _held_up(self, order: tuple[int, int], now: float) -> bool:
        return any(
            other < order and now < since + PATIENCE_SECONDS
            for other, since in self._running.values()
        )

    def _wake_delayed(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            _, key = heapq.heappop(self._delayed)
            held = self._waiting.get(key)
            if held and held.due <= now:
                self._push(held.action)


def key_of(action: ObjectAction) -> ObjectKey:
    """The object that an action is about."""
    match action:
        case ApplyObject(wanted):
            return wanted.key
        case PruneObject(done):
            return done.key
        case InspectObject(key):
            return key
