"""The centre's keys: made once, kept in a file only its owner reads, found by each later start."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from relay.atomic_file import atomic_write
from relay.ports import Dice
from schemas.codec import from_json
from schemas.identity import KeyId, TreeId, check_id, random_id
from schemas.signing import Signer

KEYS_FILE = "keys.json"
_SEED_BYTES = 32


class KeysUnusable(Exception):
    """The centre's keys cannot be used; says which file, what is wrong, and what to do."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class CentreKeys:
    """The tree's id and its two keys: the root signs only `keys` records, the other all else."""

    root: Signer
    signing: Signer
    path: Path

    @property
    def tree(self) -> TreeId:
        return self.root.tree


def load_or_make_keys(folder: Path, dice: Dice) -> CentreKeys:
    """Read the keys of this folder, or make a new tree's; raises KeysUnusable."""
    path = folder / KEYS_FILE
    if path.exists():
        return _read(path)
    tree = TreeId(random_id(dice.entropy(16)))
    keys = CentreKeys(_new_signer(tree, dice), _new_signer(tree, dice), path)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(path, keys)
    return keys


def _new_signer(tree: TreeId, dice: Dice) -> Signer:
    return Signer(tree, KeyId(random_id(dice.entropy(16))), dice.entropy(_SEED_BYTES))


def _write(path: Path, keys: CentreKeys) -> None:
    form = {"tree": keys.tree, "root": _fields(keys.root), "signing": _fields(keys.signing)}
    atomic_write(path, json.dumps(form, indent=2) + "\n")


def _fields(signer: Signer) -> dict[str, str]:
    return {"key_id": signer.key_id, "seed": signer.seed.hex()}


def _read(path: Path) -> CentreKeys:
    remedy = "restore it from a backup"
    if path.stat().st_mode & 0o077:
        raise KeysUnusable(path, "others may read it", f"run chmod 600 {path}")
    try:
        form = from_json(path.read_bytes())
        tree = TreeId(check_id(form["tree"], "tree id"))
        return CentreKeys(_signer(tree, form["root"]), _signer(tree, form["signing"]), path)
    except (ValueError, KeyError, TypeError) as error:
        raise KeysUnusable(path, f"it holds no keys ({error!r})", remedy) from error


def _signer(tree: TreeId, form: dict[str, str]) -> Signer:
    seed = bytes.fromhex(form["seed"])
    if len(seed) != _SEED_BYTES:
        raise ValueError("a seed has 32 bytes")
    return Signer(tree, KeyId(check_id(form["key_id"], "key id")), seed)
