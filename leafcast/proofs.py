"""Who signed what a node has: from root keys by keys in force to placements and objects. Pure.

A proof is a file that anyone checks, with nothing of the tree but its public root keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from leafcast.key_files import public_keys
from leafcast.key_form import read_key_form
from leafcast.object_proofs import ListChecked, ObjectProof, ShownList, check_list
from relay.core.records.trust import RootsRefused, Trust, TrustVerdict, signers_of
from schemas.content.sealing import PLACEMENT_KEY_BYTES
from schemas.objects.objects import ObjectKey
from schemas.records.answer_bounds import MOMENT_MAX_MS
from schemas.records.placements import placement_of, short_title
from schemas.records.records import (
    DeltaHead,
    KeyGrant,
    KeysRecord,
    Record,
    decode_base,
    decode_record,
)
from schemas.records.roots import Roots, check_pinned, keys_record
from schemas.records.signing import Envelope, decode_envelope
from schemas.values.codec import FILE_MAX_BYTES
from schemas.values.identity import KeyId, NodePath, TreeId, check_hash, check_id
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Meta, Natural, WireRecord, astuple, convert, field

PROOF = "leafcast proof"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a node has of placements, as it was signed, and the roots that its tree names."""

    tree: TreeId
    path: NodePath
    # When it was asked for, ms since 1970.
    at_ms: int
    roots: Roots
    keys: bytes
    records: Sequence[bytes]
    # If it is of one object: then the records are of those who deliver it.
    about: ObjectProof | None = None


@dataclass(frozen=True, slots=True)
class KeysChecked:
    """The `keys` message of a proof: which roots signed it, and what it says; or why not."""

    signers: tuple[KeyId, ...]
    record: KeysRecord | None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class RecordChecked:
    """One placement of a proof: who signed it; `refused` says why that does not count."""

    placement: str
    generation: int
    key_id: str
    # SHA-256 of the signed payload, and of what the placement's content is, in hex.
    payload: str
    content: str
    refused: str = ""
    # What it delivers as the object that the proof is of.
    listed: ListChecked | None = None


@dataclass(frozen=True, slots=True)
class ProofChecked:
    """What became of a proof; `good` if each signature leads to the roots."""

    keys: KeysChecked
    records: tuple[RecordChecked, ...]

    @property
    def good(self) -> bool:
        return not self.keys.refused and not any(it.refused for it in self.records)


def check_proof(proof: Proof, trusted: Roots | None = None) -> ProofChecked:
    """Check all signatures, from these roots or from those that the proof names itself."""
    trust = Trust(proof.tree, trusted or proof.roots)
    keys = _checked_keys(trust, proof.keys)
    if keys.record is not None:
        trust.adopt(keys.record)
    about = proof.about
    lists: Sequence[ShownList | None] = about.lists if about else [None] * len(proof.records)
    pairs = zip(proof.records, lists, strict=True)
    return ProofChecked(
        keys, tuple(_checked(trust, data, keys.refused, about, it) for data, it in pairs)
    )


def _checked_keys(trust: Trust, data: bytes) -> KeysChecked:
    try:
        envelope = decode_envelope(data)
        record = keys_record(envelope)
        signed = signers_of(trust.tree, envelope, trust.roots)
    except (RecordRefused, RootsRefused) as error:
        return KeysChecked((), None, f"the message of the keys in force cannot be read: {error}")
    signers, needed = tuple(KeyId(it) for it in sorted(signed)), trust.roots.threshold
    if len(signers) < needed:
        said = f"{len(signers)} of the {needed} root keys signed which keys are in force"
        return KeysChecked(signers, None, said)
    return KeysChecked(signers, record)


def _checked(
    trust: Trust, data: bytes, refused: str, about: ObjectProof | None, shown: ShownList | None
) -> RecordChecked:
    try:
        envelope = decode_envelope(data)
        record = _said(envelope)
    except RecordRefused as error:
        return RecordChecked("-", 0, "-", "", "", f"it cannot be read: {error}")
    verdict = trust.judge(envelope, record)
    why = "" if verdict is TrustVerdict.BELIEVED else verdict.value
    content = record.body_hash.hex() if isinstance(record, DeltaHead) else ""
    listed = None
    if about is not None and shown is not None:
        if isinstance(record, DeltaHead):
            listed = check_list(trust.tree, envelope, record, about.key, shown)
            why = why or listed.refused
        else:
            why = why or "it is no placement that this program reads"
    return RecordChecked(
        _title(record),
        record.generation,
        envelope.key_id,
        envelope.payload_hash.hex(),
        content,
        refused or why,
        listed,
    )


