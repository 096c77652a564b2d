"""Whom a node believes: a record counts only if a key in force signed it for this tree.

Roots are pinned by the node's token and sign only the `keys` record; the keys it grants sign the
rest, each within its scope (protocol.md, "Keys"). Roots change one step at a time: what names the
next version is signed by a threshold of the roots before and by a threshold of its own. Mailboxes
hold only the newest record, so it leads to those that changed the roots before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from schemas.records.records import KeyGrant, KeysRecord, Record
from schemas.records.roots import Roots, forerunners_of, keys_record, roots_of, signatures_of
from schemas.records.signing import Envelope
from schemas.values.identity import KeyId, TreeId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import replace


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


class RootsRefused(Exception):
    """A `keys` record that is not believed; `reason` is one word, `detail` says what and why."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class RootWalk:
    """Follows messages of kind keys, one change of the roots at a time."""

    def __init__(self, tree: TreeId, roots: Roots) -> None:
        self.roots = roots
        self._tree = tree
        self._first = roots.version
        self._steps = 0

    def follow(self, envelope: Envelope) -> KeysRecord:
        """Believe the roots that a message names, and what else it says; raises RootsRefused."""
        record = _read(envelope)
        known = self.roots
        offered = roots_of(record) or (known if known.version == 1 else None)
        if offered is None or offered.version < known.version:
            detail = f"it names version {record.version} of the roots, and {known.version} is known"
            raise RootsRefused("RootsWentBack", detail)
        if offered.version > known.version + 1:
            raise RootsRefused("RootsUnreachable", _gap(known.version, offered.version))
        self._need(envelope, known)
        if offered.version > known.version:
            self._need(envelope, offered)
            self._steps += 1
        elif (offered.keys, offered.threshold) != (known.keys, known.threshold):
            detail = f"it names other roots than those known as version {known.version}"
            raise RootsRefused("OtherRoots", detail)
        self.roots = replace(offered, since=known.since)
        return record

    def assert_invariants(self) -> None:
        """Assert that each step led to the next version."""
        assert self.roots.version == self._first + self._steps
        assert 1 <= self.roots.threshold <= len(self.roots.keys)

    def _need(self, envelope: Envelope, roots: Roots) -> None:
        """Raise RootsRefused unless enough of these roots signed the message."""
        signed = signers_of(self._tree, envelope, roots)
        if len(signed) < roots.threshold:
            left = ", ".join(sorted(roots.keys.keys() - signed))
            detail = (
                f"it is signed by {len(signed)} of the {roots.threshold} root keys of version "
                f"{roots.version} that it needs; not by {left}"
            )
            raise RootsRefused("ThresholdNotMet", detail)


def signers_of(tree: TreeId, envelope: Envelope, roots: Roots) -> set[str]:
    """The ids of those roots that signed a message; raises RootsRefused."""
    try:
        signatures = signatures_of(envelope)
    except RecordRefused as error:
        raise RootsRefused("Unreadable", str(error)) from error
    return {
        key_id
        for key_id, public_key in roots.keys.items()
        if key_id in signatures
        and Envelope("keys", key_id, envelope.payload, signatures[key_id]).verify(tree, public_key)
    }


def walk(tree: TreeId, roots: Roots, envelope: Envelope) -> Roots:
    """The roots of a message, by way of its forerunners; raises RootsRefused."""
    record = _read(envelope)
    if record.generation < roots.since:
        detail = f"generation {record.generation} is older than the pinned roots ({roots.since})"
        raise RootsRefused("KeysTooOld", detail)
    on_the_way = RootWalk(tree, roots)
    if record.version > roots.version:
        try:
            forerunners = forerunners_of(envelope)
        except RecordRefused as error:
            raise RootsRefused("Unreadable", f"a forerunner: {error}") from error
        for one in forerunners:
            if _read(one).version > on_the_way.roots.version:
                on_the_way.follow(one)
    on_the_way.follow(envelope)
    return on_the_way.roots


def recall(tree: TreeId, roots: Roots, envelope: Envelope) -> Roots:
    """The roots of a message that the node itself kept: it was believed before it was kept.

    Newer roots than are pinned must have signed it themselves, older ones change nothing. Raises
    RootsRefused.
    """
    record = _read(envelope)
    offered = roots_of(record)
    if offered is None or offered.version == roots.version:
        RootWalk(tree, roots).follow(envelope)
        return roots
    RootWalk(tree, offered).follow(envelope)
    return replace(offered, since=roots.since) if offered.version > roots.version else roots


def _read(envelope: Envelope) -> KeysRecord:
    try:
        return keys_record(envelope)
    except RecordRefused as error:
        raise RootsRefused("Unreadable", str(error)) from error


def _gap(known: int, offered: int) -> str:
    return (
        f"it leads from version {offered} of the roots on, and this node knows version {known}; "
        "join with a new token, or have the parent pass on the forerunners"
    )
