"""What a node takes from its mailbox: signed, under its own key, and in force by the snapshot."""

import pytest

from relay.core.effects import AckMail, Noted, ResetMail, StoreOwn
from relay.core.events import MailArrived, Tick
from relay.core.link.parent import QUIET_SECONDS
from schemas.records.records import LocationRecord, Source, body_of, encode_payload
from schemas.records.signing import Signer
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, short_key
from tests.unit.meeting import ROOT, SIGNER, TERM, TREE, Meeting

AHEAD = 2**50
STRANGER = Signer(TREE, SIGNER.key_id, b"x" * 32)


@pytest.fixture
def meeting():
    meeting = Meeting()
    meeting.child = meeting.join("one", "here")
    return meeting


def location(generation, name="l"):
    source = Source("edge.kubestellar.io/Location", "inv", "", name)
    return LocationRecord(source, generation, TERM.hex(), "", {}, {}, None)


def read(meeting, record, *, signer=SIGNER, key="", kind="location"):
    """What the child does about a message: whether it holds it, and what it notes."""
    data = signer.seal(kind, encode_payload(record), body_of(record)).encode()
    at = meeting.last + 7
    effects = meeting.tell(meeting.child, MailArrived(at, key or record.source.key, data, 0))
    meeting.now += QUIET_SECONDS
    effects += meeting.tell(meeting.child, Tick())
    assert AckMail(at) in effects, "whatever it is, it is judged once"
    held = meeting.child.records.get(record.source.key)
    kept = [e for e in effects if isinstance(e, StoreOwn) and e.data == data]
    taken = held is not None and held.data == data
    assert taken == bool(kept)
    return taken, [e.reason for e in effects if isinstance(e, Noted)]


def test_what_is_newer_than_the_snapshot_is_taken_at_once(meeting):
    assert read(meeting, location(AHEAD)) == (True, [])


def test_what_the_snapshot_does_not_list_and_is_older_is_superseded_without_a_word(meeting):
    assert read(meeting, location(1)) == (False, [])


def test_a_listed_generation_is_taken_and_no_other_one(meeting):
    meeting.issue("location", location(meeting.generation + 1))
    meeting.sign()
    listed = meeting.generation - 1
    meeting.wait(meeting.child, 700)
    assert read(meeting, location(listed - 1)) == (False, [])
    assert read(meeting, location(listed)) == (True, [])


def test_an_older_version_never_replaces_what_is_held(meeting):
    assert read(meeting, location(AHEAD + 1)) == (True, [])
    assert read(meeting, location(AHEAD)) == (False, [])
    held = meeting.child.records[location(0).source.key]
    assert held.generation == AHEAD + 1


@pytest.mark.parametrize("key", [short_key(bytes(20)), KEYS_KEY])
def test_a_record_under_another_key_is_refused(meeting, key):
    assert read(meeting, location(AHEAD), key=key) == (False, ["WrongKey"])


def test_a_record_in_the_snapshots_slot_is_no_snapshot(meeting):
    assert read(meeting, location(AHEAD), key=SNAPSHOT_KEY) == (False, ["WrongKind"])


@pytest.mark.parametrize(
    ("signer", "reason"), [(STRANGER, "Forged"), (ROOT, "UnknownKey")], ids=["forged", "root"]
)
def test_who_may_not_sign_it_is_not_believed(meeting, signer, reason):
    assert read(meeting, location(AHEAD), signer=signer) == (False, [reason])


def test_a_key_signs_only_what_it_was_granted():
    meeting = Meeting(grants=("node", "snapshot"))
    meeting.child = meeting.join("one", "here")
    assert read(meeting, location(AHEAD)) == (False, ["OutOfScope"])


def test_without_memory_a_snapshot_that_expired_stands_in_the_way_of_no_newer_one():
    meeting = Meeting()
    meeting.now += 25 * 3600
    child = meeting.join("one", "here")
    assert child.own_state()["snapshotGeneration"] == 0
    newer = meeting.sign([meeting.issue("location", location(9))])
    meeting.wait(child, 3)
    assert child.own_state()["snapshotGeneration"] == newer


def test_what_was_read_before_the_snapshot_that_lists_it_is_read_again(meeting):
    """As where a centre that was restored lists an older record than the one held."""
    assert read(meeting, location(meeting.generation + 9)) == (True, [])
    older = location(meeting.generation + 5)
    assert read(meeting, older) == (False, [])
    meeting.issue("location", older)
    meeting.generation += 9
    meeting.sign()
    shown = MailArrived(meeting.last + 8, SNAPSHOT_KEY, meeting.snapshot, 0)
    assert ResetMail(1) in meeting.tell(meeting.child, shown)
    assert read(meeting, older) == (True, [])
    assert ResetMail(1) not in meeting.tell(meeting.child, shown)
    assert meeting.child.own_state()["snapshotGeneration"] == meeting.generation
