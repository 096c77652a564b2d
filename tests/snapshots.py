"""Snapshots for tests: a view of a tree, whole or with blobs missing."""

from relay.core.records.snapshot import SnapshotView
from schemas.content import blobs
from schemas.content.blobs import open_value
from schemas.records.snapshots import (
    SNAPSHOT_TERMS,
    BlobPointer,
    SnapshotRecord,
    Term,
    TermEntry,
    TermList,
    encode,
)

TERM = Term(b"term-one")
OWN_TERM = TermEntry(TERM, None)


def plain_of(blob):
    return open_value(blob.reference, blob.values[blob.reference.address])


def nodes_of(tree):
    return {blob.reference.address: plain_of(blob) for blob in tree.blobs()}


def record_of(tree, generation=2**62, reign=0, *, settled=0, terms=(OWN_TERM,)):
    """What is signed of this tree."""
    known = blobs.store(SNAPSHOT_TERMS, encode(TermList(tuple(terms))))
    return SnapshotRecord(
        generation=generation,
        term=TERM,
        time_ms=1000,
        expires_ms=2000,
        settled=settled,
        terms=BlobPointer.to(known.reference),
        root=tree.root,
        height=tree.height,
        count=tree.count,
        reign=reign,
    )


def view_of(tree, hidden=(), *, generation=2**62, settled=0, terms=(OWN_TERM,), reign=0):
    """The view of a snapshot of this tree; blobs at these addresses are not here."""
    known = blobs.store(SNAPSHOT_TERMS, encode(TermList(tuple(terms))))
    record = record_of(tree, generation, reign, settled=settled, terms=terms)
    nodes = nodes_of(tree) | {known.reference.address: plain_of(known)}
    return SnapshotView(record, {a: plain for a, plain in nodes.items() if a not in hidden})
