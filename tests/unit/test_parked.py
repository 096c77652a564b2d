"""Mail that waits to be judged: bounded, judged once it can be, read again if it had no room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.effects import AckMail, Noted, ResetMail
from relay.core.events import MailArrived, Tick, Welcomed
from relay.core.link.parent import QUIET_SECONDS
from relay.core.records import parked as room
from relay.core.records.parked import Parked
from schemas.records.records import (
    API_KEYS,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    Source,
    encode_payload,
)
from schemas.records.signing import Signer
from schemas.reports.link import Repair, Welcome
from schemas.values.identity import KEYS_KEY, short_key
from tests.unit.meeting import ROOT, SIGNER, TERM, TREE, Meeting

KEYS = [short_key(bytes([at]) * 20) for at in range(4)]
STRANGER = Signer(TREE, "x" * 26, b"x" * 32)
acts = st.lists(
    st.tuples(
        st.sampled_from(["put", "forget", "clear"]), st.sampled_from(KEYS), st.integers(1, 9)
    ),
    max_size=30,
)


@given(acts)
def test_the_latest_of_each_slot_waits_and_the_lowest_is_known(listed):
    parked, held = Parked(), {}
    for what, key, sequence in listed:
        match what:
            case "put":
                parked.put(MailArrived(sequence, key, b"", 0))
                held[key] = max(sequence, held.get(key, 0))
            case "forget":
                parked.forget(MailArrived(sequence, key, b"", 0))
                if held.get(key, 0) <= sequence:
                    held.pop(key, None)
            case _:
                parked.clear()
                held.clear()
        assert parked.lowest == min(held.values(), default=None)
        assert {event.key: event.sequence for event in parked} == held
        assert len(parked) == len(held)


def test_what_finds_no_room_is_not_kept_and_known_to_be_missing(monkeypatch):
    monkeypatch.setattr(room, "PARKED_BYTES_MAX", 10)
    parked = Parked()
    first = MailArrived(1, KEYS[0], bytes(8), 0)
    parked.put(first)
    parked.put(MailArrived(2, KEYS[1], bytes(8), 0))
    assert [event.sequence for event in parked] == [1]
    assert parked.overflowed
    assert not parked.has_room
    parked.forget(first)
    assert parked.has_room
    parked.clear()
    assert not parked.overflowed


class Reader:
    """A node in session whose mailbox is read anew, message by message."""

    def __init__(self, count):
        self.meeting = Meeting()
        self.node = self.meeting.join("one", "here")
        self.effects = []
        self.incarnation = self.node.own_state()["cursor"]["incarnation"]
        self.tell(Welcomed(Welcome(self.incarnation, "one", count, b"", Repair.REREAD)))
        assert [reset.sequence for reset in self.did(ResetMail)] == [1]
        self.effects.clear()

    def tell(self, event):
        self.effects += self.meeting.tell(self.node, event)
        self.node.assert_invariants()

    def read(self, mailbox):
        for at, (key, data) in enumerate(mailbox, 1):
            self.tell(MailArrived(at, key, data, len(mailbox) - at))
        self.meeting.now += QUIET_SECONDS
        self.tell(Tick())

    def did(self, kind):
        return [effect for effect in self.effects if type(effect) is kind]


def located(at, signer=STRANGER):
    """A Location of the future, so that no snapshot need list it."""
    source = Source("edge.kubestellar.io/Location", "inv", "", f"l{at}")
    record = LocationRecord(source, 2**50 + at, TERM.hex(), "", {}, {}, None)
    return source.key, signer.seal("location", encode_payload(record), record.body).encode()


def keys_with(*signers):
    grants = tuple(
        KeyGrant(signer.key_id, signer.public_key, ("location", "snapshot", "node"))
        for signer in signers
    )
    record = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 2, TERM.hex(), "", grants)
    return KEYS_KEY, ROOT.seal("keys", encode_payload(record)).encode()


def test_mail_of_an_unknown_key_waits_for_the_key_and_is_then_believed():
    mailbox = [*(located(at) for at in range(5)), keys_with(SIGNER, STRANGER)]
    reader = Reader(len(mailbox))
    reader.read(mailbox)
    assert {key for key, _ in mailbox} <= reader.node.records.keys()
    assert {ack.sequence for ack in reader.did(AckMail)} == {6}
    assert not reader.did(Noted)


def test_mail_of_a_key_that_never_comes_is_refused_at_the_end_of_the_mailbox():
    mailbox = [located(at) for at in range(5)]
    reader = Reader(len(mailbox))
    reader.read(mailbox)
    assert {note.reason for note in reader.did(Noted)} == {"UnknownKey"}
    assert reader.did(AckMail)[-1].sequence == 5
    assert reader.node.records.keys() == {KEYS_KEY}


@pytest.mark.parametrize("waiting", [20, 30])
def test_all_that_waits_for_a_key_is_taken_however_little_room_there_is(monkeypatch, waiting):
    """The key comes last, as after it was replaced: all mail was written before it."""
    monkeypatch.setattr(room, "PARKED_MAX", 4)
    mailbox = [*(located(at) for at in range(waiting)), keys_with(SIGNER, STRANGER)]
    reader = Reader(len(mailbox))
    reader.read(mailbox)
    assert [reset.sequence for reset in reader.did(ResetMail)] == [1]
    reader.read(mailbox)
    assert len(reader.did(ResetMail)) == 1
    assert {key for key, _ in mailbox} <= reader.node.records.keys()
    assert reader.did(AckMail)[-1].sequence == len(mailbox)
