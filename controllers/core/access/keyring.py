"""Under which keys content is sealed: all of it follows from the masters that the centre keeps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, repeat

from schemas.content.sealing import (
    FLEET_KEYS_MAX,
    PLACEMENT_KEYS_MAX,
    SealingKey,
    fleet_boxes,
    fleet_key,
    marking_key,
    placement_key,
    wrap_keys,
)
from schemas.values.identity import MailKey, TreeId
from schemas.values.refusals import BlobRefused

MASTERS_MAX = 8
"""What was sealed under an older one can be read by nobody, the centre included."""


@dataclass(frozen=True, slots=True)
class PlacementKeys:
    """The keys of one placement, newest first, and as its deltas bring them; none in clear."""

    keys: tuple[SealingKey, ...] = ()
    wrapped: bytes = b""
    # What objects are marked with, whatever they are sealed under.
    marking: bytes = field(default=b"", repr=False)

    @property
    def newest(self) -> SealingKey | None:
        """Under which new content is sealed."""
        return self.keys[0] if self.keys else None

    def open(self, kind: str, sealed: bytes) -> bytes | None:
        """What one of the keys opens; None if none does."""
        for key in self.keys:
            with suppress(BlobRefused):
                return key.unseal(kind, sealed)
        return None


IN_CLEAR = PlacementKeys()


@dataclass(frozen=True, slots=True)
class Keyring:
    """The masters, newest first (32 bytes each); without any nothing is sealed."""

    tree: TreeId
    masters: tuple[bytes, ...] = field(default=(), repr=False)
    # How often a placement got another key on its own, under each master.
    counts: Mapping[MailKey, tuple[int, ...]] = field(default_factory=dict)
    # Stays for ever.
    marking: bytes = field(default=b"", repr=False)

    def boxes(self, nkey: str) -> tuple[bytes, bytes]:
        """What a profile says to who hangs there, by its node's record: public keys, fleet keys."""
        if not self.masters:
            return b"", b""
        keys = [fleet_key(master) for master in self.masters[:FLEET_KEYS_MAX]]
        return fleet_boxes(self.masters[0], nkey.split(), keys)

    def keys(self, source: MailKey) -> PlacementKeys:
        """The keys of a placement."""
        if not self.masters:
            return IN_CLEAR
        keys, wrapped = _keys(self.tree, self.masters, source, self.counts.get(source, ()))
        return PlacementKeys(keys, wrapped, self.marking)

    def rotated(self, master: bytes) -> Keyring:
        """The same with a new master: another fleet key, and another key for each placement."""
        marking = self.marking or marking_key(master)
        counts = {source: (0, *each)[:MASTERS_MAX] for source, each in self.counts.items()}
        masters = (master, *self.masters)[:MASTERS_MAX]
        return replace(self, masters=masters, counts=counts, marking=marking)

    def renewed(self, source: MailKey) -> Keyring:
        """The same with another key for one placement."""
        newest, *former = self.counts.get(source, (0,))
        return replace(self, counts={**self.counts, source: (newest + 1, *former)})


@lru_cache(maxsize=16_384)
def _keys(
    tree: TreeId, masters: tuple[bytes, ...], source: MailKey, counts: tuple[int, ...]
) -> tuple[tuple[SealingKey, ...], bytes]:
    """All that the placement ever had, newest first: its content may stay under any of them."""
    had = (
        placement_key(master, source, each)
        for master, count in zip(masters, (*counts, *repeat(0, len(masters))), strict=False)
        for each in range(count, -1, -1)
    )
    found = [SealingKey(tree, key) for key in islice(had, PLACEMENT_KEYS_MAX)]
    fleet = fleet_key(masters[0])
    return tuple(found), wrap_keys(fleet, tree, source, [it.key for it in found])
