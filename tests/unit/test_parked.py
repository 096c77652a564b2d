"""Mail that waits to be judged: read once, in order, and never believed by a key that is gone."""

from dataclasses import replace

from relay.core import parked as parked_module
from relay.core.effects import AckMail, Noted, ResetMail
from relay.core.events import Instant, LinkChanged, MailArrived, Remembered, SessionArrived
from relay.core.inbox import Park, Refuse, Take
from relay.core.node import Node
from relay.core.recalling import records_answer
from relay.core.records.accepted import read_record
from relay.core.records.parked import Parked
from relay.core.state import NodeConfig
from schemas import wire
from schemas.chunks import build_index, read_root
from schemas.identity import KEYS_KEY, NodePath, TreeId, random_id, short_key
from schemas.records import (
    API_KEYS,
    API_PLACEMENT,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    Source,
    encode_payload,
)
from schemas.reports import SessionMessage
from tests.unit.test_inbox import CENTRE, HASHED, ROOT, STRANGER, TREE, delta, inbox, opened, view

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


class Reader:
    """A node that reads its mail in a session; what it did is kept apart by kind."""

    def __init__(self):
        config = NodeConfig(NodePath.parse("/emea"), TREE, {ROOT.key_id: ROOT.public_key}, "run")
        self.node = Node(config, Remembered(), [], Instant(0.0, 1))
        self.effects = []
        self.tell(LinkChanged(up=True))
        self.tell(SessionArrived(SessionMessage("inc", 1, 9_999_999, 0, 0, "again", "run", 1)))
        self.effects.clear()

    def tell(self, event):
        self.effects += self.node.handle(event, Instant(0.0, 1))

    def read(self, events):
        for event in events:
            self.tell(event)

    def did(self, kind):
        return [effect for effect in self.effects if type(effect) is kind]

    @property
    def parked(self):
        return self.node._state.inbox.parked


def stream(count, *, signer=CENTRE):
    """A mailbox of so many deltas, each in a slot of its own, with more to come."""
    named = (Source(API_PLACEMENT, "wds", "", f"p{at}") for at in range(count))
    made = (delta(5, signer=signer, source=source) for source in named)
    return [replace(event, sequence=at, pending=1) for at, event in enumerate(made, start=1)]


def test_a_parent_that_never_ends_a_mailbox_has_no_more_wait_here_than_there_is_room_for(
    monkeypatch,
):
    monkeypatch.setattr(parked_module, "PARKED_MAX", 20)
    reader = Reader()
    reader.read(stream(100, signer=STRANGER))
    assert len(reader.parked) == 20
    assert reader.did(ResetMail) == []
    assert {ack.sequence for ack in reader.did(AckMail)} == {0}
    assert [note.reason for note in reader.did(Noted)] == ["MailWaits"]
    assert not reader.node.ready


def test_mail_that_is_large_finds_no_room_either(monkeypatch):
    events = stream(100)
    monkeypatch.setattr(parked_module, "PARKED_BYTES_MAX", 10 * len(events[0].data))
    reader = Reader()
    reader.read(events)
    assert len(reader.parked) <= 11
    assert reader.parked._bytes == sum(len(data) for _, data in reader.parked.mail())
    reader.parked.clear()
    assert reader.parked._bytes == 0


def test_what_found_no_room_is_read_again_once_and_then_refused_if_no_key_came(monkeypatch):
    monkeypatch.setattr(parked_module, "PARKED_MAX", 20)
    reader = Reader()
    events = stream(100, signer=STRANGER)
    events[-1] = replace(events[-1], pending=0)
    reader.read(events)
    assert [reset.sequence for reset in reader.did(ResetMail)] == [1]
    reader.effects.clear()
    reader.read(events)
    assert reader.did(ResetMail) == []
    assert len(reader.parked) == 0
    assert {note.reason for note in reader.did(Noted)} == {"UnknownKey"}
    assert reader.did(AckMail)[-1].sequence == 100


def test_all_that_waits_for_a_key_is_taken_however_little_room_there_is(monkeypatch):
    """The key comes last, as after it was replaced: all mail was written before it."""
    monkeypatch.setattr(parked_module, "PARKED_MAX", 4)
    grant = KeyGrant(CENTRE.key_id, CENTRE.public_key, ("location", "delta", "index"))
    keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
    last = MailArrived(31, KEYS_KEY, ROOT.seal("keys", encode_payload(keys)).encode(), 0)
    mailbox = [*(located(at) for at in range(1, 31)), last]
    reader = Reader()
    for _ in range(2):
        reader.read(mailbox)
    assert len(reader.did(ResetMail)) == 1
    assert {event.key for event in mailbox} <= reader.node.records.keys()
    assert reader.did(AckMail)[-1].sequence == 31


def located(at):
    source = Source("edge.kubestellar.io/Location", "inv", "", f"l{at}")
    record = LocationRecord(source, at, False, "", (), {}, {}, None)
    data = CENTRE.seal("location", encode_payload(record)).encode()
    return MailArrived(at, source.key, data, 1)


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


def test_a_centre_that_reads_back_is_shown_the_last_index_that_was_all_here():
    config = NodeConfig(NodePath.parse("/emea"), TreeId(random_id(bytes(16))), {}, "run")
    node = Node(config, Remembered(), [], Instant(0.0, 1))
    own, index = node._state.inbox, node._state.index
    own.epoch, own.settled, own.remembers = 1, True, True
    whole, next_one, newest = index_of(8), index_of(9), index_of(10)
    lists = [build_index([(FIRST, generation)]) for generation in (8, 9, 10)]
    roots = [read_root(opened(root)) for root, *_ in lists]
    index.adopt(whole.record, roots[0], whole.data)
    index.add_chunk(lists[0][1].reference.address, opened(lists[0][1]))
    assert records_answer(node, {})["records"] == [whole.data]
    # However many come whose chunks are lost with the centre.
    index.adopt(next_one.record, roots[1], next_one.data)
    assert records_answer(node, {})["records"] == [next_one.data, whole.data]
    index.adopt(newest.record, roots[2], newest.data)
    assert records_answer(node, {})["records"] == [newest.data, whole.data]
    index.add_chunk(lists[2][1].reference.address, opened(lists[2][1]))
    assert records_answer(node, {})["records"] == [newest.data]
    index.adopt(index_of(11).record, roots[0], index_of(11).data)
    assert index.former == newest.record


def index_of(generation, root=None):
    """An index as a node holds it, of this root if one is given."""
    record = view(8, {}).record
    root = root or record.root
    record = wire.replace(record, generation=generation, references=(root,), root=root)
    payload = encode_payload(record)
    return read_record(CENTRE.seal("index", payload).encode(), 0)[1]
