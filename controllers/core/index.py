"""The index: the signed list of all placements in force, by which absence is judged."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.core.drafts import Draft, values_of
from schemas.chunks import build_index
from schemas.identity import ContentHash, MailKey, TreeId
from schemas.records import API_INDEX, IndexRecord, Source


def index_draft(
    tree: TreeId,
    in_force: Mapping[MailKey, int],
    now_ms: int,
    kept: frozenset[ContentHash] = frozenset(),
) -> tuple[Draft, frozenset[ContentHash]]:
    """The index of these placements (mail key to generation), and the addresses of its blobs.

    `kept` names blobs of the last index, which need not be written again.
    """
    stored = build_index(in_force.items())
    root = stored[0].reference
    record = IndexRecord(
        source=Source(API_INDEX, tree, "", "index"),
        generation=0,
        deleted=False,
        trace="",
        references=(root,),
        issued_ms=now_ms,
        root=root,
    )
    blobs = values_of(*(blob for blob in stored if blob.reference.address not in kept))
    addresses = frozenset(blob.reference.address for blob in stored)
    return Draft("index", record, blobs=blobs), addresses
