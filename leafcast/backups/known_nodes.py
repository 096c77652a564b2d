"""Which nodes below the centre a backup knows: those whose records its ledger holds."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from leafcast.backups.centre_streams import RELAY
from leafcast.backups.whole_file import SNAPSHOTS, opened, read_backup, stream_messages
from relay.adapters.jetstream.stream_contents import is_of_members
from relay.adapters.server.store_key import StoreKey
from schemas.records.records import NodeRecord
from schemas.records.signed_records import read_signed
from schemas.records.signing import decode_envelope
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused

_LEDGER, _KIND = f"{RELAY}/OWN", "node"


def known_nodes(file: Path, key: StoreKey | None) -> frozenset[NodePath]:
    """Those that may be let in, and whose parents may be; raises BackupUnusable.

    None of a backup of form 1, which only a server reads.
    """
    found: dict[str, NodePath | None] = {}
    with opened(file, key) as tar:
        backup = read_backup(file, tar)
        if backup.form == SNAPSHOTS or _LEDGER not in backup.streams:
            return frozenset()
        for message in stream_messages(file, tar, _LEDGER):
            # What comes later under a subject takes the place of what was there.
            found[message.subject] = None if is_of_members(message) else _node_of(message.data)
    paths = {path for path in found.values() if path is not None}
    return frozenset(it for it in paths if all(up in paths for up in _above(it)))


def _node_of(data: bytes) -> NodePath | None:
    """Whose record it is; None of another one, of a note, and of a node whose keys are void."""
    with suppress(RecordRefused):
        envelope = decode_envelope(data)
        if envelope.kind == _KIND:
            record = read_signed(envelope).record
            assert isinstance(record, NodeRecord)
            return record.path if record.nkey else None
    return None


def _above(path: NodePath) -> list[NodePath]:
    """The nodes between it and the centre."""
    return [NodePath(path.names[:at]) for at in range(1, len(path.names))]
