"""Who signed what a node has, as the page shows it. Pure.

No key of a placement is in it: who opened what leads to an object keeps that to himself.
"""

from __future__ import annotations

from typing import Any

from leafcast.object_proofs import ListChecked
from leafcast.proof_text import headline, is_customized, source_text
from leafcast.proofs import Proof, ProofChecked, check_proof
from leafcast.ui.described import named
from leafcast.ui.tones import Tone
from schemas.reports.upsync import SECRETS

Json = dict[str, Any]


def proof_form_of(proof: Proof, most: int) -> Json:
    """The chain from the root keys to each placement, or to one object; only so many rows."""
    checked = check_proof(proof)
    signers, record = checked.keys.signers, checked.keys.record
    used = {it.key_id for it in checked.records}
    about = proof.about
    is_secret = about is not None and about.key.group_resource == SECRETS
    return {
        "tone": _tone(proof, checked),
        "headline": _headline(proof, checked),
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
        "object": str(about.key) if about is not None else "",
        "isSecret": is_secret,
        "rows": [
            {
                "id": f"{at}",
                "tone": "bad" if it.refused else "good",
                "placement": it.placement,
                "generation": it.generation,
                "key": it.key_id,
                "payload": it.payload,
                "refused": it.refused,
                "object": _object_form(it.listed, is_secret=is_secret) if it.listed else None,
            }
            for at, it in enumerate(checked.records[:most])
        ],
        "more": len(proof.records) >= most,
        "commands": _commands(proof, checked),
    }


def _tone(proof: Proof, checked: ProofChecked) -> Tone:
    if proof.about is not None and not proof.records and checked.good:
        return "none"
    return "good" if checked.good else "bad"


def _headline(proof: Proof, checked: ProofChecked) -> str:
    if _tone(proof, checked) == "none" and proof.about is not None:
        return f"No placement delivers {proof.about.key} at {proof.path} now: nobody signed it."
    return headline(proof, checked)


def _object_form(listed: ListChecked, *, is_secret: bool) -> Json:
    sealed = listed.is_closed or listed.sealed_under is not None
    # A hash of what is short lets people try what it is of; under a key they cannot.
    address = "" if is_secret and not sealed else listed.address
    entry = listed.entry
    return {
        "manifest": listed.manifest,
        "address": address,
        "source": source_text(entry) if entry is not None else "",
        "customized": is_customized(entry),
        "sealed": sealed,
        "closed": listed.is_closed,
    }


def _commands(proof: Proof, checked: ProofChecked) -> list[str]:
    """What checks it elsewhere; nothing of an object whose names may be no names."""
    if proof.about is None:
        return [
            f"leafcast proof --at {proof.path} -o json > proof.json",
            "leafcast verify proof.json --root ROOT.pub",
        ]
    if not proof.records or not (said := named(proof.about.key)):
        return []
    lists = [it.listed for it in checked.records if it.listed is not None]
    sealed = any(it.is_closed or it.sealed_under is not None for it in lists)
    opened = " --with-key" if sealed else ""
    return [
        f"leafcast proof --object {said} --at {proof.path}{opened} -o json > proof.json",
        "leafcast verify proof.json --root ROOT.pub -f MANIFEST.yaml",
    ]
