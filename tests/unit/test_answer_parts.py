"""A relay passes on parts of answers as large as the protocol has them, and no larger ones."""

import pytest

from relay.core.asks.routing import AnswerArrived, AskArrived, AskRouter, LastHeard, SendAnswer
from relay.core.instant import Instant
from schemas.records.asks import PART_DATA_MAX_BYTES, PART_MAX_BYTES, AnswerPart
from schemas.records.records import API_ASK, AskRecord, Source, encode_payload
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.wire import encode

SIGNER = Signer(TreeId("t" * 26), KeyId("k" * 26), b"s" * 32)
ASK = random_id(b"a" * 16)


def believing(envelope, record):
    return ""


def heard(child):
    return LastHeard(1000, silent=False)


@pytest.mark.parametrize(
    ("size", "passed"), [(PART_DATA_MAX_BYTES, True), (PART_MAX_BYTES + 1, False)]
)
def test_a_part_of_more_than_its_bytes_is_not_passed_on(size: int, passed: bool):
    now, path = Instant(0.0, 1000), NodePath.parse("/emea/s1")
    source = Source(API_ASK, SIGNER.tree, "", ASK)
    record = AskRecord(source, 1, "", "", "node", path, 10_000, {})
    asked = AskArrived("node", SIGNER.seal("ask", encode_payload(record)).encode())
    router = AskRouter(NodePath.parse("/emea"), believing, heard)
    router.ask(asked, now)
    part = encode(AnswerPart(ASK, 1, last=True, data=bytes(size)))
    effects = router.answer(AnswerArrived("s1", part), now)
    assert (effects == (SendAnswer(ASK, part),)) is passed
    assert router.refused == (0 if passed else 1)
