"""What a node signs with its nkey, besides the words with which a server lets it in.

A server has each of its nodes sign a text of the server's choice, by the same key. So all that is
signed here begins with a byte that no text has: no parent gets a signature of it in that way.
"""

from __future__ import annotations

import base64
import binascii

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

_NO_TEXT = b"\xff"


def nkey_signature(entropy: bytes, said: bytes) -> bytes:
    """The signature of the holder of an nkey: 32 bytes, as its seed says them."""
    return SigningKey(entropy).sign(_NO_TEXT + said).signature


def nkey_signed(nkey: str, said: bytes, signature: object) -> bool:
    """Whether the holder of a public nkey (`U...`) signed this; False, whatever they are."""
    try:
        # A prefix, the key, and a checksum of two bytes.
        public = VerifyKey(base64.b32decode(nkey)[1:-2])
        public.verify(_NO_TEXT + said, signature)  # type: ignore[arg-type]
    except (BadSignatureError, binascii.Error, ValueError, TypeError):
        return False
    return True
