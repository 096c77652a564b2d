"""A placement as the ledger and the blobs behind it say it, read step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controllers.core.access.keyring import PlacementKeys
from controllers.core.blob_reading import BlobReading
from controllers.core.translation.stored_arms import Entries, StoredArm
from controllers.core.translation.translate import IssuedDelta
from schemas.content.blobs import Reference
from schemas.content.manifest import read_manifest, read_root
from schemas.records.records import DeltaBody, DeltaHead, Gate
from schemas.values.identity import ContentHash
from schemas.values.refusals import WireRefused


def read_issued(
    head: DeltaHead, body: DeltaBody | None, keys: PlacementKeys
) -> BlobReading[IssuedDelta]:
    """A placement as the ledger and the blobs behind it say it; `lost` is left to be filled in.

    Of a body that this program cannot read nothing is known.
    """
    if body is None:
        return IssuedDelta((), None, head=head)
    gates = body.gates
    issued = IssuedDelta(
        gates, None, head=head, collectors=body.collectors, after=body.after, wrapped=body.key
    )
    root = target_of(gates)
    if root is None:
        return replace(issued, entries={})
    others: dict[ContentHash, Entries] = {}
    for arm in dict.fromkeys(gate.arm for gate in gates if gate.arm not in (None, root)):
        assert arm is not None
        read = yield from read_arm(arm, keys)
        if read is not None:
            others[arm.address] = read.entries
    target = yield from read_arm(root, keys)
    if target is None:
        return replace(issued, others=others)
    return replace(
        issued,
        entries=target.entries,
        kept=target.kept,
        others=others,
        sealed_under=target.sealed_under,
    )


def read_arm(root: Reference, keys: PlacementKeys) -> BlobReading[StoredArm | None]:
    """A content as the store has it; None if it cannot be read, or no key here opens it."""
    try:
        found = yield (root,)
        plain = found[root.address]
        chunks = read_root(plain).chunks
        manifest = read_manifest(plain, (yield chunks), keys.keys)
    except (KeyError, WireRefused):
        return None
    kept = frozenset({root.address, *(chunk.address for chunk in chunks)})
    entries = {entry.key: entry for entry in manifest.entries}
    return StoredArm(entries, kept, manifest.key, manifest.upsync)


def target_of(gates: Sequence[Gate]) -> Reference | None:
    """The content of the newest revision: what the last gate gives, if none has a name."""
    newest = max(gates, key=lambda gate: gate.revision)
    return newest.arm if newest.revision else gates[-1].arm
