"""A proof as text: from the roots to what a node has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from leafcast.object_proofs import ListChecked
from leafcast.proofs import Proof, ProofChecked, RecordChecked, grant_of
from leafcast.show.object_tables import laid_out
from schemas.content.blobs import TEMPLATE
from schemas.content.manifest import ManifestEntry
from schemas.records.roots import Roots
from schemas.values.identity import NodePath
from schemas.values.wording import many

HASH_SHOWN = 16
CLOSED_REMEDY = "make the file anew: leafcast proof --with-key"


def proof_lines(proof: Proof, checked: ProofChecked, trusted: Roots | None = None) -> list[str]:
    """What was checked, from these roots or from those of the proof, and what became of it."""
    rows = [("PLACEMENT", "GENERATION", "SIGNED BY", "PAYLOAD", "CHECKED")]
    rows += [
        (
            it.placement,
            str(it.generation),
            it.key_id,
            it.payload[:HASH_SHOWN],
            it.refused or _closed(it) or "good",
        )
        for it in checked.records
    ]
    table = laid_out(rows) if checked.records else ["It has no placement."]
    lines = [headline(proof, checked), *_chain(trusted or proof.roots, checked), *table]
    for it in checked.records:
        if it.listed is not None and not it.refused:
            lines += _object_lines(it.placement, it.listed)
    return lines


def has_none(at: NodePath, placement: str) -> tuple[str, str]:
    """Why there is no proof of a placement, and what to do."""
    return f"{at} has no placement {placement}", f"see what it has: leafcast proof --at {at}"


def _closed(record: RecordChecked) -> str:
    return "good, and sealed" if record.listed is not None and record.listed.is_closed else ""


def _object_lines(placement: str, listed: ListChecked) -> Iterator[str]:
    """How a placement leads to the object."""
    entry = listed.entry
    yield f"by {placement}:"
    yield f"  manifest  {listed.manifest}"
    yield f"  object    {listed.address}" + (
        ", which each cluster customizes" if is_customized(entry) else ""
    )
    if entry is None:
        yield f"  sealed: that this is of the object is the node's word; {CLOSED_REMEDY}"
    else:
        yield f"  source    {source_text(entry)}"


def is_customized(entry: ManifestEntry | None) -> bool:
    """Whether what was signed is what each cluster customizes."""
    return entry is not None and entry.reference.kind == TEMPLATE


def source_text(entry: ManifestEntry) -> str:
    """Which object of the centre it is a copy of."""
    uid = entry.uid if entry.source_object is not None else "not known"
    return f"uid {uid}, revision {entry.revision}"


def headline(proof: Proof, checked: ProofChecked) -> str:
    """Of which node and moment it is, and whether all is signed as it has to be."""
    bad = sum(bool(it.refused) for it in checked.records)
    what = many(len(checked.records), "placement")
    if proof.about is not None:
        what = f"{proof.about.key} by {what}"
    moment = f"{dt.datetime.fromtimestamp(proof.at_ms / 1000, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    if checked.good:
        said = "each signature leads to the root keys"
    else:
        said = checked.keys.refused or f"{bad} of them not signed as they have to be"
    return f"{proof.path} of tree {proof.tree}, {moment}: {what}, {said}"


def _chain(roots: Roots, checked: ProofChecked) -> Iterator[str]:
    keys = checked.keys
    signers = ", ".join(keys.signers) or "nobody"
    of = many(len(roots.keys), "root")
    yield f"root keys that signed: {signers} ({roots.threshold} of {of} needed)"
    if keys.record is not None:
        yield f"keys in force: generation {keys.record.generation}"
    for key_id in sorted({it.key_id for it in checked.records}):
        if (grant := grant_of(keys, key_id)) is not None:
            may = ", ".join(grant.kinds) or "nothing: it is revoked"
            yield f"signing key {key_id}: at and below {grant.path}, may sign {may}"
