"""What a node makes of its own mail: the table of acceptance, and where a session reads on."""

import hashlib
from dataclasses import replace

import pytest

from relay.core.book import read_record
from relay.core.events import MailArrived
from relay.core.inbox import Inbox, Park, PassOver, Refuse, Take
from relay.core.index import IndexView
from relay.core.trust import Trust
from schemas import blobs, wire
from schemas.chunks import build_index, read_root
from schemas.identity import KEYS_KEY, KeyId, NodePath, TreeId, random_id
from schemas.records import (
    API_PLACEMENT,
    DeltaBody,
    DeltaHead,
    Gate,
    IndexRecord,
    KeyGrant,
    KeysRecord,
    Profile,
    Source,
    encode_payload,
)
from schemas.reports import Cursor, SessionMessage
from schemas.signing import Signer

TREE = TreeId("t" * 26)
ROOT = Signer(TREE, KeyId(random_id(b"r" * 16)), b"r" * 32)
CENTRE = Signer(TREE, KeyId(random_id(b"c" * 16)), b"c" * 32)
STRANGER = Signer(TREE, KeyId(random_id(b"x" * 16)), b"x" * 32)
SHOP = Source(API_PLACEMENT, "wds", "", "shop")
BODY = DeltaBody((Gate(None),)).encode()
HASHED = hashlib.sha256(BODY).digest()


def delta(generation, *, body=True, deleted=False, signer=CENTRE, source=SHOP, sequence=1):
    head = DeltaHead(source, generation, deleted, "", (), HASHED, (), 0)
    envelope = signer.seal("delta", encode_payload(head), BODY if body else None)
    return MailArrived(sequence, source.key, envelope.encode(), 0)


def profile(generation, *, deleted=False):
    source = Source("edge.kubestellar.io/SyncTarget", "inv", "", "t")
    record = Profile(
        source, generation, deleted, "", (), "inv-mb-u", NodePath.parse("/a"), {}, {}, {}
    )
    return MailArrived(1, source.key, CENTRE.seal("profile", encode_payload(record)).encode(), 0)


def view(generation, listed, *, chunks=True):
    """An index of this generation; with its chunks here, or not yet."""
    index = IndexView()
    root, *parts = build_index(listed.items())
    source = Source("leafcast.io/Index", "", "", "")
    record = IndexRecord(source, generation, False, "", (), 0, root.reference)
    index.adopt(record, read_root(opened(root)))
    for part in parts if chunks else ():
        index.add_chunk(part.reference.address, opened(part))
    return index


def opened(stored):
    return blobs.open_value(stored.reference, stored.values[stored.reference.address])


def inbox(index=None, *, memory=False, grant=("delta", "profile", "index")):
    trust = Trust(TREE, {ROOT.key_id: ROOT.public_key})
    grants = (KeyGrant(CENTRE.key_id, CENTRE.public_key, grant),)
    source = Source("leafcast.io/Keys", "", "", "")
    trust.adopt(KeysRecord(source, 1, False, "", (), grants))
    return Inbox(trust, index or IndexView(), remembers=memory, shown_index=memory)


def held_of(event):
    return read_record(event.data, 0)[1]


LISTED, NEWER, OLDER, ABSENT = {SHOP.key: 5}, {SHOP.key: 6}, {SHOP.key: 4}, {}


@pytest.mark.parametrize(
    ("generation", "index", "listed", "memory", "verdict"),
    [
        (5, 9, LISTED, False, Take),  # the index lists it with just this generation
        (5, 9, OLDER, False, Take),  # with a lower one
        (5, 9, NEWER, False, Refuse),  # superseded
        (5, 9, ABSENT, False, Refuse),  # gone
        (5, 9, LISTED, True, Take),
        (5, 9, NEWER, True, Refuse),  # memory makes nothing old new
        (5, 9, ABSENT, True, Refuse),
        (5, 5, ABSENT, True, Refuse),  # the index is as new and does not list it
        (10, 9, ABSENT, True, Take),  # newer than the index, and this node has memory
        (10, 9, OLDER, True, Take),
        (10, 9, ABSENT, False, Park),  # it may be new, and it may be made up
        (10, 9, OLDER, False, Take),
    ],
)
def test_a_delta_for_a_key_not_held_is_taken_as_index_and_memory_say(
    generation, index, listed, memory, verdict
):
    box = inbox(view(index, listed), memory=memory)
    assert isinstance(box.judge(delta(generation), None, 1), verdict)


