"""The centre's keys: made once, kept in a file only its owner reads, found by each later start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from controllers.core.access.keys import KeyRing
from controllers.keyrings import KEYRING_FILE, CentreKeyring, KeyringUnusable, load_keyring
from relay.atomic_file import atomic_write
from relay.ports import Dice
from schemas.records.roots import Roots, keys_record
from schemas.records.signing import Signer, decode_envelope
from schemas.values.codec import from_json
from schemas.values.identity import KeyId, TreeId, check_id, random_id
from schemas.values.refusals import RecordRefused

KEYS_FILE = "keys.json"
_SEED_BYTES = 32


class KeysUnusable(Exception):
    """The centre's keys cannot be used; says which file, what is wrong, and what to do."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


class CentreKeys:
    """The ring of keys in a file: what is kept is there before anyone hears of it."""

    def __init__(self, ring: KeyRing, path: Path, sealing: CentreKeyring) -> None:
        self.ring = ring
        self.path = path
        # What content is sealed with.
        self.sealing = sealing

    @property
    def tree(self) -> TreeId:
        return self.ring.tree

    @property
    def roots(self) -> Roots:
        """The roots that a node is to begin with."""
        return self.ring.pinned

    @property
    def signing(self) -> Signer:
        """The key that signs all but `keys` records now."""
        return self.ring.signing

    def keep(self, ring: KeyRing) -> None:
        """Use these keys from now on; the file holds them when this returns."""
        _write(self.path, ring)
        self.ring = ring


def load_or_make_keys(folder: Path, dice: Dice) -> CentreKeys:
    """Read the keys of this folder, or make a new tree's; raises KeysUnusable."""
    path = folder / KEYS_FILE
    if path.exists():
        ring = _read(path)
        return CentreKeys(ring, path, _keyring(folder, ring.tree))
    tree = TreeId(random_id(dice.entropy(16)))
    ring = KeyRing(tree, new_signer(tree, dice), (new_signer(tree, dice),))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # First: a new tree seals from its beginning, whatever ends this.
    sealing = _keyring(folder, tree)
    sealing.announce(dice)
    sealing.use_announced()
    _write(path, ring)
    return CentreKeys(ring, path, sealing)


def _keyring(folder: Path, tree: TreeId) -> CentreKeyring:
    try:
        return load_keyring(folder, tree)
    except KeyringUnusable as error:
        raise KeysUnusable(folder / KEYRING_FILE, str(error), error.remedy) from error


def new_signer(tree: TreeId, dice: Dice) -> Signer:
    """A new key of a tree."""
    return Signer(tree, KeyId(random_id(dice.entropy(16))), dice.entropy(_SEED_BYTES))


def _write(path: Path, ring: KeyRing) -> None:
    form: dict[str, Any] = {
        "tree": ring.tree,
        "roots": [_fields(root) for root in ring.roots],
        "signing": _fields(ring.signing),
    }
    if ring.prepared:
        form["prepared"] = [_fields(signer) for signer in ring.prepared]
    if ring.message is not None:
        form["message"] = ring.message.encode().hex()
    atomic_write(path, json.dumps(form, indent=2) + "\n")


def _fields(signer: Signer) -> dict[str, str]:
    return {"key_id": signer.key_id, "seed": signer.seed.hex()}


def _read(path: Path) -> KeyRing:
    remedy = "restore it from a backup"
    if path.stat().st_mode & 0o077:
        raise KeysUnusable(path, "others may read it", f"run chmod 600 {path}")
    try:
        return _ring(from_json(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError, RecordRefused) as error:
        raise KeysUnusable(path, f"it holds no keys ({error!r})", remedy) from error


def _ring(form: dict[str, Any]) -> KeyRing:
    tree = TreeId(check_id(form["tree"], "tree id"))
    # A tree that was made before roots could change has one, and no message here.
    roots = form["roots"] if "roots" in form else [form["root"]]
    said = form.get("message")
    message = decode_envelope(bytes.fromhex(said)) if said is not None else None
    if message is not None:
        keys_record(message)
    return KeyRing(
        tree,
        signer_of(tree, form["signing"]),
        tuple(signer_of(tree, root) for root in roots),
        message,
        tuple(signer_of(tree, one) for one in form.get("prepared", ())),
    )


def signer_of(tree: TreeId, form: dict[str, str]) -> Signer:
    """A key as a file holds it; raises ValueError, KeyError or TypeError."""
    seed = bytes.fromhex(form["seed"])
    if len(seed) != _SEED_BYTES:
        raise ValueError("a seed has 32 bytes")
    return Signer(tree, KeyId(check_id(form["key_id"], "key id")), seed)
