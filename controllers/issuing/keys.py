"""The centre's keys: made once, kept in files only their owner reads, found by each later start.

Some sign; the masters of the tree's content, from which all keys follow that seal it, lie beside
them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from controllers.core.access.keyring import Keyring
from controllers.core.access.keys import KeyRing
from relay.atomic_file import atomic_write, move_file
from relay.ports import Dice
from schemas.content.sealing import KEY_BYTES
from schemas.records.roots import Roots, keys_record
from schemas.records.signing import Signer, decode_envelope
from schemas.values.codec import from_json
from schemas.values.faults import Unusable
from schemas.values.identity import KeyId, MailKey, TreeId, check_id, check_mail_key, random_id
from schemas.values.refusals import RecordRefused

KEYS_FILE, KEYRING_FILE = "keys.json", "sealing.json"
_BEGUN_FILE = "sealing.begun.json"
"""The ring of a tree that has no keys yet: it counts once they are there."""
_RESTORE = "restore it from a backup"
_SEED_BYTES = 32

T = TypeVar("T")


class KeysUnusable(Unusable):
    """The centre's keys cannot be used; says which file, what is wrong, and what to do."""


class CentreKeyring:
    """The ring in a file: what is kept is there before anything is sealed with it."""

    def __init__(self, ring: Keyring, path: Path) -> None:
        self.ring = ring
        # What profiles bring: ahead of what content is sealed with while that changes.
        self.announced = ring
        self.path = path

    @property
    def seals(self) -> bool:
        """Whether content is sealed."""
        return bool(self.ring.masters)

    @property
    def changes(self) -> bool:
        """Whether content does not follow yet what was announced."""
        return self.announced.masters != self.ring.masters

    def announce(self, dice: Dice) -> None:
        """Make a new master; the first one turns a tree that sealed nothing.

        Profiles bring its fleet key from now on, and content follows with `use_announced`.
        """
        self._keep(self.announced.rotated(dice.entropy(KEY_BYTES)))

    def use_announced(self) -> None:
        """Seal with what was announced."""
        self.ring = self.announced

    def renew(self, source: MailKey) -> None:
        """Give one placement another key."""
        ring = self.ring.renewed(source)
        # What is sealed with this one until content follows may stay so.
        self._keep(ring.rotated(self.announced.masters[0]) if self.changes else ring)
        self.ring = ring

    def _keep(self, ring: Keyring) -> None:
        form = {
            "tree": ring.tree,
            "masters": [master.hex() for master in ring.masters],
            "marking": ring.marking.hex(),
            "counts": dict(sorted(ring.counts.items())),
        }
        atomic_write(self.path, json.dumps(form, indent=2) + "\n")
        self.announced = ring


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
    if not path.exists():
        _make_keys(folder, dice)
    ring = _read(path, _ring, "keys")
    _end_begun(folder, ring.tree)
    return CentreKeys(ring, path, load_keyring(folder, ring.tree))


def _end_begun(folder: Path, tree: TreeId) -> None:
    """Have the ring count that its tree began with; one of another tree is left of a start."""
    begun = folder / _BEGUN_FILE
    if not begun.exists():
        return
    if _read(begun, _masters, "masters").tree == tree:
        move_file(begun, folder / KEYRING_FILE)
    else:
        begun.unlink()


def _make_keys(folder: Path, dice: Dice) -> None:
    """Make those of a new tree; what an end amid this left behind is made anew."""
    tree = TreeId(random_id(dice.entropy(16)))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Of one that is there the keys are lost, and no new ones open what it sealed: it is refused.
    load_keyring(folder, tree)
    # First: a new tree seals from its beginning, whatever ends this.
    CentreKeyring(Keyring(tree), folder / _BEGUN_FILE).announce(dice)
    _write(folder / KEYS_FILE, KeyRing(tree, new_signer(tree, dice), (new_signer(tree, dice),)))


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


def load_keyring(folder: Path, tree: TreeId) -> CentreKeyring:
    """The ring of this folder, one without masters if there is none; raises KeysUnusable."""
    path = folder / KEYRING_FILE
    if not path.exists():
        return CentreKeyring(Keyring(tree), path)
    ring = _read(path, _masters, "masters")
    if ring.tree != tree:
        raise KeysUnusable(path, "it is another tree's", _RESTORE)
    if any(len(key) != KEY_BYTES for key in (*ring.masters, ring.marking)):
        raise KeysUnusable(path, f"a master has {KEY_BYTES} bytes", _RESTORE)
    return CentreKeyring(ring, path)


def _masters(form: dict[str, Any]) -> Keyring:
    masters = tuple(map(bytes.fromhex, form["masters"]))
    marking = bytes.fromhex(form["marking"])
    counts = {check_mail_key(key): _counts(it, masters) for key, it in form["counts"].items()}
    return Keyring(TreeId(form["tree"]), masters, counts, marking)


def _counts(said: int | list[int], masters: tuple[bytes, ...]) -> tuple[int, ...]:
    """Raises TypeError or ValueError; an older file says one number for all masters."""
    return tuple(map(int, said)) if isinstance(said, list) else (int(said),) * len(masters)


def _read(path: Path, parse: Callable[[dict[str, Any]], T], what: str) -> T:
    """What a file of keys says; raises KeysUnusable."""
    if path.stat().st_mode & 0o077:
        raise KeysUnusable(path, "others may read it", f"run chmod 600 {path}")
    try:
        return parse(from_json(path.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError, RecordRefused) as error:
        raise KeysUnusable(path, f"it holds no {what} ({error!r})", _RESTORE) from error


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
