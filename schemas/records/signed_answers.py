"""Answers that the centre acts on are signed by the node that gives them, with its own key.

A question brings a key that everyone on its way may seal an answer to, so relays could put one of
their own in the place of the node's. What is signed names the tree, the node, the question and all
that is said, so an answer is good once, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.records.records import AskRecord
from schemas.values.codec import pack
from schemas.values.identity import TreeId
from schemas.values.nkey_signing import nkey_signature, nkey_signed

SIGNATURE = "signature"
"""Where an answer has it, beside what it says."""


def signed(
    entropy: bytes, tree: TreeId, ask: AskRecord, answer: Mapping[str, Any]
) -> dict[str, Any]:
    """The answer with a signature by the holder of an nkey: 32 bytes, as its seed says them."""
    return {**answer, SIGNATURE: nkey_signature(entropy, _said(tree, ask, answer))}


def is_signed(nkeys: Iterable[str], tree: TreeId, ask: AskRecord, answer: object) -> bool:
    """Whether a holder of one of these nkeys (`U...`) says all of this to this question.

    The answer is any value of msgpack.
    """
    if not isinstance(answer, Mapping):
        return False
    try:
        data = _said(tree, ask, without_signature(answer))
    except ValueError:  # It is read deeper than it is written.
        return False
    return any(nkey_signed(nkey, data, answer.get(SIGNATURE)) for nkey in nkeys)


def without_signature(answer: Any) -> Any:
    """What an answer says, a JSON value if its node gave one: a signature is none."""
    if not isinstance(answer, Mapping):
        return answer
    return {name: value for name, value in answer.items() if name != SIGNATURE}


def _said(tree: TreeId, ask: AskRecord, answer: Mapping[str, Any]) -> bytes:
    about = f"leafcast/answer/1\0{tree}\0{ask.path}\0{ask.verb}\0{ask.source.name}\0"
    return about.encode() + pack(answer)
