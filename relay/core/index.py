"""The index as a node knows it: what the centre says is in force, and how fresh that is.

Absence proves nothing except here: a placement goes for being absent only by an index that is newer
than the delta held and does not list it (design.md, §5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.blobs import Reference
from schemas.chunks import ListRoot, index_chunk_of, read_index_chunk
from schemas.identity import ContentHash, MailKey
from schemas.records import IndexRecord


@dataclass(frozen=True, slots=True)
class Unknown:
    """The index may list the key: this chunk of it would tell."""

    chunk: Reference


@dataclass(slots=True)
class IndexView:
    """The newest index whose root is here; chunks are read as acceptance needs them.

    `data` is that index as it was signed, once it came from above.
    """

    record: IndexRecord | None = None
    data: bytes = b""
    root: ListRoot | None = None
    _former: IndexRecord | None = None
    _former_data: bytes = b""
    _chunks: dict[ContentHash, dict[MailKey, int]] = field(default_factory=dict)
    _unread: tuple[Reference, ...] | None = None

    @property
    def generation(self) -> int:
        return self.record.generation if self.record else 0

    def adopt(self, record: IndexRecord, root: ListRoot, data: bytes = b"") -> None:
        """Look through a newer index from now on; chunks it shares with the former stay."""
        if not self.unread():
            self._former, self._former_data = self.record, self.data
        self.record, self.root, self.data = record, root, data
        named = {chunk.address for chunk in root.chunks}
        self._chunks = {a: chunk for a, chunk in self._chunks.items() if a in named}
        self._unread = None

    def add_chunk(self, address: ContentHash, plain: bytes) -> None:
        """Take a chunk of the current root; raises RecordRefused."""
        self._chunks[address] = read_index_chunk(plain)
        self._unread = None

    @property
    def former(self) -> IndexRecord | None:
        """The last one that was all here, while this one is not: its chunks may never come."""
        return self._former if self.unread() else None

    def signed(self) -> list[bytes]:
        """Both, as they were signed."""
        found = (self.data, self._former_data if self.former else b"")
        return [data for data in found if data]

    def listed(self, key: MailKey) -> int | Unknown | None:
        """The generation that the index lists for the key, None if it lists none."""
        if self.root is None:
            return None
        chunk = index_chunk_of(self.root, key)
        held = self._chunks.get(chunk.address)
        return Unknown(chunk) if held is None else held.get(key)

    def unread(self) -> tuple[Reference, ...]:
        """The chunks that are not here yet."""
        if self._unread is None:
            chunks = self.root.chunks if self.root else ()
            self._unread = tuple(chunk for chunk in chunks if chunk.address not in self._chunks)
        return self._unread
