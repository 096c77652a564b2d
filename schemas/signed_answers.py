"""Answers that the centre acts on are signed by the node that gives them, with its own key.

A question brings a key that everyone on its way may seal an answer to, so relays could put one of
their own in the place of the node's. What is signed names the tree, the node, the question and all
that is said, so an answer is good once, and for nothing else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey, VerifyKey

from schemas.codec import pack
from schemas.identity import TreeId
from schemas.records import AskRecord

SIGNATURE = "signature"
"""Where an answer has it, beside what it says."""
# A node signs what its parent's server shows it, too, to be let in there. That is text, and no text
# has this byte: nobody gets a signature of an answer in that way.
_NO_TEXT = b"\xff"


def signed(
    entropy: bytes, tree: TreeId, ask: AskRecord, answer: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer with a signature by the holder of an nkey: 32 bytes, as its seed says them."""
    signature = SigningKey(entropy).sign(_said(tree, ask, answer)).signature
    return {**answer, SIGNATURE: signature}


def is_signed(nkeys: Iterable[str], tree: TreeId, ask: AskRecord, answer: object) -> bool:
    """Whether a holder of one of these nkeys (`U...`) says all of this to this question."""
    if not isinstance(answer, Mapping):
        return False
    said = {name: value for name, value in answer.items() if name != SIGNATURE}
    return any(_verifies(nkey, _said(tree, ask, said), answer.get(SIGNATURE)) for nkey in nkeys)


def _verifies(nkey: str, said: bytes, signature: object) -> bool:
    try:
        # A prefix, the key, and a checksum of two bytes.
        public = VerifyKey(base64.b32decode(nkey)[1:-2])
        public.verify(said, signature)  # type: ignore[arg-type]
    except (BadSignatureError, binascii.Error, ValueError, TypeError):
        return False
    return True


def _said(tree: TreeId, ask: AskRecord, answer: Mapping[str, Any]) -> bytes:
    about = f"leafcast/answer/1\0{tree}\0{ask.path}\0{ask.verb}\0{ask.source.name}\0"
    return _NO_TEXT + about.encode() + pack(answer)
