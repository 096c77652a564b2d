"""The tree's certificate authority in the course of a change: the old one, the new one, and when.

A new one is made and told to all nodes. Then it signs: servers get certificates of it, which nodes
take since they believe both. Then nodes are told to believe the new one alone. Which files there
are says how far that came, so it goes on after any end of the program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leafcast.node.credentials.node_certificate import FOLDER
from relay.adapters.tls.authority import Authority
from relay.atomic_file import atomic_write, make_folder, move_file
from schemas.values.identity import TreeId

AUTHORITY_FILE, KEY_FILE = "authority.pem", "authority.key"
NEXT_FILE, NEXT_KEY_FILE, FORMER_FILE = "next.pem", "next.key", "former.pem"
AUTHORITY_FILES = (AUTHORITY_FILE, KEY_FILE, NEXT_FILE, NEXT_KEY_FILE, FORMER_FILE)


@dataclass(frozen=True, slots=True)
class Authorities:
    """Who signs the tree's certificates; PEM text. At most one of the two others is there."""

    signing: Authority
    # Signs once all nodes know it.
    coming: str = ""
    # Signed before, and is believed still.
    former: str = ""

    @property
    def believed(self) -> str:
        """Whom nodes are to believe."""
        return self.signing.certificate + self.coming + self.former

    @property
    def changing(self) -> bool:
        return bool(self.coming or self.former)


def load_authorities(folder: Path) -> Authorities | None:
    """Those of a data directory; None if none was made yet. Raises OSError or UnicodeError."""
    place = folder / FOLDER
    _end_broken_switch(place)
    certificate, key = _text(place / AUTHORITY_FILE), _text(place / KEY_FILE)
    if not (certificate and key):
        return None
    return Authorities(
        Authority(certificate, key), _text(place / NEXT_FILE), _text(place / FORMER_FILE)
    )


def load_or_make_authorities(folder: Path, tree: TreeId, now_ms: int) -> Authorities:
    """The same, made at their first use."""
    found = load_authorities(folder)
    if found is None:
        place, made = folder / FOLDER, _new(tree, now_ms)
        make_folder(place)
        atomic_write(place / KEY_FILE, made.key)
        atomic_write(place / AUTHORITY_FILE, made.certificate)
        found = Authorities(made)
    return found


def begin_change(folder: Path, tree: TreeId, now_ms: int) -> None:
    """Make the one that is to come; nothing is signed by it yet."""
    made = _new(tree, now_ms)
    atomic_write(folder / FOLDER / NEXT_KEY_FILE, made.key)
    atomic_write(folder / FOLDER / NEXT_FILE, made.certificate)


def switch(folder: Path) -> None:
    """From now on the one that was to come signs."""
    place = folder / FOLDER
    atomic_write(place / FORMER_FILE, (place / AUTHORITY_FILE).read_text(encoding="utf-8"))
    _end_broken_switch(place)


def end_change(folder: Path) -> None:
    """Nobody has to believe the former one any more."""
    (folder / FOLDER / FORMER_FILE).unlink(missing_ok=True)


def _end_broken_switch(place: Path) -> None:
    """With a former and a next one the switch has begun; each step may be done again."""
    if not ((place / FORMER_FILE).exists() and (place / NEXT_FILE).exists()):
        return
    atomic_write(place / AUTHORITY_FILE, (place / NEXT_FILE).read_text(encoding="utf-8"))
    if (place / NEXT_KEY_FILE).exists():
        move_file(place / NEXT_KEY_FILE, place / KEY_FILE)
    (place / NEXT_FILE).unlink()


def _new(tree: TreeId, now_ms: int) -> Authority:
    return Authority.make(f"leafcast {tree}", now_ms)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
