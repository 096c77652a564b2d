"""Files with the key of an operator, for whom backups are closed: the private half, the public one.

The private half is wanted where a backup is verified or restored, and never at the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leafcast.key_form import KeyFileRefused, half_key, read_key_form, write_key_pair
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
    private, salt = entropy[:KEY_BYTES], entropy[KEY_BYTES : KEY_BYTES + SALT_BYTES]
    public = public_half(private)
    private_form = {"kind": PRIVATE, "key_id": key_id(public)}
    if passphrase:
        private_form |= {"salt": salt.hex(), "locked": lock(passphrase, salt, private).hex()}
    else:
        private_form |= {"private": private.hex()}
    public_form = {"kind": PUBLIC, "key_id": key_id(public), "public": public.hex()}
    return write_key_pair(file, private_form, public_form), key_id(public)


def read_operator_key(file: Path, passphrase: Callable[[], str]) -> OperatorKey:
    """The private key in a file; a passphrase is asked for if it has one. Raises KeyFileRefused."""

    def parts(form: Any) -> tuple[bytes, bytes | None]:
        if "locked" not in form:
            return half_key(form["private"]), None
        return bytes.fromhex(form["salt"]), bytes.fromhex(form["locked"])

    remedy = "name a file that `leafcast backup key new` wrote"
    first, locked = read_key_form(file, PRIVATE, remedy, parts)
    try:
        return OperatorKey(first if locked is None else unlock(passphrase(), first, locked))
    except NotOpened as error:
        raise KeyFileRefused(file, error.reason, "say its passphrase") from error


def read_operator_public(file: Path) -> bytes:
    """A public key; raises KeyFileRefused."""
    remedy = "name the .pub file that `leafcast backup key new` wrote"
    return read_key_form(file, PUBLIC, remedy, lambda form: half_key(form["public"]))
