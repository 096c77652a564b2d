"""Whom a node believes: a record counts only if a key in force signed it for this tree.

Roots are pinned by the join bundle and sign only the `keys` record; the keys it grants sign the
rest, each within its scope (design.md, "Signatures").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from schemas.identity import KeyId, TreeId
from schemas.records import KeyGrant, KeysRecord, Record
from schemas.signing import Envelope


class Verdict(Enum):
    """What a signature proves now; with UNKNOWN_KEY a newer `keys` record may still settle it."""

    BELIEVED = "believed"
    UNKNOWN_KEY = "signed by a key that is not known here"
    OUT_OF_SCOPE = "its key may not sign this"
    FORGED = "its signature does not fit"


@dataclass(slots=True)
class Trust:
    """The keys in force in one tree."""

    tree: TreeId
    roots: Mapping[KeyId, bytes]
    granted: dict[KeyId, KeyGrant] = field(default_factory=dict)
    adopted: int = 0
    """How often other keys came in force: what was believed before is to be judged again."""

    def judge(self, envelope: Envelope, record: Record) -> Verdict:
        """Whether to believe a record that the envelope's payload says."""
        if envelope.kind == "keys":
            public_key = self.roots.get(envelope.key_id)
        else:
            grant = self.granted.get(envelope.key_id)
            if grant is not None and not grant.covers(envelope.kind, record):
                return Verdict.OUT_OF_SCOPE
            public_key = grant.public_key if grant else None
        if public_key is None:
            return Verdict.UNKNOWN_KEY
        fits = envelope.verify(self.tree, public_key)
        return Verdict.BELIEVED if fits else Verdict.FORGED

    def adopt(self, record: KeysRecord) -> None:
        """Put a believed `keys` record in force, instead of the one before."""
        self.granted = {grant.key_id: grant for grant in record.grants}
        self.adopted += 1
