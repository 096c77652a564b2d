"""Views that browsers look at: each is asked for once a second, however many look at it.

Who looks gets the view whole, then what changed. Who is slow gets it whole again: nothing piles up.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from leafcast.ask.failures import AWAY, CallFailed, NotRunning
from leafcast.ui.kept_session import is_away
from leafcast.ui.patches import harmless, patch
from relay.core.instant import Instant
from relay.ports import Clock
from relay.space_errors import SpaceError

LOOK_SECONDS = 1.0
STILL_SECONDS = 2.0
"""Who heard nothing for so long is told that there is nothing new yet."""
SHARE, PAUSE_MAX_SECONDS = 4, 20.0
"""A look that takes long is repeated after so many times as long: the tree has other work."""
LATE_SECONDS = 5.0
"""A look that takes so much longer than the one before has no answer, and whoever looks is told."""
ONCE_MAX = 100
"""Of so many views that are asked for once an answer is kept for others that ask."""
VIEWS_MAX = 100
WATCHERS_MAX = 500

Json = dict[str, Any]
Look = Callable[[], Awaitable[Json]]
TreeError: TypeAlias = CallFailed | NotRunning | SpaceError


class TooManyWatchers(Exception):
    """More browsers look at it than it serves."""


class Message(NamedTuple):
    """What a browser is sent: `whole`, `patch`, `failed` or `still`, and its JSON."""

    event: str
    text: str


@dataclass(slots=True)
class _Watched:
    """A view that somebody looks at; `version` counts what was seen."""

    look: Look
    pause: float
    watchers: int = field(default=0, init=False)
    version: int = field(default=0, init=False)
    seen: Json | None = field(default=None, init=False)
    seen_ms: int = field(default=0, init=False)
    failed: Json | None = field(default=None, init=False)
    news: Message | None = field(default=None, init=False)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition, init=False)
    looking: asyncio.Task[None] | None = field(default=None, init=False)
    # When a look began that goes on still, and how long the one before took.
    began: Instant | None = field(default=None, init=False)
    took: float = field(default=0.0, init=False)
    # Until when what was seen is new enough for whoever asks once.
    fresh_until: float = field(default=-math.inf, init=False)


@dataclass(slots=True)
class _Once:
    """An answer that several may wait for, and until when it is new enough for others."""

    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    said: str | TreeError = ""
    fresh_until: float = -math.inf


def failure_form(error: TreeError) -> Json:
    """What the page says of an error; `away` is whether the tree as such does not answer."""
    match error:
        case CallFailed():
            said = {"code": error.code, "message": error.message, "remedy": error.remedy}
            return harmless({**said, "away": is_away(error)})  # type: ignore[no-any-return]
        case NotRunning():
            reason, _, remedy = str(error).partition("; ")
            said = {"code": "NotRunning", "message": reason, "remedy": remedy}
            return harmless({**said, "away": True})  # type: ignore[no-any-return]
        case SpaceError():
            said = {"code": error.reason, "message": error.message, "remedy": ""}
            return harmless({**said, "away": error.reason in AWAY})  # type: ignore[no-any-return]


class LiveViews:
    """All views that are looked at now."""

    def __init__(self, clock: Clock, group: asyncio.TaskGroup) -> None:
        self._clock, self._group = clock, group
        self._views: dict[str, _Watched] = {}
        self._once = OrderedDict[str, _Once]()
        self._ended = False

    async def end(self) -> None:
        """Nobody looks any more: what watches ends."""
        self._ended = True
        for view in list(self._views.values()):
            async with view.changed:
                view.changed.notify_all()

    async def watch(
        self, name: str, look: Look, pause: float = LOOK_SECONDS
    ) -> AsyncGenerator[Message]:
        """The view of this name, whole and then by what changes; raises TooManyWatchers.

        It is looked at each `pause` seconds at most. Something comes more often, so that who hears
        nothing knows that nobody is there.
        """
        if sum(it.watchers for it in self._views.values()) >= WATCHERS_MAX:
            raise TooManyWatchers
        if name not in self._views and len(self._views) >= VIEWS_MAX:
            raise TooManyWatchers
        view = self._views.setdefault(name, _Watched(look, pause))
        view.watchers += 1
        if view.looking is None:
            view.looking = self._group.create_task(self._look(view), name=f"view {name}")
        told = 0
        try:
            while not self._ended:
                await self._news(view, told)
                if view.version > told:
                    message, told = _message(view, told), view.version
                    yield message
                elif not self._ended:
                    yield Message("still", json.dumps(_lateness(view, self._clock.now())))
        finally:
            view.watchers -= 1
            if not view.watchers:
                view.looking.cancel()
                del self._views[name]

    async def once(self, name: str, look: Look, pause: float = LOOK_SECONDS) -> str:
        """The view of this name as text, of a moment ago if somebody asked then; raises as `look`.

        Who asks while another one waits for the same waits with it.
        """
        view, now = self._views.get(name), self._clock.now().seconds
        if view is not None and view.seen is not None and now <= view.fresh_until:
            return whole_text(view.seen, view.seen_ms)
        known = self._once.setdefault(name, _Once())
        self._once.move_to_end(name)
        if len(self._once) > ONCE_MAX:
            self._once.popitem(last=False)
        async with known.asking:
            if self._clock.now().seconds > known.fresh_until:
                known.said = await self._said(look)
                known.fresh_until = self._clock.now().seconds + pause
        if not isinstance(known.said, str):
            raise known.said
        return known.said

    async def _said(self, look: Look) -> str | TreeError:
        try:
            return whole_text(harmless(await look()), self._clock.now().wall_ms)
        except (CallFailed, NotRunning, SpaceError) as error:
            return error

    async def _news(self, view: _Watched, told: int) -> None:
        """Wait until there is something new, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STILL_SECONDS), view.changed:
                while view.version == told and not self._ended:
                    await view.changed.wait()

    async def _look(self, view: _Watched) -> None:
        while True:
            began = view.began = self._clock.now()
            seen, failed = view.seen, None
            try:
                seen = harmless(await view.look())
            except (CallFailed, NotRunning, SpaceError) as error:
                failed = failure_form(error)
            now, view.began = self._clock.now(), None
            took = now.seconds - began.seconds
            if failed is None:
                view.took = took
            # Whoever waits for a tree that fails waits no longer than has to be.
            share = 0.0 if failed else min(took * SHARE, PAUSE_MAX_SECONDS)
            pause = max(view.pause - took, share, 0.0)
            view.fresh_until = -math.inf if failed else now.seconds + max(view.pause, pause)
            async with view.changed:
                _noted(view, seen, failed, now.wall_ms)
                view.changed.notify_all()
            await self._clock.sleep(pause)


