"""A host's streams as its process meets them: read at the start, written in stages, looked up."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from relay.core import effects as fx
from relay.core.events import BlobArrived, MailSlot, Remembered
from schemas.content.blobs import Reference
from schemas.values.identity import MailKey
from schemas.values.subjects import NODE_SELF
from tests.doubles.memory.streams import MemoryStreams

if TYPE_CHECKING:
    from tests.simulation.host import Host

STAGES: dict[type, int] = {
    fx.KeepBlob: 0,
    fx.StoreOwn: 0,
    fx.WriteMail: 0,
    fx.AckMail: 4,
    fx.DropBlobs: 5,
}
"""The driver's stages, each kept before the next; what is not named here comes last.

Blobs, own records and mail are kept side by side: a crash may keep any of them.
"""
CHANGING_STAGES = STAGES | {fx.AddChild: 1, fx.RemoveChild: 1, fx.WriteMail: 2}
"""Of a batch in which children come or go: their mail waits for that."""


def stages_of(effects: Iterable[fx.Effect]) -> dict[type, int]:
    """The stages of a batch."""
    changing = any(isinstance(effect, fx.AddChild | fx.RemoveChild) for effect in effects)
    return CHANGING_STAGES if changing else STAGES


def staged(made: list[fx.Effect], random: Random | None = None) -> list[fx.Effect]:
    """A batch's effects in the driver's stages: own records once a key, one acknowledgement.

    With `random` what is kept side by side comes in any order.
    """
    kept: dict[str, fx.Effect] = {}
    acks: list[fx.Effect] = []
    others: list[fx.Effect] = []
    for effect in fx.still_meant(made):
        match effect:
            case fx.StoreOwn():
                kept[effect.key] = effect
            case fx.AckMail():
                acks = [effect]
            case _:
                others.append(effect)
    stages, last = stages_of(made), max(STAGES.values()) + 1
    ordered = sorted([*kept.values(), *acks, *others], key=lambda e: stages.get(type(e), last))
    if random is not None:
        together = sum(1 for e in ordered if stages.get(type(e)) == 0)
        first = ordered[:together]
        random.shuffle(first)
        ordered[:together] = first
    return ordered


def read_back(streams: MemoryStreams) -> Remembered:
    """All own records, the headers of the children's mail, the names of the blobs."""
    slots = []
    for (child, key), kept in streams.mail.items():
        write = kept.mail
        assert write is not None
        told = (kept.sequence, write.generation, write.payload_hash, write.has_body)
        slots.append(MailSlot(child, MailKey(key), *told))
    heard = frozenset(
        child for (child, key), _ in streams.stat.items() if key == f"_node.{NODE_SELF}"
    )
    own, blobs = tuple(streams.own.values()), frozenset(streams.blobs)
    return Remembered(own, tuple(slots), blobs, heard)


def looked_up(host: Host, parent: Host | None, reference: Reference) -> BlobArrived:
    """What the host hears of a blob now: the value, that there is none, or nothing at all."""
    value = host.streams.blobs.get(reference.address)
    if value is not None:
        return BlobArrived(reference, value, local=True)
    if parent is None or not host.linked or host.path in host.world.mute:
        return BlobArrived(reference, None, local=False, unheard=not host.path.is_root)
    value = parent.streams.blobs.get(reference.address)
    if value is not None and host.world.lying_blobs:
        value = host.world.lying_blobs(parent, reference, value)
    return BlobArrived(reference, value, local=False)
