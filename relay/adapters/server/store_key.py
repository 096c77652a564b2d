"""The key under which a nats-server encrypts its store, and that it is the same at each start.

The server is given it by its environment, so that it stands in no configuration. One that is
started with another key begins as if it had no streams; so a hash of the key lies beside the store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from relay.atomic_file import atomic_write
from schemas.values.faults import Unusable

VARIABLE = "LEAFCAST_STORE_KEY"
CHECK_FILE, INDEX_FILE = "store-key-check", "index.db"
CHARACTERS_MIN, CHARACTERS_MAX = 32, 512
_CHECK_BYTES = 16
_MAKE = "make one with `openssl rand -base64 32`"
# What needs no escape between the quotation marks of a nats-server's configuration.
_PLAIN = re.compile(r"[A-Za-z0-9+/=_-]+")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class StoreKeyRefused(Unusable):
    """A key with which no store can be opened or begun; names the place, why, and what to do."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """The key of the stores of all nodes of one program, as a line of text."""

    secret: str = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What the server is to find; it reads a value as its configuration, hence the quotes."""
        return {VARIABLE: f'"{self.secret}"'}

    @property
    def check(self) -> str:
        """What tells this key from another one, and says nothing else of it."""
        return blake2b(
            self.secret.encode(), digest_size=_CHECK_BYTES, person=b"store key"
        ).hexdigest()


def read_store_key(file: Path) -> StoreKey:
    """The key in a file of one line; raises StoreKeyRefused."""
    try:
        with file.open(encoding="ascii") as lines:
            secret = lines.read(CHARACTERS_MAX + 3).strip()
    except OSError as error:
        remedy = "name the file with the key of this store by --store-key-file"
        raise StoreKeyRefused(file, error.strerror or str(error), remedy) from error
    except UnicodeDecodeError as error:
        raise StoreKeyRefused(file, "the key is no line of text", _MAKE) from error
    if not _PLAIN.fullmatch(secret):
        reason = "the key is one line of letters, digits and + / = _ -"
        raise StoreKeyRefused(file, reason, _MAKE)
    if not CHARACTERS_MIN <= len(secret) <= CHARACTERS_MAX:
        reason = f"the key has {CHARACTERS_MIN} to {CHARACTERS_MAX} characters, not {len(secret)}"
        raise StoreKeyRefused(file, reason, _MAKE)
    return StoreKey(secret)


def is_variable(name: str) -> bool:
    """Whether an environment can hold a variable of this name."""
    return _VARIABLE_NAME.fullmatch(name) is not None


def admit_key(folder: Path, key: StoreKey | None) -> None:
    """Refuse to start the server of a folder with another key than before, or without.

    A new store begins with the key, and a clear one is encrypted by the server as it starts. Raises
    StoreKeyRefused or OSError.
    """
    check_key(folder, key)
    if key is not None and not _kept(folder):
        # An index names what is stored, and stays in clear until that changes. The server makes one
        # that is missing anew.
        for index in folder.rglob(INDEX_FILE):
            index.unlink(missing_ok=True)
        # Before the first byte is: who ends in between goes on with the same key.
        atomic_write(folder / CHECK_FILE, key.check + "\n")


def check_key(folder: Path, key: StoreKey | None) -> None:
    """As `admit_key`, and nothing is written."""
    kept = _kept(folder)
    if key is None and kept:
        remedy = "name the file with its key by --store-key-file"
        raise StoreKeyRefused(folder, "its store is encrypted, and there is no key", remedy)
    if key is not None and kept not in ("", key.check):
        remedy = "name the file with the key that it was begun with by --store-key-file"
        raise StoreKeyRefused(folder, "its store is encrypted with another key", remedy)


def _kept(folder: Path) -> str:
    """What tells the key of the store; "" if the store is in clear, or not there yet."""
    try:
        return (folder / CHECK_FILE).read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""