def _said(envelope: Envelope) -> Record:
    """What the message says; of one of a later version what never changes. Raises RecordRefused."""
    try:
        return decode_record(envelope.kind, envelope.payload, None)
    except RecordRefused:
        if envelope.kind != "delta":
            raise
        return decode_base(envelope.payload)


def _title(record: Record) -> str:
    placement = placement_of(record.source)
    return short_title(placement) if placement else record.source.name


def grant_of(checked: KeysChecked, key_id: str) -> KeyGrant | None:
    """What a key may sign; None if the keys in force do not name it."""
    grants = checked.record.grants if checked.record is not None else ()
    return next((grant for grant in grants if grant.key_id == key_id), None)


def proof_form(proof: Proof) -> Json:
    """A proof as JSON."""
    form = {
        "kind": PROOF,
        "tree": proof.tree,
        "path": str(proof.path),
        "atMs": proof.at_ms,
        "roots": {key: public.hex() for key, public in sorted(proof.roots.keys.items())},
        "threshold": proof.roots.threshold,
        "version": proof.roots.version,
        "keys": proof.keys.hex(),
        "records": [data.hex() for data in proof.records],
    }
    if proof.about is not None:
        form["object"] = list(astuple(proof.about.key))
        form["lists"] = [_list_form(it) for it in proof.about.lists]
    return form


def _list_form(shown: ShownList) -> Json:
    form = {
        "manifest": shown.manifest.hex(),
        "chunk": shown.chunk.hex(),
        "address": shown.address,
    }
    return {**form, "key": shown.key.hex()} if shown.key else form


def read_proof_file(file: Path) -> Proof:
    """The proof in a file; raises KeyFileRefused."""
    remedy = "name a file that `leafcast proof -o json` wrote"
    return read_key_form(file, PROOF, remedy, proof_from, FILE_MAX_BYTES)


class _ListForm(WireRecord, array_like=False, frozen=True):
    """What leads to an object."""

    manifest: str
    chunk: str
    address: str
    key: str = ""


class _Form(WireRecord, array_like=False, frozen=True):
    """A file that holds a proof."""

    kind: str
    tree: str
    path: NodePath
    at_ms: Annotated[int, Meta(ge=0, le=MOMENT_MAX_MS)] = field(name="atMs")
    roots: dict[str, str]
    threshold: Natural
    version: Natural
    keys: str
    records: list[str]
    object: tuple[str, str, str, str] | None = None
    lists: tuple[_ListForm, ...] = ()


def proof_from(said: Mapping[str, Any]) -> Proof:
    """A proof that JSON says; raises ValueError, TypeError or AttributeError."""
    form = convert(_Form, said, "a proof")
    return Proof(
        TreeId(check_id(form.tree, "tree id")),
        form.path,
        form.at_ms,
        check_pinned(Roots(public_keys(form.roots), form.threshold, form.version)),
        bytes.fromhex(form.keys),
        tuple(bytes.fromhex(it) for it in form.records),
        _about(form),
    )


def _about(form: _Form) -> ObjectProof | None:
    if form.object is None:
        return None
    if len(form.lists) != len(form.records):
        raise ValueError(f"{len(form.lists)} lists, and {len(form.records)} records")
    return ObjectProof(ObjectKey(*form.object), tuple(map(_shown_list, form.lists)))


def _shown_list(form: _ListForm) -> ShownList:
    key = bytes.fromhex(form.key)
    if len(key) not in (0, PLACEMENT_KEY_BYTES):
        raise ValueError(f"a placement's key has {PLACEMENT_KEY_BYTES} bytes")
    manifest, chunk = bytes.fromhex(form.manifest), bytes.fromhex(form.chunk)
    return ShownList(manifest, chunk, check_hash(form.address), key)
