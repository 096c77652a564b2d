"""What the centre acts on the node itself has said: no relay puts anything in its place."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from controllers.issuing.keys import load_or_make_keys
from leafcast.ask.api import ApiError
from leafcast.ask.client import CentreAsks
from leafcast.daemon.nodes.certificate_renewal import CertificateRenewal
from leafcast.daemon.nodes.node_keys import NodeKeys
from leafcast.node.answers import AnsweringNode, answerers
from leafcast.node.credentials.node_certificate import NodeCertificate
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey, seed_entropy
from relay.adapters.tls.authority import new_key, signing_request
from relay.shell.asker import AskFailed, open_answer
from schemas.content.answer_sealing import sealed_answer
from schemas.records import signed_answers
from schemas.records.asks import CERTIFY, NODE, REKEY, REPLACE, AskFault
from schemas.records.records import NodeRecord, Source, decode_payload
from schemas.values import codec
from schemas.values.identity import NodePath, TreeId

EMEA = NodePath.parse("/emea")
TREE = TreeId("t" * 26)
OLD, NEXT, EVIL = (new_user_nkey(bytes([number]) * 32) for number in (1, 2, 3))


class Bed:
    """A node, the relay above it that does as it likes, and the centre."""

    def __init__(self, folder) -> None:
        self.seed, self.record_keys, self.issued = OLD[0], OLD[1], []
        self.own = NodeCertificate(folder / "emea", ("emea.example",))
        self.clock, self.dice = SystemClock(), SystemDice()
        self.folder = folder
        self.keys = load_or_make_keys(folder, self.dice)
        self.said_before = {}
        # What the relay makes of an answer: by question and answer.
        self.relay = lambda _record, answer: answer
        self.asks = CentreAsks(
            lambda: self,
            lambda: self.keys,
            self.clock,
            self.dice,
            lambda _: self.record_keys.split(),
        )

    # The way of a question: it goes to the node, and the relay has the answer first.

    async def ask(self, _ask, _verb, envelope, key):
        record = decode_payload(envelope.kind, envelope.payload)
        try:
            answer = self.relay(record, await self._answer(record))
        except NotImplementedError as error:
            raise AskFailed(AskFault("UnknownVerb", "no", "/emea")) from error
        return open_answer(sealed_answer(codec.pack(answer), record.answer_key), key)

    async def _answer(self, record):
        if record.verb == REKEY:
            answer = {"nkey": OLD[1], "next": NEXT[1] if "make" in record.arguments else ""}
        elif record.verb == NODE:
            answer = {"children": {}, "certificateRequest": self.own.request()}
        else:
            said = record.arguments
            self.own.take(said["certificate"], said["authority"], self.clock.now().wall_ms)
            answer = {"taken": True}
        return signed_answers.signed(seed_entropy(self.seed), self.keys.tree, record, answer)

    # The centre's tree, whose nodes these are.

    def tree_id(self):
        return TREE

    def issuer(self):
        keys = self.record_keys
        node = NodeRecord(Source("leafcast.io/Node", TREE, "", "/emea"), 1, "", "", EMEA, keys)
        return SimpleNamespace(records={"k": node}, issue=self.issue, tree=TREE)

    async def issue(self, drafts):
        self.record_keys = drafts[0].record.nkey
        self.issued.append(self.record_keys)

    def record(self, path):
        return SimpleNamespace(nkey=self.record_keys) if path == EMEA else None

    def holders(self):
        return {self.record_keys: EMEA}

    async def admitted(self, _nkeys):
        return False

    def node_keys(self):
        return NodeKeys(self, self, asyncio.Lock(), self.asks, self.clock)

    def renewal(self):
        return CertificateRenewal(self, self.asks, SimpleNamespace(folder=self.folder), self.clock)


@pytest.fixture
def bed(tmp_path):
    return Bed(tmp_path)


def swapped(**said):
    """The same answer with something else in it."""
    return lambda _record, answer: {**answer, **{k: v for k, v in said.items() if k in answer}}


def without_signature(_record, answer):
    return {name: it for name, it in answer.items() if name != signed_answers.SIGNATURE}


def signed_by_another(bed):
    def relay(record, answer):
        said = {**without_signature(record, answer), "next": EVIL[1]}
        return signed_answers.signed(seed_entropy(EVIL[0]), bed.keys.tree, record, said)

    return relay


def of_another_question(bed):
    """What the node said to the question before."""

    def relay(record, answer):
        before = bed.said_before.get(record.verb, answer)
        bed.said_before[record.verb] = answer
        return before

    return relay


async def test_what_a_node_makes_is_issued_and_nothing_that_a_relay_puts_in_its_place(bed):
    with pytest.raises(ApiError, match="goes on with its old key"):
        await bed.node_keys().rotate("/emea")
    assert bed.issued == [f"{OLD[1]} {NEXT[1]}"]


@pytest.mark.parametrize(
    "relay",
    [
        lambda _: swapped(next=EVIL[1]),
        lambda _: swapped(nkey=EVIL[1]),
        lambda _: without_signature,
        signed_by_another,
        of_another_question,
        lambda _: lambda _record, _answer: [EVIL[1]],
        lambda _: lambda _record, answer: {**answer, "signature": "no bytes"},
        lambda _: lambda _record, answer: {**answer, "signature": b""},
    ],
)
async def test_a_relay_that_swaps_the_next_key_of_a_node_changes_nothing(bed, relay):
    bed.relay = relay(bed)
    with pytest.raises(ApiError, match="is not signed by its key; nothing was changed") as refused:
        await bed.node_keys().rotate("/emea")
    assert refused.value.code == "NotSigned"
    assert bed.issued == []
    assert bed.record_keys == OLD[1]


async def test_a_relay_that_swaps_a_certificate_request_gets_no_certificate(bed):
    renewal = bed.renewal()
    assert await renewal.first(EMEA, bed.own.request())
    evil = signing_request(new_key(), ["emea.example"])
    later = bed.clock.now().wall_ms + 21 * 86_400_000
    handed_over = []

    def relay(record, answer):
        if record.verb == CERTIFY:
            handed_over.append(record)
        return swapped(certificateRequest=evil)(record, answer)

    bed.relay = relay
    assert await renewal.renew_due(later) == []
    assert handed_over == []
    bed.relay = lambda _record, answer: answer
    assert await renewal.renew_due(later) == [EMEA]


async def test_a_relay_that_says_taken_for_a_node_is_not_believed(bed):
    bed.relay = lambda record, answer: {"taken": True} if record.verb == CERTIFY else answer
    with pytest.raises(ApiError, match="is not signed by its key"):
        await bed.renewal().first(EMEA, bed.own.request())


def test_an_answer_that_is_deeper_than_can_be_written_is_not_believed():
    record = SimpleNamespace(path=EMEA, verb=REKEY, source=SimpleNamespace(name="a" * 26))
    # What is read is never so deep: another reader may let it in.
    deep = {"a": None}
    for _ in range(900):
        deep = {"a": [deep["a"]]}
    assert not signed_answers.is_signed([OLD[1]], TREE, record, deep)


async def test_the_centre_answers_itself_and_a_node_without_key_signs_nothing(bed):
    bed.relay = without_signature
    assert await bed.asks.ask_signed(NodePath(), NODE, {})
    bed.relay, bed.record_keys = (lambda _record, answer: answer), ""
    with pytest.raises(AskFailed) as failed:
        await bed.asks.ask_signed(EMEA, NODE, {})
    assert failed.value.fault.reason == "NotSigned"


@pytest.mark.parametrize("verb", [NODE, REKEY, CERTIFY, REPLACE])
async def test_a_node_signs_what_the_centre_acts_on(verb):
    async def taken(*_):
        return None

    async def replaced(_):
        return {"name": "m4"}

    signed = []

    def sign(record, answer):
        signed.append(record.verb)
        return {**answer, "signature": b"s"}

    asked = AnsweringNode(
        EMEA,
        driver=SimpleNamespace(
            node=SimpleNamespace(
                own_state=dict,
                children=lambda: (),
                records={},
                ready=True,
            ),
            counters=SimpleNamespace(mail_written=0, noted={}),
        ),
        cluster=lambda: None,
        read_copies=taken,
        rekey=lambda _: {"nkey": OLD[1], "next": ""},
        sign=sign,
        take_certificate=taken,
        standing=dict,
        members=taken,
        replace_member=replaced,
    )
    answer = await answerers(asked)[verb](SimpleNamespace(verb=verb, arguments={}))
    assert answer["signature"] == b"s"
    assert signed == [verb]


async def test_what_a_node_says_is_shown_as_json_without_its_signature(tmp_path):
    bed = Bed(tmp_path)
    shown = await bed.asks.serve("/emea", NODE)
    assert json.loads(json.dumps(shown)) == shown
    assert shown.keys() == {"children", "certificateRequest"}


def test_no_text_is_taken_for_an_answer_so_a_parent_gets_no_signature_as_it_lets_a_node_in():
    """A server has its nodes sign a text of its own choice, by the same key."""
    record = SimpleNamespace(path=EMEA, verb=REKEY, source=SimpleNamespace(name="a" * 26))
    with pytest.raises(UnicodeDecodeError):
        signed_answers._said(TREE, record, {"next": EVIL[1]}).decode()
