"""Who signed what a node has, as the page shows it. Pure."""

from __future__ import annotations

from typing import Any

from leafcast.proof_text import headline
from leafcast.proofs import Proof, check_proof

Json = dict[str, Any]


def proof_form_of(proof: Proof, most: int) -> Json:
    """The chain from the root keys to each placement; of a node that has more only so many."""
    checked = check_proof(proof)
    signers, record = checked.keys.signers, checked.keys.record
    used = {it.key_id for it in checked.records}
    return {
        "tone": "good" if checked.good else "bad",
        "headline": headline(proof, checked),
        "threshold": proof.roots.threshold,
        "generation": record.generation if record is not None else None,
        "refused": checked.keys.refused,
        "roots": [
            {"id": key, "tone": "good" if key in signers else "none", "key": public.hex()}
            for key, public in sorted(proof.roots.keys.items())
        ],
        "keys": [
            {
                "id": grant.key_id,
                "tone": "bad" if grant.is_revoked else "good",
                "path": str(grant.path),
                "kinds": list(grant.kinds),
            }
            for grant in (record.grants if record is not None else ())
            if grant.key_id in used
        ],
        "rows": [
            {
                "id": f"{at}",
                "tone": "bad" if it.refused else "good",
                "placement": it.placement,
                "generation": it.generation,
                "key": it.key_id,
                "payload": it.payload,
                "refused": it.refused,
            }
            for at, it in enumerate(checked.records[:most])
        ],
        "more": len(proof.records) >= most,
        "commands": [
            f"leafcast proof --at {proof.path} -o json > proof.json",
            "leafcast verify proof.json --root ROOT.pub",
        ],
    }
