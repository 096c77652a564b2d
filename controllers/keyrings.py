"""The masters of a tree's content, in a file only its owner reads, beside the keys that sign."""

from __future__ import annotations

import json
from pathlib import Path

from controllers.core.access.keyring import Keyring
from relay.atomic_file import atomic_write
from relay.ports import Dice
from schemas.content.sealing import KEY_BYTES
from schemas.values.codec import from_json
from schemas.values.identity import MailKey, TreeId, check_mail_key

KEYRING_FILE = "sealing.json"


class KeyringUnusable(ValueError):
    """The file holds no masters; says why, and what to do."""

    def __init__(self, reason: str, remedy: str = "restore it from a backup") -> None:
        super().__init__(reason)
        self.remedy = remedy


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


def load_keyring(folder: Path, tree: TreeId) -> CentreKeyring:
    """The ring of this folder, one without masters if there is none; raises KeyringUnusable."""
    path = folder / KEYRING_FILE
    if not path.exists():
        return CentreKeyring(Keyring(tree), path)
    if path.stat().st_mode & 0o077:
        raise KeyringUnusable("others may read it", f"run chmod 600 {path}")
    try:
        form = from_json(path.read_bytes())
        whose = form["tree"]
        masters = tuple(bytes.fromhex(text) for text in form["masters"])
        marking = bytes.fromhex(form["marking"])
        counts = {check_mail_key(key): _counts(it, masters) for key, it in form["counts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KeyringUnusable(f"it holds no masters ({error!r})") from error
    if whose != tree:
        raise KeyringUnusable("it is another tree's")
    if any(len(key) != KEY_BYTES for key in (*masters, marking)):
        raise KeyringUnusable(f"a master has {KEY_BYTES} bytes")
    return CentreKeyring(Keyring(tree, masters, counts, marking), path)


def _counts(said: int | list[int], masters: tuple[bytes, ...]) -> tuple[int, ...]:
    """Raises TypeError or ValueError; an older file says one number for all masters."""
    return tuple(map(int, said)) if isinstance(said, list) else (int(said),) * len(masters)
