"""A host's streams as its process meets them: read at the start, and looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay.core.events import BlobArrived, MailSlot, Remembered
from schemas.content.blobs import Reference
from schemas.values.identity import MailKey
from schemas.values.subjects import NODE_SELF
from tests.doubles.memory.streams import MemoryStreams

if TYPE_CHECKING:
    from tests.simulation.host import Host


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


def looked_up(host: Host, parent: Host | None, reference: Reference, *, fresh: bool) -> BlobArrived:
    """What the host hears of a blob now: the value, that there is none, or nothing at all.

    With `fresh` its own copy is damaged.
    """
    value = None if fresh else host.streams.blobs.get(reference.address)
    if value is not None:
        return BlobArrived(reference, value, local=True)
    if parent is None or not host.linked or host.path in host.world.mute:
        return BlobArrived(reference, None, local=False, unheard=not host.path.is_root)
    value = parent.streams.blobs.get(reference.address)
    if value is not None and host.world.lying_blobs:
        value = host.world.lying_blobs(parent, reference, value)
    return BlobArrived(reference, value, local=False)
