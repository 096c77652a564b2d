"""What a process that starts reads back from its node's streams."""

from __future__ import annotations

from relay.adapters.memory.streams import MemoryStreams
from relay.core.events import MailSlot, Remembered
from schemas.identity import MailKey
from schemas.subjects import NODE_SELF


def read_back(streams: MemoryStreams) -> Remembered:
    """All own records, the headers of the children's mail, the names of the blobs."""
    slots = []
    for (child, key), kept in streams.mail.items():
        write = kept.mail
        assert write is not None
        hashed, content = write.payload_hash, write.has_body
        told = (kept.sequence, write.generation, hashed, content, write.more)
        slot = MailSlot(child, MailKey(key), *told)
        slots.append(slot)
    heard = frozenset(
        child for (child, key), _ in streams.stat.items() if key == f"_node.{NODE_SELF}"
    )
    own, blobs = tuple(streams.own.values()), frozenset(streams.blobs)
    return Remembered(own, tuple(slots), blobs, heard)
