"""Views that browsers look at: each is asked for once a second, however many look at it.

Who looks gets the view whole, then what changed. Who is slow gets it whole again: nothing piles up.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui.kept_session import AWAY
from leafcast.ui.patches import harmless, patch
from relay.ports import Clock
from relay.space_errors import SpaceError

LOOK_SECONDS = 1.0
STILL_SECONDS = 2.0
"""Who heard nothing for so long is told that there is nothing new yet."""
SHARE = 4
"""A look that takes long is repeated after so many times as long: the tree has other work."""
VIEWS_MAX = 100
WATCHERS_MAX = 500

Json = dict[str, Any]
Look = Callable[[], Awaitable[Json]]


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


def failure_form(error: CallFailed | NotRunning | SpaceError) -> Json:
    """What the page says of an error; `away` is whether the tree as such does not answer."""
    match error:
        case CallFailed():
            said = {"code": error.code, "message": error.message, "remedy": error.remedy}
            return harmless({**said, "away": error.code in AWAY})  # type: ignore[no-any-return]
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
                    yield Message("still", "{}")
        finally:
            view.watchers -= 1
            if not view.watchers:
                view.looking.cancel()
                del self._views[name]

    async def _news(self, view: _Watched, told: int) -> None:
        """Wait until there is something new, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STILL_SECONDS), view.changed:
                while view.version == told and not self._ended:
                    await view.changed.wait()

    async def _look(self, view: _Watched) -> None:
        while True:
            began = self._clock.now()
            seen, failed = view.seen, None
            try:
                seen = harmless(await view.look())
            except (CallFailed, NotRunning, SpaceError) as error:
                failed = failure_form(error)
            now = self._clock.now()
            async with view.changed:
                _noted(view, seen, failed, now.wall_ms)
                view.changed.notify_all()
            took = now.seconds - began.seconds
            await self._clock.sleep(max(view.pause - took, took * SHARE, 0.0))


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
