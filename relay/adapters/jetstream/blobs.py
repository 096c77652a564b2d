"""Content comes out of the own BLOB stream, else of the parent's, by direct get."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fenced_streams import FencedStreams
from relay.adapters.jetstream.publish import Outgoing
from relay.adapters.jetstream.stream_reader import Stored, StreamReader
from relay.adapters.jetstream.streams import purge
from relay.adapters.jetstream.uplink import Unheard, Uplink, blob_value
from relay.core.events import BlobArrived
from relay.ports import BusBroken, Clock
from relay.waiting import some_at_once
from schemas.content.blobs import Reference, parts_of
from schemas.values import subjects
from schemas.values.identity import ContentHash, NodePath
from schemas.values.refusals import BlobRefused

PARTS_AT_ONCE = 2
"""So that a slow link to the parent brings each part in the time a request has."""
LOCAL_SECONDS = 5.0
DROPS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Found:
    """A stored value, if there is one; `unheard` if the parent did not say that there is none."""

    value: bytes | None
    local: bool
    unheard: bool = False


class Blobs:
    """The node's own store, with the parent's behind it."""

    def __init__(
        self,
        connection: Connection,
        path: NodePath,
        uplink: Uplink | None,
        replicas: int = 1,
        fenced: FencedStreams | None = None,
    ) -> None:
        self._connection = connection
        self._path = path
        self._uplink = uplink
        self._replicas = replicas
        self._fenced = fenced

    async def addresses(self, clock: Clock) -> frozenset[ContentHash]:
        """What the own store holds."""
        found: set[ContentHash] = set()

        fenced = self._fenced

        async def take(stored: Stored) -> None:
            if fenced is None or fenced.reads("BLOB", stored):
                found.add(ContentHash(subjects.parse(stored.subject).key))

        through = fenced.through("BLOB") if fenced is not None else 0
        reader = StreamReader(self._connection, clock, "BLOB", headers_only=True, through=through)
        await reader.read_all(take)
        return frozenset(found)

    def outgoing(self, values: Mapping[ContentHash, bytes]) -> list[Outgoing]:
        """The messages that keep these values."""
        path = self._path
        return [Outgoing(subjects.blob(path, address), data) for address, data in values.items()]

    async def drop(self, addresses: Sequence[ContentHash]) -> None:
        """Raises BusBroken."""
        if self._fenced is not None:
            gone = [subjects.blob(self._path, address) for address in addresses]
            await self._fenced.drop_blobs(gone)
            return

        async def erase(address: ContentHash) -> None:
            await purge(self._connection, "BLOB", subjects.blob(self._path, address))

        await some_at_once(addresses, erase, DROPS_AT_ONCE)

    async def load(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        """From the own store, unless `fresh`, or from the parent."""
        found = await self._find(reference.address, fresh=fresh)
        if found.value is None:
            return BlobArrived(reference, None, local=False, unheard=found.unheard)
        try:
            wanted = parts_of(reference, found.value)
        except BlobRefused:
            wanted = ()  # Whoever opens the value refuses it, and says so.
        local, parts = found.local, []
        among = await self._find_all([part.address for part in wanted], fresh=fresh)
        for address, part in among.items():
            if part.value is None:
                return BlobArrived(reference, None, local=False, unheard=part.unheard)
            parts.append((address, part.value))
            local = local and part.local
        return BlobArrived(reference, found.value, local, tuple(parts))

    async def _find_all(
        self, addresses: list[ContentHash], *, fresh: bool
    ) -> dict[ContentHash, _Found]:
        wanted = list(dict.fromkeys(addresses))
        found = await some_at_once(wanted, partial(self._find, fresh=fresh), PARTS_AT_ONCE)
        return dict(zip(wanted, found, strict=True))

    async def _find(self, address: ContentHash, *, fresh: bool) -> _Found:
        """A stored value, from here or from the parent."""
        if not fresh or self._uplink is None:
            value = await self._own(subjects.blob(self._path, address))
            if value is not None or self._uplink is None:
                return _Found(value, local=value is not None)
        try:
            return _Found(await self._uplink.load_blob(address), local=False)
        except Unheard:
            return _Found(None, local=False, unheard=True)

    async def _own(self, subject: str) -> bytes | None:
        """What the own store has under the subject."""
        get = f"$JS.API.DIRECT.GET.BLOB.{subject}"
        value = blob_value(await self._connection.request(get, seconds=LOCAL_SECONDS))
        if value is None and self._replicas > 1:
            # Any server of several answers that, also one that is behind: the leader is not.
            with suppress(BusBroken):
                verb = "STREAM.MSG.GET.BLOB"
                said = await self._connection.api(verb, LOCAL_SECONDS, last_by_subj=subject)
                value = b64decode(said["message"].get("data", "")) or None
        return value
