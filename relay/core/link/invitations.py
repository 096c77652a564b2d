"""Until when a child may begin its first session; once it did, it may come for ever.

A bundle holds a key, and who has the bundle could come with it at any time. So its parent looks at
the time that the node record says, by its own clock: for that it needs nobody above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from relay.core.effects import Effect, StoreOwn
from relay.core.events import Instant
from schemas.records.records import FirstSession
from schemas.values.subjects import FIRST_SESSION_PREFIX
from schemas.values.wire import INT_MAX, encode

LOOK_SECONDS = 60.0
"""A clock that was set is looked at so often, besides when anything happens."""


class Awaited(NamedTuple):
    """A child of which no session began with these keys, and until when one may."""

    nkey: str
    until_ms: int


class Invitations:
    """The children of one node by name; `began` are the keys of first sessions, as noted."""

    def __init__(self, began: Mapping[str, str], out: list[Effect]) -> None:
        self._began = dict(began)
        self._out = out
        self._awaited: dict[str, Awaited] = {}
        self._next_ms = INT_MAX

    def put(self, name: str, nkey: str, until_ms: int, now_ms: int) -> str:
        """A record names a child: the keys by which it is let in now."""
        if self._began.get(name, nkey) != nkey:
            self._forget_session(name)
        if not until_ms or name in self._began:
            self._awaited.pop(name, None)
        elif until_ms < now_ms:
            self._awaited.pop(name, None)
            return ""
        else:
            self._awaited[name] = Awaited(nkey, until_ms)
            self._next_ms = min(self._next_ms, until_ms)
        return nkey

    def forget(self, name: str) -> None:
        """There is no such child any more."""
        self._awaited.pop(name, None)
        if name in self._began:
            self._forget_session(name)

    def session_began(self, name: str) -> None:
        """A program came as this child: noted, so that it holds in the next run."""
        awaited = self._awaited.pop(name, None)
        if awaited is not None:
            self._began[name] = awaited.nkey
            note = encode(FirstSession(awaited.nkey))
            self._out.append(StoreOwn(f"{FIRST_SESSION_PREFIX}{name}", note))

    def take_lapsed(self, now_ms: int) -> list[str]:
        """The children whose time is over, each once."""
        if now_ms <= self._next_ms:
            return []
        lapsed = [name for name, it in self._awaited.items() if it.until_ms < now_ms]
        for name in lapsed:
            del self._awaited[name]
        self._next_ms = min((it.until_ms for it in self._awaited.values()), default=INT_MAX)
        return lapsed

    def deadline(self, now: Instant) -> float | None:
        """When to look next; None if nobody is awaited."""
        if not self._awaited:
            return None
        left = (self._next_ms + 1 - now.wall_ms) / 1000
        return now.seconds + min(max(left, 0.0), LOOK_SECONDS)

    def _forget_session(self, name: str) -> None:
        del self._began[name]
        self._out.append(StoreOwn(f"{FIRST_SESSION_PREFIX}{name}", None))
