"""What the members of a node share is sealed to the keys of all of them. Pure but for randomness.

A value is closed with a key of its own, and that key is closed for each member.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.secret import SecretBox

from relay.ports import Dice
from schemas.values.codec import pack, unpack
from schemas.values.refusals import CodecError


class StateUnreadable(Exception):
    """A value that is sealed to others, or damaged; names it, and the remedy."""

    def __init__(self, name: str, member: str, why: str) -> None:
        super().__init__(
            f"member {member} cannot open {name} of its node's state: {why}; stop "
            "it, copy the member.json with its own key back into its data directory, and start it"
        )


def sealed(name: str, plain: bytes, keys: Mapping[str, bytes], dice: Dice) -> bytes:
    """The value of this name, closed for the members with these public keys."""
    key = dice.entropy(SecretBox.KEY_SIZE)
    nonce = dice.entropy(SecretBox.NONCE_SIZE)
    boxes = {member: SealedBox(PublicKey(public)).encrypt(key) for member, public in keys.items()}
    body = bytes(SecretBox(key).encrypt(pack([name, plain]), nonce))
    return pack([boxes, body])


def opened(name: str, value: bytes, member: str, private: bytes) -> bytes:
    """The plain bytes; raises StateUnreadable."""
    try:
        boxes, body = unpack(value)
        if member not in boxes:
            raise StateUnreadable(name, member, "it is not sealed to this member")
        key = SealedBox(PrivateKey(private)).decrypt(boxes[member])
        said, plain = unpack(SecretBox(key).decrypt(body))
    except (CryptoError, CodecError, ValueError, TypeError) as error:
        raise StateUnreadable(name, member, f"it is damaged ({error})") from error
    if said != name or not isinstance(plain, bytes):
        raise StateUnreadable(name, member, f"it is that of {said}")
    return plain


def sealed_to(value: bytes) -> frozenset[str]:
    """The members that can open a value; none if it is no such value."""
    try:
        boxes, _ = unpack(value)
    except (CodecError, ValueError, TypeError):
        return frozenset()
    return frozenset(map(str, boxes)) if isinstance(boxes, Mapping) else frozenset()