@pytest.mark.parametrize(
    ("known", "arriving", "verdict"),
    [
        ({"generation": 5}, {"generation": 6}, Take),
        ({"generation": 5}, {"generation": 5}, PassOver),
        ({"generation": 5}, {"generation": 4}, PassOver),
        ({"generation": 5}, {"generation": 6, "body": False}, Take),
        ({"generation": 5}, {"generation": 6, "deleted": True}, Take),
        ({"generation": 5}, {"generation": 5, "body": False}, PassOver),
        ({"generation": 5, "body": False}, {"generation": 5}, Take),
        ({"generation": 6, "deleted": True, "body": False}, {"generation": 5}, PassOver),
        ({"generation": 6, "body": False}, {"generation": 5}, PassOver),
    ],
)
def test_a_newer_generation_is_never_overwritten(known, arriving, verdict):
    """Whatever index is shown: what is held decides."""
    for box in (inbox(), inbox(view(9, LISTED), memory=True), inbox(view(9, ABSENT))):
        assert isinstance(box.judge(delta(**arriving), held_of(delta(**known)), 1), verdict)


def test_before_any_index_a_delta_waits():
    assert isinstance(inbox().judge(delta(5), None, 1), Park)
    without = inbox()
    without.remembers = True
    assert isinstance(without.judge(delta(5), None, 1), Park)


def test_a_chunk_of_the_index_that_would_tell_is_named():
    box = inbox(view(9, LISTED, chunks=False))
    ruling = box.judge(delta(5), None, 1)
    assert isinstance(ruling, Park)
    assert ruling.chunk == box.index.root.chunks[0]


def test_what_takes_away_something_not_held_is_answered_as_gone():
    for event in (delta(5, deleted=True), delta(5, body=False)):
        for index in (view(9, ABSENT), view(9, LISTED), IndexView()):
            ruling = inbox(index).judge(event, None, 1)
            assert isinstance(ruling, PassOver)
            assert ruling.gone


def test_a_profile_is_taken_if_it_is_newer_whatever_the_index_says():
    box = inbox()
    assert isinstance(box.judge(profile(5), None, 1), Take)
    assert isinstance(box.judge(profile(5), held_of(profile(6)), 1), PassOver)
    assert isinstance(box.judge(profile(6, deleted=True), held_of(profile(5)), 1), Take)
    assert isinstance(box.judge(profile(6, deleted=True), None, 1), PassOver)


def test_a_record_under_another_key_than_its_own_is_refused():
    moved = replace(delta(5), key=Source(API_PLACEMENT, "wds", "", "other").key)
    ruling = inbox(view(9, LISTED)).judge(moved, None, 1)
    assert isinstance(ruling, Refuse)
    assert ruling.reason == "WrongKey"


def test_a_record_of_another_kind_under_a_key_is_refused():
    ruling = inbox().judge(profile(7), replace(held_of(profile(5)), kind="location"), 1)
    assert isinstance(ruling, Refuse)
    assert ruling.reason == "WrongKind"


def test_a_key_that_is_not_known_parks_and_one_out_of_scope_refuses():
    index = view(9, LISTED)
    assert isinstance(inbox(index).judge(delta(5, signer=STRANGER), None, 1), Park)
    narrow = inbox(index, grant=("profile",)).judge(delta(5), None, 1)
    assert isinstance(narrow, Refuse)
    assert narrow.reason == "OutOfScope"


def test_a_forged_record_is_refused():
    forger = Signer(TREE, CENTRE.key_id, b"f" * 32)
    elsewhere = Signer(TreeId("u" * 26), CENTRE.key_id, CENTRE.seed)
    for signer in (forger, elsewhere):
        ruling = inbox(view(9, LISTED)).judge(delta(5, signer=signer), None, 1)
        assert isinstance(ruling, Refuse)
        assert ruling.reason == "Forged"


def test_keys_are_believed_from_a_root_only():
    source = Source("leafcast.io/Keys", "", "", "")
    payload = encode_payload(KeysRecord(source, 2, False, "", (), ()))
    box = inbox(grant=("keys", "delta"))
    said = [
        MailArrived(1, KEYS_KEY, signer.seal("keys", payload).encode(), 0)
        for signer in (ROOT, CENTRE)
    ]
    assert isinstance(box.judge(said[0], None, 1), Take)
    assert isinstance(box.judge(said[1], None, 1), Park)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xc1", delta(5).data[:-1], bytes(100)])
def test_what_is_unreadable_is_refused(data):
    ruling = inbox().judge(MailArrived(1, SHOP.key, data, 0), None, 1)
    assert isinstance(ruling, Refuse)
    assert ruling.reason == "Unreadable"


def session(incarnation, last, *, swept=0, want="none"):
    return SessionMessage(incarnation, 3, last, swept, 0, want)


