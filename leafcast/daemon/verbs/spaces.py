"""The verbs by which commands read the centre's spaces, and follow them, fetching what is news.

A command that is gone asks no more: what is followed for it ends a minute later, or as soon as
another needs its place. Who still asks is never sent away for a newcomer: that would begin again,
list everything, and send away another.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from leafcast.ask.api import Api, ApiError, verb
from leafcast.ask.asked_space import (
    BUSY,
    END_VERB,
    FOLLOW_VERB,
    GONE,
    NEWS_VERB,
    VERB,
    refusal_form,
)
from leafcast.ask.space_events import Form, forms_of, interest_of
from relay.ports import Clock, Dice
from relay.space_errors import SpaceError
from relay.space_port import Interests, Space, SpaceEvent
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.identity import random_id

FOLLOWERS_MAX = 32
"""Half as many as are answered at once: however many wait for news, other questions are heard."""
NEWS_SECONDS = 10.0
"""How long a question for news waits for some."""
ASKING_SECONDS = 2 * NEWS_SECONDS
"""Who asked so long ago still asks."""
FORGOTTEN_SECONDS = 60.0
"""After which one that asks no more is followed for no more."""
WAITING_MAX = 64
ANSWER_BYTES = 2_000_000
"""So much news one answer holds, or a single larger event."""

Json = dict[str, Any]
log = logging.getLogger("leafcast.api")


class Followers:
    """What is followed for commands that ask for it."""

    def __init__(self, api: Api, spaces: Mapping[str, Space], clock: Clock, dice: Dice) -> None:
        self._spaces = spaces
        self._clock = clock
        self._dice = dice
        self._followers: dict[str, _Follower] = {}
        api.serve(self)

    def end(self) -> None:
        """Follow nothing any more."""
        for follower in self._followers.values():
            follower.end()
        self._followers.clear()

    @verb(FOLLOW_VERB)
    async def _begin(self, name: str, interests: list[Any] | None) -> Json:
        """`{follower}`: by what to ask for what is told of the space; raises ApiError."""
        if name not in self._spaces:
            remedy = f"name {', '.join(self._spaces)}"
            raise ApiError("Invalid", f"there is no space {name!r}", remedy)
        wanted = None if interests is None else [interest_of(one) for one in interests]
        self._forget()
        follower = random_id(self._dice.entropy(16))
        space = self._spaces[name]
        self._followers[follower] = _Follower(space, Interests(wanted), self._clock)
        return {"follower": follower}

    @verb(NEWS_VERB)
    async def _news(self, follower: str, after: int) -> Json:
        """`{number, events}` after those of this number, or `{refused}` if it cannot go on.

        The same number again is answered the same: an answer may have been lost.
        """
        if follower not in self._followers:
            raise _gone()
        return await self._followers[follower].news(after)

    @verb(END_VERB)
    async def _end(self, follower: str) -> Json:
        """Leave the place of one that needs it no more."""
        if ended := self._followers.pop(follower, None):
            ended.end()
        return {}

    def _forget(self) -> None:
        """Leave room for one more: who asked longest ago goes first; raises ApiError if all ask."""
        now = self._clock.now().seconds
        by_age = sorted(self._followers.items(), key=lambda item: item[1].asked_at)
        for name, follower in by_age:
            crowded = len(self._followers) >= FOLLOWERS_MAX
            if follower.asked_at < now - (ASKING_SECONDS if crowded else FORGOTTEN_SECONDS):
                follower.end()
                del self._followers[name]
        if len(self._followers) >= FOLLOWERS_MAX:
            message = f"{FOLLOWERS_MAX} commands follow what changes, and no more can"
            raise ApiError(BUSY, message, "end one of them, or wait until one ends")


class _Follower:
    """Follows a space for one command, never further ahead of it than there is room for."""

    def __init__(self, space: Space, interests: Interests, clock: Clock) -> None:
        self._clock = clock
        self._waiting = asyncio.Queue[Form](WAITING_MAX)
        self._number, self._last = 0, dict[str, Any]()
        self._fetching = asyncio.Lock()
        self._refusal: Json | None = None
        self.asked_at = clock.now().seconds
        self._task = asyncio.ensure_future(self._follow(space, interests))

    def end(self) -> None:
        """Follow no more."""
        self._task.cancel()

    async def _follow(self, space: Space, interests: Interests) -> None:
        async def tell(event: SpaceEvent) -> None:
            for form in forms_of(event):
                await self._waiting.put(form)

        try:
            await space.follow(interests, tell)
        except SpaceError as error:
            self._refusal = refusal_form(error)
        except Exception as error:
            # It ends for this command alone.
            log.exception("a space cannot be followed")
            self._refusal = refusal_form(SpaceError("Internal", str(error)))

    async def news(self, after: int) -> Json:
        """As the verb answers."""
        self.asked_at = self._clock.now().seconds
        async with self._fetching:
            if after < self._number:
                return self._last
            events = await self._fetched()
            self.asked_at = self._clock.now().seconds
            if not events and self._task.done():
                if self._refusal is None:
                    raise _gone()
                return {"refused": self._refusal}
            self._number += 1
            self._last = {"number": self._number, "events": events}
            return self._last

    async def _fetched(self) -> list[Form]:
        """What waits; if nothing does, what comes within a while."""
        getting = asyncio.ensure_future(self._waiting.get())
        try:
            both = {getting, self._task}
            await asyncio.wait(both, timeout=NEWS_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            events = [getting.result()] if getting.done() else []
        finally:
            getting.cancel()
        size = len(json.dumps(events))
        while size < ANSWER_BYTES and not self._waiting.empty():
            events.append(self._waiting.get_nowait())
            size += len(json.dumps(events[-1]))
        return events


def _gone() -> ApiError:
    return ApiError(GONE, "it is followed no more", "begin again")


def register_spaces(api: Api, spaces: Mapping[str, Space]) -> None:
    """Answer the verb `space` about these, by name."""

    async def space(name: str, what: str, arguments: Json) -> Json:
        """`{value}`, or `{refused: {kind, reason, message, managers}}`.

        `what` is identity, list or get, with the arguments that relay.space_port.Space has.
        """
        if name not in spaces:
            raise ApiError("Invalid", f"there is no space {name!r}", f"name {', '.join(spaces)}")
        try:
            return {"value": await _read(spaces[name], what, arguments)}
        except SpaceError as error:
            return {"refused": refusal_form(error)}

    api.register(VERB, space)


async def _read(space: Space, what: str, arguments: Json) -> Any:
    match what, arguments:
        case "identity", {}:
            return await space.identity()
        case "list", {"group": str(group), "resource": str(resource), "namespace": str(namespace)}:
            form = arguments.get("selector")
            selector = LabelSelector.from_kubernetes(form) if form is not None else None
            listing = await space.list(group, resource, namespace=namespace, selector=selector)
            return {"objects": listing.objects, "revision": listing.revision}
        case "get", {"key": [str(group), str(resource), str(namespace), str(name)]}:
            return await space.get(ObjectKey(group, resource, namespace, name))
        case _:
            remedy = "ask for identity, list or get, with their arguments"
            raise ApiError("Invalid", f"{what!r} reads nothing in a space", remedy)
