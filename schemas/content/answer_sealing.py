"""Answers sealed to a key that the question brings, so that the relays between read none of it.

The key is of one question only, and whoever asked forgets its private half with the answer.
"""

from __future__ import annotations

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from schemas.values.refusals import RecordRefused

KEY_BYTES = 32
_SEALED = b"\xc1"
"""Before what is sealed; no msgpack begins with it, so a clear answer is told from a sealed one."""


class AnswerKey:
    """The key of one question, made of 32 random bytes."""

    def __init__(self, entropy: bytes) -> None:
        self._private = PrivateKey(entropy)

    @property
    def public(self) -> bytes:
        """What the question brings."""
        return bytes(self._private.public_key)

    def open(self, answer: bytes) -> bytes:
        """The answer, also one in clear of a node that seals none; raises RecordRefused.

        Everyone on the way can seal an answer of his own, so who gives a clear one gains nothing:
        what is to be believed is signed within (schemas.records.signed_answers).
        """
        if not answer.startswith(_SEALED):
            return answer
        try:
            return SealedBox(self._private).decrypt(answer[len(_SEALED) :])
        except (CryptoError, ValueError) as error:
            reason = "the answer is sealed to another question's key, or was altered"
            raise RecordRefused(reason) from error


def sealed_answer(answer: bytes, public_key: bytes) -> bytes:
    """The answer for who asked alone; in clear to a question without key. Raises RecordRefused."""
    if not public_key:
        return answer
    try:
        return _SEALED + SealedBox(PublicKey(public_key)).encrypt(answer)
    except (CryptoError, ValueError, TypeError) as error:
        reason = "nothing can be sealed to the key that the question brings"
        raise RecordRefused(reason) from error
