"""Sealed content in small: one line of keys seals it all, and each delta brings what it needs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from controllers.core.access.keyring import Keyring, PlacementKeys
from relay.adapters.server.nkey_pairs import new_user_nkey, private_key
from schemas.content.blobs import Reference
from schemas.content.sealing import (
    SealingKey,
    fleet_key,
    mark,
    marking_key,
    wrap_keys,
)
from schemas.values.identity import MailKey, NodePath, TreeId, random_id

TREE = TreeId(random_id(b"simulated tree  "))
MASTERS = tuple(bytes([number]) * 32 for number in range(1, 9))
MARKING = marking_key(MASTERS[0])

CHANGES_MAX = 12
"""So often another key is made for a placement alone, in any life."""

PLAIN_MARK = b"\xa4text"
"""In the plain bytes of each content."""


@dataclass(frozen=True)
class WorldRing(Keyring):
    """A ring that seals for each node once, and for some not at all, as if it did not know them."""

    keyless: frozenset[str] = frozenset()

    def rotated(self, _master: bytes) -> WorldRing:
        """The next of all masters is there; content stays under the keys that it has."""
        return replace(self, masters=tuple(reversed(MASTERS[: len(self.masters) + 1])))

    def keys(self, source: MailKey) -> PlacementKeys:
        changes, *_ = self.counts.get(source, (0,))
        wrap = wrapped(source, len(self.masters) - 1, changes)
        return PlacementKeys(content_keys(changes), wrap, MARKING)

    def boxes(self, nkey: str) -> tuple[bytes, bytes]:
        return (b"", b"") if nkey in self.keyless else boxes_for(nkey, len(self.masters) - 1)


def ring_of(rotations: int) -> WorldRing:
    """The ring after so many rotations."""
    return WorldRing(TREE, tuple(reversed(MASTERS[: rotations + 1])))


@lru_cache
def marked(clear: Reference) -> str:
    """What a sealed object is known by."""
    return mark(MARKING, clear.address)


@cache
def all_fleet_keys() -> tuple[bytes, ...]:
    return tuple(fleet_key(master) for master in MASTERS)


@cache
def content_keys(changes: int) -> tuple[SealingKey, ...]:
    """The keys of a placement after so many changes, newest first."""
    content = MailKey("content")
    return Keyring(TREE, MASTERS[:1], {content: (changes,)}).keys(content).keys


def content_key(changes: int) -> SealingKey:
    """Under which new content is sealed then."""
    return content_keys(changes)[0]


@cache
def secrets() -> tuple[bytes, ...]:
    """What no message says in clear."""
    return (*(key.key for key in content_keys(CHANGES_MAX)), *all_fleet_keys())


@lru_cache
def wrapped(placement: MailKey, rotations: int, changes: int = 0) -> bytes:
    """What a delta of a placement brings."""
    keys = [key.key for key in content_keys(changes)]
    return wrap_keys(fleet_key(MASTERS[rotations]), TREE, placement, keys)


@lru_cache
def boxes_for(nkeys: str, rotations: int) -> tuple[bytes, bytes]:
    """What the profile of who has these nkeys brings."""
    return Keyring(TREE, ring_of(rotations).masters).boxes(nkeys)


@lru_cache
def nkey_of(path: NodePath, number: int = 0) -> str:
    """The first key that a node makes at a path, or another one."""
    return new_user_nkey(_entropy(path, number))[1]


@lru_cache
def private_key_of(path: NodePath, number: int = 0) -> bytes:
    return private_key(new_user_nkey(_entropy(path, number))[0])


def _entropy(path: NodePath, number: int) -> bytes:
    return hashlib.sha256(f"nkey{path}{number or ''}".encode()).digest()
