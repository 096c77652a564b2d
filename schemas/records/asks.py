"""Answers to asks, on their way up: a receipt at once, then the answer in parts of bounded size.

An ask goes down as a signed `AskRecord`. The parts that come back are not signed: their author is
the account they came through, as with reports. What a node answers to `node`, `certify`, `rekey`
and `replace` is signed within them (schemas.records.signed_answers), since the centre acts on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.records.answer_bounds import MOMENT_MAX_MS, TEXT_MAX_CHARACTERS
from schemas.values.wire import Natural, WireRecord

GET, STATUS, NODE = "get", "status", "node"
ORPHANS = "orphans"
UPSYNCED = "upsynced"
PROOF = "proof"
"""Shows the signed messages that a node holds."""
TRACE = "trace"
"""What a node noted of one change: see leafcast.node.trace_answer."""
REKEY = "rekey"
CERTIFY = "certify"
REPLACE = "replace"
"""Has a machine take the place of a lost member of the node."""

PART_MAX_BYTES = 900 * 1024
"""Of a message with a part of an answer."""
PART_DATA_MAX_BYTES = PART_MAX_BYTES - 4096
"""What of an answer goes into one message."""
PARTS_MAX = 32
ANSWER_MAX_BYTES = PARTS_MAX * PART_DATA_MAX_BYTES

RECEIPT = 0

REDACTED = "(redacted)"
"""What an answer has in the place of the data of Secrets."""


class AskFault(WireRecord, frozen=True):
    """Why there is no answer: a CamelCase word, a sentence, the node that it is about."""

    reason: str
    message: str
    path: str
    # When that node was last heard of (ms since 1970); 0 if that is not why.
    since_ms: Natural = 0


class AnswerPart(WireRecord, frozen=True):
    """A part of the answer to the ask with this id; number RECEIPT says that the ask arrived.

    Parts are sent in order; the data of all, one after the other, is the answer.
    """

    ask: str
    # Counts from 1.
    number: Natural
    last: bool
    data: bytes
    # Takes the answer's place.
    fault: AskFault | None = None


def receipt(ask: str) -> AnswerPart:
    """The word that an ask has arrived at the next node on its way."""
    return AnswerPart(ask, RECEIPT, last=False, data=b"")


def failure(ask: str, number: int, fault: AskFault) -> AnswerPart:
    """The end of an answer that cannot be given, or not to its end."""
    return AnswerPart(ask, number, last=True, data=b"", fault=bounded(fault))


def bounded(fault: AskFault) -> AskFault:
    """The fault with texts that people can read, and a moment that there is: anyone may say one."""
    return AskFault(
        fault.reason[:TEXT_MAX_CHARACTERS],
        fault.message[:TEXT_MAX_CHARACTERS],
        fault.path[:TEXT_MAX_CHARACTERS],
        min(fault.since_ms, MOMENT_MAX_MS),
    )


def answer_parts(ask: str, data: bytes) -> Iterator[AnswerPart]:
    """An answer of at most ANSWER_MAX_BYTES, as parts; there is one at least."""
    pieces = range(0, max(len(data), 1), PART_DATA_MAX_BYTES)
    for number, at in enumerate(pieces, start=1):
        last = number == len(pieces)
        yield AnswerPart(ask, number, last=last, data=data[at : at + PART_DATA_MAX_BYTES])
