"""Mail that waits to be judged: read once, in order, and never believed by a key that is gone."""

from dataclasses import replace

from relay.core.book import read_record
from relay.core.events import Instant, MailArrived, Remembered
from relay.core.inbox import Park, Refuse, Take
from relay.core.node import Node
from relay.core.parked import Parked
from relay.core.recalling import records_answer
from relay.core.state import NodeConfig
from schemas.identity import NodePath, TreeId, random_id, short_key
from schemas.records import KeysRecord, Source, encode_payload
from tests.unit.test_inbox import CENTRE, HASHED, delta, inbox, view

FIRST, SECOND = short_key(bytes(20)), short_key(b"2" * 20)


def mail(sequence, key=FIRST):
    return MailArrived(sequence, key, b"", 0)


def test_the_lowest_is_known_whatever_comes_and_goes():
    parked = Parked()
    assert parked.lowest is None
    for sequence in (5, 3, 9):
        parked.put(mail(sequence))
    assert parked.lowest == 3
    assert parked.take(3) == (mail(3), None)
    parked.put(mail(2))
    assert parked.lowest == 2
    parked.take(2)
    assert (parked.lowest, list(parked), len(parked)) == (5, [5, 9], 2)
    assert parked.take(2) is None
    parked.clear()
    assert parked.lowest is None


def test_only_what_was_in_the_same_slot_before_is_let_go():
    parked = Parked()
    for sequence, key in ((1, FIRST), (2, SECOND), (3, FIRST), (7, FIRST)):
        parked.put(mail(sequence, key))
    parked.forget_before(FIRST, 7)
    assert list(parked) == [2, 7]


def test_what_was_believed_is_not_read_again():
    box = inbox(view(4, {}))
    event = delta(5)
    parked = box.judge(event, None, 1)
    assert isinstance(parked, Park)
    box.index = view(6, {event.key: 5})
    unreadable = replace(event, data=b"")
    taken = box.judge(unreadable, None, 2, parked.believed)
    assert isinstance(taken, Take)
    assert (taken.held.order, taken.held.record.body_hash) == (2, HASHED)


def test_what_an_earlier_key_signed_is_judged_again_once_other_keys_are_in_force():
    box = inbox(view(4, {}))
    event = delta(5)
    parked = box.judge(event, None, 1)
    assert isinstance(parked, Park)
    box.trust.adopt(KeysRecord(Source("leafcast.io/Keys", "", "", ""), 2, False, "", (), ()))
    box.index, box.settled = view(6, {event.key: 5}), True
    assert isinstance(box.judge(event, None, 2, parked.believed), Refuse)


def test_a_centre_that_reads_back_is_shown_what_waits_for_what_it_lost():
    config = NodeConfig(NodePath.parse("/emea"), TreeId(random_id(bytes(16))), {}, "run")
    node = Node(config, Remembered(), [], Instant(0.0, 1))
    own = node._state.inbox
    own.parked.put(MailArrived(5, FIRST, b"as it came", 0))
    own.epoch, own.settled = 1, True
    assert not records_answer(node, {})["ready"]
    own.remembers = True
    assert not node.ready
    assert records_answer(node, {}) == {"ready": True, "records": [b"as it came"], "next": ""}


def test_a_centre_that_reads_back_is_shown_the_index_that_is_looked_through_beside_a_newer_one():
    config = NodeConfig(NodePath.parse("/emea"), TreeId(random_id(bytes(16))), {}, "run")
    node = Node(config, Remembered(), [], Instant(0.0, 1))
    own = node._state.inbox
    own.epoch, own.settled, own.remembers = 1, True, True
    assert records_answer(node, {})["records"] == []
    older, newer, root = index_of(8), index_of(9), view(8, {}).root
    own.index.adopt(older.record, root, older.data)
    node._state.hold(newer)
    assert records_answer(node, {})["records"] == [newer.data, older.data]
    own.index.adopt(newer.record, root, newer.data)
    assert records_answer(node, {})["records"] == [newer.data]


def index_of(generation):
    """An index as a node holds it."""
    payload = encode_payload(replace(view(8, {}).record, generation=generation))
    return read_record(CENTRE.seal("index", payload).encode(), 0)[1]
