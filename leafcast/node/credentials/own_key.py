"""The key by which a node is known to its parent, and the one that is to take its place.

The new key is made here, and written down before anybody hears of it. It takes the place of the old
one only when a link was opened with it; until then, and after any crash, the old one is used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from relay.adapters.server.link_trouble import trouble_of
from relay.adapters.server.nkey_pairs import (
    BadNkey,
    new_user_nkey,
    private_key,
    public_nkey,
)
from relay.atomic_file import atomic_write
from relay.ports import Clock, Dice
from schemas.values.codec import from_json

FILE = "next_key.json"
OPENED_SECONDS, LOOK_SECONDS = 20.0, 0.1
STEADY_SECONDS = 1.0
"""A link that the parent refuses is opened, too, for a moment."""

log = logging.getLogger("leafcast")


class Linked(Protocol):
    """A node's own server, as far as its link to the parent goes."""

    @property
    def log(self) -> list[str]: ...

    async def link_with(self, seed: str) -> None: ...


class OwnKey:
    """`keep` writes down the seed with which the node starts next time."""

    def __init__(
        self, folder: Path, seed: str, keep: Callable[[str], None], clock: Clock, dice: Dice
    ) -> None:
        self._file = folder / FILE
        self._seed = seed
        self._keep = keep
        self._clock = clock
        self._dice = dice

    @property
    def seed(self) -> str:
        """The key in use."""
        return self._seed

    @property
    def nkey(self) -> str:
        """The public half of the key in use."""
        return public_nkey(self._seed)

    def private_keys(self) -> tuple[bytes, ...]:
        """What opens what is sealed to it: of the key in use, and of the next one."""
        return tuple(private_key(seed) for seed in (self._seed, self._next()) if seed)

    def make_next(self) -> str:
        """The public half of the next key, the same until that is used; raises OSError."""
        seed = self._next()
        if not seed:
            seed, _ = new_user_nkey(self._dice.entropy(32))
            atomic_write(self._file, json.dumps({"seed": seed}) + "\n")
        return public_nkey(seed)

    async def use(self, nkey: str, server: Linked) -> bool:
        """Go over to the next key; False, with all as it was, if the parent does not let it in."""
        if nkey == self.nkey:
            return True
        seed = self._next()
        if not seed or public_nkey(seed) != nkey:
            return False
        await server.link_with(seed)
        if not await self._opened(server):
            log.warning("the parent does not take the new key: the old one is used again")
            await server.link_with(self._seed)
            return False
        self._keep(seed)
        self._seed = seed
        self._file.unlink(missing_ok=True)
        return True

    async def _opened(self, server: Linked) -> bool:
        """Whether the link is open, and stays so."""
        good_since = now = self._clock.now().seconds
        until = now + OPENED_SECONDS
        while now - good_since < STEADY_SECONDS:
            await self._clock.sleep(LOOK_SECONDS)
            now = self._clock.now().seconds
            if trouble_of(server.log):
                good_since = now
                if now > until:
                    return False
        return True

    def _next(self) -> str:
        """The seed that was made before; "" if there is none that can be used."""
        try:
            seed = str(from_json(self._file.read_bytes())["seed"])
            public_nkey(seed)
        except (OSError, ValueError, KeyError, TypeError, BadNkey):
            return ""
        return seed if seed != self._seed else ""
