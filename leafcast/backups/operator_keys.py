"""Files with the key of an operator, for whom backups are closed: the private half, the public one.

The private half is wanted where a backup is verified or restored, and never at the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from leafcast.key_form import KeyFileRefused, read_key_form, write_key_form
from schemas.content.operator_box import (
    KEY_BYTES,
    SALT_BYTES,
    key_id,
    lock,
    public_half,
    unlock,
)
from schemas.content.sealing import NotOpened

PRIVATE, PUBLIC = "leafcast backup key", "leafcast public backup key"
MAKE_ONE = "make one with `leafcast backup key new FILE`"


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """A private key, and whose it is."""

    private: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """What people call it: 12 hex digits."""
        return key_id(public_half(self.private))


def write_operator_key(file: Path, entropy: bytes, passphrase: str = "") -> tuple[Path, str]:
    """Write a new key for its holder, and its public half beside it; that file, and the key's id.

    `entropy` has 48 random bytes. Raises KeyFileRefused.
    """
    public_file = file.with_name(f"{file.name}.pub")
    for path in (file, public_file):
        if path.exists():
            raise KeyFileRefused(path, "it is there already", "name another file")
    private, salt = entropy[:KEY_BYTES], entropy[KEY_BYTES : KEY_BYTES + SALT_BYTES]
    public = public_half(private)
    said = {"kind": PRIVATE, "key_id": key_id(public)}
    if passphrase:
        said |= {"salt": salt.hex(), "locked": lock(passphrase, salt, private).hex()}
    else:
        said |= {"private": private.hex()}
    try:
        write_key_form(file, said)
        write_key_form(
            public_file, {"kind": PUBLIC, "key_id": key_id(public), "public": public.hex()}
        )
    except OSError as error:
        raise KeyFileRefused(file, str(error.strerror), "name another file") from error
    return public_file, key_id(public)


def read_operator_key(file: Path, passphrase: Callable[[], str]) -> OperatorKey:
    """The private key in a file; a passphrase is asked for if it has one. Raises KeyFileRefused."""
    form = read_key_form(file, PRIVATE, "name a file that `leafcast backup key new` wrote")
    try:
        if "locked" not in form:
            return OperatorKey(_half(form["private"]))
        salt, locked = bytes.fromhex(form["salt"]), bytes.fromhex(form["locked"])
    except (ValueError, KeyError, TypeError) as error:
        raise KeyFileRefused(file, f"it is damaged ({error})", "copy it again") from error
    try:
        return OperatorKey(unlock(passphrase(), salt, locked))
    except NotOpened as error:
        raise KeyFileRefused(file, error.reason, "say its passphrase") from error


def read_operator_public(file: Path) -> bytes:
    """A public key; raises KeyFileRefused."""
    form = read_key_form(file, PUBLIC, "name the .pub file that `leafcast backup key new` wrote")
    try:
        return _half(form["public"])
    except (ValueError, KeyError, TypeError) as error:
        raise KeyFileRefused(file, f"it is damaged ({error})", "copy it again") from error


def _half(text: str) -> bytes:
    half = bytes.fromhex(text)
    if len(half) != KEY_BYTES:
        raise ValueError(f"half a key has {KEY_BYTES} bytes")
    return half
