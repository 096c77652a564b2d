"""Files about root keys that are kept offline: the keys themselves, and requests that they sign.

All are JSON. A root key's file is for its holder only; its public half and requests are no secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from controllers.core.access.keys import KeysRequest
from leafcast.key_form import half_key, read_key_form, write_key_pair
from schemas.records.records import KeysRecord, decode_payload
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, TreeId, check_id

ROOT, PUBLIC, REQUEST = "leafcast root key", "leafcast public root key", "leafcast keys request"


def write_root(file: Path, key_id: KeyId, seed: bytes, public_key: bytes) -> Path:
    """Write a root key for its holder, and its public half beside it; returns the latter's name."""
    private = {"kind": ROOT, "key_id": key_id, "seed": seed.hex()}
    public = {"kind": PUBLIC, "key_id": key_id, "public_key": public_key.hex()}
    return write_key_pair(file, private, public)


def read_root(file: Path, tree: TreeId) -> Signer:
    """The root key in a file, to sign for a tree; raises KeyFileRefused."""

    def signer(form: Any) -> Signer:
        return Signer(tree, KeyId(check_id(form["key_id"], "key id")), half_key(form["seed"]))

    return read_key_form(file, ROOT, "name a file that `leafcast keys make` wrote", signer)


def read_public(file: Path) -> tuple[KeyId, bytes]:
    """A public root key, with its id; raises KeyFileRefused."""

    def named(form: Any) -> tuple[KeyId, bytes]:
        return KeyId(check_id(form["key_id"], "key id")), half_key(form["public_key"])

    return read_key_form(file, PUBLIC, "name the .pub file that `leafcast keys make` wrote", named)


def public_keys(form: Mapping[str, str]) -> dict[KeyId, bytes]:
    """Public root keys in hex, by id; raises ValueError, TypeError or AttributeError."""
    return {KeyId(check_id(key, "key id")): half_key(public) for key, public in form.items()}


def read_request(file: Path) -> KeysRequest:
    """A request in a file; raises KeyFileRefused."""
    remedy = "name a file that `leafcast keys rotate` or `revoke` wrote with --request"
    return read_key_form(file, REQUEST, remedy, request_from)


def request_form(request: KeysRequest) -> dict[str, Any]:
    """A request as JSON."""
    return {
        "kind": REQUEST,
        "tree": request.tree,
        "base": request.base,
        "payload": request.payload.hex(),
        "signatures": {key: one.hex() for key, one in sorted(request.signatures.items())},
    }


def request_from(form: Mapping[str, Any]) -> KeysRequest:
    """A request that JSON says; raises ValueError, KeyError, TypeError, or RecordRefused."""
    signatures = {
        KeyId(check_id(key, "key id")): bytes.fromhex(one)
        for key, one in form["signatures"].items()
    }
    request = KeysRequest(
        TreeId(check_id(form["tree"], "tree id")),
        int(form["base"]),
        bytes.fromhex(form["payload"]),
        signatures,
    )
    requested(request)
    return request


def requested(request: KeysRequest) -> KeysRecord:
    """What a request asks to be signed; raises RecordRefused."""
    record = decode_payload("keys", request.payload)
    assert isinstance(record, KeysRecord)
    return record