@pytest.mark.parametrize(
    ("message", "start", "full"),
    [
        (session("i", 10), 8, False),  # the same incarnation: after the cursor
        (session("i", 7), 8, False),
        (session("i", 6), 1, True),  # the mailbox ends before the cursor
        (session("i", 10, swept=8), 1, True),  # a swept tombstone lies between
        (session("i", 10, swept=7), 8, False),
        (session("j", 10), 11, False),  # another incarnation whose digest agrees
        (session("j", 10, want="again"), 1, True),
        (session("i", 10, want="again"), 1, True),
    ],
)
def test_a_session_reads_on_from_the_cursor_or_in_full(message, start, full):
    box = inbox()
    box.restore(Cursor("i", 7, 0, has_memory=True))
    assert box.begin_session(message) == start
    assert (box.seen is not None) == full
    assert box.incarnation == message.incarnation
    assert box.settled == (not full and start > message.last_sequence)
    assert not box.has_memory


def test_only_the_answer_to_what_was_asked_last_begins_a_session():
    box = inbox()
    box.ask()
    first = wire.replace(session("i", 10), question=box.question)
    assert box.is_answered(first)
    box.begin_session(first)
    beat = wire.replace(first, last_sequence=12)
    assert box.is_answered(beat)
    box.ask()
    # The parent is put back to a copy of its disk in which the first question lies unanswered.
    assert not box.is_answered(wire.replace(first, epoch=4))
    assert not box.is_answered(beat)
    again = wire.replace(first, epoch=4, question=box.question)
    assert box.is_answered(again)
    assert not box.is_answered(wire.replace(again, epoch=3))
    assert not box.is_answered(wire.replace(again, epoch=0))
    assert box.is_answered(wire.replace(again, question=0)), (
        "from a parent that knows of no questions"
    )


def test_what_was_parked_is_read_again_in_the_next_session():
    box = inbox()
    box.restore(Cursor("i", 7, 0, has_memory=True))
    box.begin_session(session("i", 10))
    for sequence in (8, 9, 10):
        box.arrived(delta(5, sequence=sequence))
    box.parked.put(delta(5, sequence=9))
    assert box.answered == 8
    assert box.begin_session(session("i", 10)) == 9
    assert not box.settled


def test_a_full_read_that_a_lost_link_interrupts_goes_on_and_still_forgets_the_absent():
    box = inbox()
    box.restore(Cursor("i", 20, 0, has_memory=False))
    stays, goes = held_of(delta(5)), held_of(profile(5))
    box.count(stays)
    box.count(goes)
    assert box.begin_session(session("i", 10)) == 1
    box.arrived(replace(delta(5, sequence=4), pending=1))
    assert box.begin_session(session("i", 10)) == 5
    box.arrived(replace(delta(5, sequence=10), pending=0))
    assert box.settled
    assert box.digest == stays.term


def test_an_empty_mailbox_is_read_at_once():
    box = inbox()
    box.count(held_of(delta(5)))
    assert box.begin_session(session("i", 0, want="again")) == 1
    assert box.settled
    assert box.digest == 0


def test_memory_comes_of_a_full_read_against_an_index():
    box = inbox(view(9, LISTED))
    box.begin_session(session("i", 1))
    box.arrived(delta(5))
    assert not box.settle_memory()
    box.shown_index = True
    box.parked.put(delta(5))
    assert not box.settle_memory()
    box.parked.clear()
    assert box.settle_memory()
    assert box.has_memory
    assert box.cursor() == Cursor("i", 1, 9, has_memory=True)


def test_the_digest_is_over_the_slots_that_hold_content():
    box = inbox()
    for event in (delta(5), profile(5)):
        box.count(held_of(event))
    both = (held_of(delta(5)).term + held_of(profile(5)).term) % 2**128
    assert box.digest == both
    box.count(held_of(delta(6, body=False)))
    assert box.digest == held_of(profile(5)).term
    box.count(held_of(profile(7, deleted=True)))
    assert box.digest == 0


def test_what_is_parked_is_void_once_its_slot_holds_something_newer():
    box = inbox()
    box.parked.put(delta(5, sequence=1))
    box.parked.put(delta(5, source=wire.replace(SHOP, name="b"), sequence=2))
    box.supersede(delta(6, body=False, sequence=3))
    assert list(box.parked) == [2]


def test_between_what_goes_together_is_no_moment_to_take_anything_away():
    box = inbox(memory=True)
    box.settled = True
    calm = []
    for sequence, more in ((1, False), (2, True), (3, True), (3, False), (1, False), (4, False)):
        box.arrived(MailArrived(sequence, SHOP.key, b"", 0, more=more))
        calm.append(box.calm)
    assert calm == [True, False, False, False, False, True]
