"""A proof as text: from the roots to what a node has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from leafcast.proofs import Proof, ProofChecked, grant_of
from leafcast.show.object_tables import laid_out
from schemas.records.roots import Roots
from schemas.values.wording import many

HASH_SHOWN = 16


def proof_lines(proof: Proof, checked: ProofChecked, trusted: Roots | None = None) -> list[str]:
    """What was checked, from these roots or from those of the proof, and what became of it."""
    rows = [("PLACEMENT", "GENERATION", "SIGNED BY", "PAYLOAD", "CHECKED")]
    rows += [
        (
            it.placement,
            str(it.generation),
            it.key_id,
            it.payload[:HASH_SHOWN],
            it.refused or "good",
        )
        for it in checked.records
    ]
    table = laid_out(rows) if checked.records else ["It has no placement."]
    return [headline(proof, checked), *_chain(trusted or proof.roots, checked), *table]


def headline(proof: Proof, checked: ProofChecked) -> str:
    """Of which node and moment it is, and whether all is signed as it has to be."""
    bad = sum(bool(it.refused) for it in checked.records)
    what = many(len(checked.records), "placement")
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