def _lateness(view: _Watched, now: Instant) -> Json:
    """Of when the last view is, if a look has no answer for too long; else nothing."""
    if view.began is None or now.seconds - view.began.seconds <= view.took + LATE_SECONDS:
        return {}
    return {"lateSinceMs": view.seen_ms or view.began.wall_ms}


def _noted(view: _Watched, seen: Json | None, failed: Json | None, now_ms: int) -> None:
    """Keep what was seen just now, and what it says to who knows the former."""
    if failed is not None:
        text = {"error": failed, "asOfMs": view.seen_ms or None, "nowMs": now_ms}
        view.news = Message("failed", json.dumps(text))
    elif view.seen is None or view.failed is not None:
        view.news = None
    else:
        view.news = Message("patch", json.dumps({**patch(view.seen, seen or {}), "asOfMs": now_ms}))
    if failed is None:
        view.seen, view.seen_ms = seen, now_ms
    view.failed = failed
    view.version += 1


def _message(view: _Watched, told: int) -> Message:
    """What to send to who was told up to a version."""
    if view.failed is not None and view.news is not None:
        return view.news
    if view.news is not None and told == view.version - 1 and told:
        return view.news
    return Message("whole", whole_text(view.seen or {}, view.seen_ms))


def whole_text(view: Mapping[str, Any], as_of_ms: int) -> str:
    """A view as it is sent, with the moment of which it is."""
    return json.dumps({"view": view, "asOfMs": as_of_ms})
