"""A NATS user's key pair is made from entropy the caller brings; the seed is its secret half."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

import nkeys

from schemas.content.sealing import sealing_private
from schemas.enrolment.tokens import entrance_entropy
from schemas.values.identity import TreeId

_PUBLIC = re.compile(r"U[A-Z2-7]{55}\Z")


class BadNkey(ValueError):
    """Not a NATS user key; says of whom. Never carries the value, which may be a seed."""

    def __init__(self, whose: str, rule: str) -> None:
        super().__init__(f"the nkey of {whose} is not usable: {rule}")
        self.whose = whose


def new_user_nkey(entropy: bytes) -> tuple[str, str]:
    """Make a pair from 32 random bytes: (seed `SU...`, public key `U...`)."""
    seed = nkeys.encode_seed(entropy, nkeys.PREFIX_BYTE_USER).decode()
    return seed, public_nkey(seed)


def entrance_pair(tree: TreeId) -> tuple[str, str]:
    """The pair with which those ask to be let in who hold a token of the tree: (seed, public)."""
    return new_user_nkey(entrance_entropy(tree))


def public_nkey(seed: str) -> str:
    """The public half of a user's seed; raises BadNkey."""
    if not seed.startswith("SU"):
        raise BadNkey("this node", "a user's seed begins with SU")
    try:
        _, raw = nkeys.decode_seed(seed.encode())
        whole = nkeys.encode_seed(raw, nkeys.PREFIX_BYTE_USER).decode()
    except (nkeys.NkeysError, ValueError) as error:
        raise BadNkey("this node", "the seed is cut short or mistyped") from error
    if whole != seed:
        raise BadNkey("this node", "the seed is mistyped")
    return str(nkeys.from_seed(bytearray(seed.encode())).public_key.decode())


def private_key(seed: str) -> bytes:
    """The X25519 key that follows from a user's seed, 32 bytes; raises BadNkey."""
    return sealing_private(seed_entropy(seed))


def seed_entropy(seed: str) -> bytes:
    """The 32 bytes that a user's seed says; raises BadNkey."""
    public_nkey(seed)
    return bytes(nkeys.decode_seed(seed.encode())[1])


def derived_seed(seed: str, purpose: bytes) -> str:
    """A user's seed that follows from another's, which does not follow from it; raises BadNkey."""
    entropy = hmac.new(seed_entropy(seed), purpose, hashlib.sha256).digest()
    return new_user_nkey(entropy)[0]


def check_public_nkey(text: str, whose: str) -> str:
    """Admit a user's public key, checksum included; raises BadNkey."""
    if not _PUBLIC.match(text):
        raise BadNkey(whose, "a user's public key is 56 characters and begins with U")
    raw = base64.b32decode(text)
    if int.from_bytes(raw[-2:], "little") != nkeys.crc16(raw[:-2]):
        raise BadNkey(whose, "its checksum is wrong, so it is mistyped")
    return text
