"""Whom a node believes: a record counts only if a key in force signed it for this tree.

Roots are pinned by the node's token and sign only the `keys` record; the keys it grants sign the
rest, each within its scope (protocol.md, "Keys").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from relay.core.records.root_walk import recall, walk
from schemas.records.records import KeyGrant, KeysRecord, Record
from schemas.records.roots import Roots
from schemas.records.signing import Envelope
from schemas.values.identity import KeyId, TreeId


class TrustVerdict(Enum):
    """What a signature proves now; with UNKNOWN_KEY a newer `keys` record may still settle it."""

    BELIEVED = "believed"
    UNKNOWN_KEY = "signed by a key that is not known here"
    REVOKED_KEY = "its key is revoked"
    OUT_OF_SCOPE = "its key may not sign this"
    FORGED = "its signature does not fit"


@dataclass(slots=True)
class Trust:
    """The keys in force in one tree."""

    tree: TreeId
    roots: Roots
    granted: dict[KeyId, KeyGrant] = field(default_factory=dict)

    def judge(self, envelope: Envelope, record: Record) -> TrustVerdict:
        """Whether to believe a record, not of kind keys, that the envelope's payload says."""
        grant = self.granted.get(envelope.key_id)
        if grant is None:
            return TrustVerdict.UNKNOWN_KEY
        if grant.is_revoked:
            return TrustVerdict.REVOKED_KEY
        if not grant.covers(envelope.kind, record):
            return TrustVerdict.OUT_OF_SCOPE
        fits = envelope.verify(self.tree, grant.public_key)
        return TrustVerdict.BELIEVED if fits else TrustVerdict.FORGED

    def follow(self, envelope: Envelope) -> None:
        """Believe the roots of a `keys` message, by way of its forerunners; raises RootsRefused."""
        self.roots = walk(self.tree, self.roots, envelope)

    def recall(self, envelope: Envelope) -> None:
        """Believe a `keys` message that this node kept; raises RootsRefused."""
        self.roots = recall(self.tree, self.roots, envelope)

    def recalls(self, envelope: Envelope) -> TrustVerdict:
        """Whether to go on holding a record that was believed before it was kept.

        Its key may have ended or been revoked since: nothing goes because of that.
        """
        grant = self.granted.get(envelope.key_id)
        if grant is None:
            return TrustVerdict.BELIEVED if self.granted else TrustVerdict.UNKNOWN_KEY
        fits = envelope.verify(self.tree, grant.public_key)
        return TrustVerdict.BELIEVED if fits else TrustVerdict.FORGED

    def assert_invariants(self) -> None:
        """Assert that the roots can sign, and that each grant stands under its own key."""
        assert 1 <= self.roots.threshold <= len(self.roots.keys)
        assert all(key == grant.key_id for key, grant in self.granted.items())

    def adopt(self, record: KeysRecord) -> None:
        """Put a believed `keys` record in force, instead of the one before."""
        self.granted = {grant.key_id: grant for grant in record.grants}
