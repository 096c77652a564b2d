"""Of two snapshots the one of the later reign is newer, whatever their generations."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.effects import SnapshotShown
from relay.core.events import HelloArrived, Tick
from relay.core.link.digest import MailDigest
from relay.core.records.accepted import Version
from schemas.records.records import DIGEST_MODULUS, LocationRecord, Source
from schemas.records.signing import decode_envelope
from schemas.records.snapshots import encode as encode_snapshot
from schemas.records.snapshots import read_snapshot
from schemas.values.identity import SNAPSHOT_KEY
from schemas.values.wire import encode, replace
from tests.issuing import snapshot_issued
from tests.unit.meeting import SIGNER, TERM, Meeting, hellos

KEYS = st.sampled_from("abcdef")
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, st.integers(1, 50)),
    st.tuples(st.just("drop"), KEYS),
    st.tuples(st.just("advance"), st.integers(0, 50), st.frozensets(KEYS)),
)


@given(st.lists(STEPS, max_size=40))
def test_a_digest_is_right_under_a_snapshot_of_a_lower_generation_too(steps):
    digest, held = MailDigest(), {}
    for what, *arguments in steps:
        if what == "advance":
            snapshot, keys = arguments
            excluded = [(key, held[key]) for key in sorted(keys & held.keys())]
            digest.advance(snapshot, excluded, list(held.items()))
        else:
            key = arguments[0]
            former = held.pop(key, None)
            if former is not None:
                digest.remove(key, former)
            if what == "put":
                generation = arguments[1]
                held[key] = Version(generation, hash((key, generation)) % DIGEST_MODULUS, full=True)
                digest.add(key, held[key])
        digest.assert_invariants(held.items())


def promote(meeting: Meeting, generation: int) -> bytes:
    """Another centre signs what is in force, as of a generation that the first one is above."""
    former = read_snapshot(decode_envelope(meeting.snapshot).payload)
    record = replace(former, generation=generation, settled=0, reign=former.reign + 1)
    meeting.snapshot = SIGNER.seal("snapshot", encode_snapshot(record)).encode()
    meeting.centre_hears(snapshot_issued(meeting.snapshot))
    return meeting.snapshot


def with_location() -> Meeting:
    meeting = Meeting()
    source = Source("edge.kubestellar.io/Location", "inv", "", "l")
    location = LocationRecord(source, meeting.generation + 5, TERM.hex(), "", {}, {}, None)
    meeting.issue("location", location)
    meeting.sign()
    return meeting


def test_a_child_follows_a_later_reign_to_a_lower_generation_and_says_so():
    meeting = with_location()
    child = meeting.join("one", "here")
    before = child.own_state()["snapshotGeneration"]
    signed = promote(meeting, before - 2)
    meeting.wait(child, 30)
    for _ in range(3):
        meeting.wait(child, 30)
    assert meeting.mailbox[SNAPSHOT_KEY][1].data == signed
    assert child.own_state()["snapshotGeneration"] == before - 2
    meeting.now += 30
    (hello,) = hellos(meeting.tell(child, Tick()))
    assert (hello.newest, hello.newest_reign, hello.shown) == (before - 2, 1, b"")


def test_a_run_that_comes_back_goes_on_under_the_later_reign():
    meeting = with_location()
    first = meeting.join("one", "here")
    generation = first.own_state()["snapshotGeneration"]
    promote(meeting, generation - 2)
    second = meeting.join("two", "here")
    for _ in range(3):
        meeting.wait(second, 30)
    assert second.own_state()["snapshotGeneration"] == generation - 2


def test_a_former_reign_is_no_news_to_the_centre_whatever_its_generation():
    meeting = with_location()
    child = meeting.join("one", "here")
    old = meeting.snapshot
    meeting.now += 30
    (hello,) = hellos(meeting.tell(child, Tick()))
    said = HelloArrived("emea", encode(replace(hello, shown=old)))
    promote(meeting, read_snapshot(decode_envelope(old).payload).generation - 2)
    effects = meeting.centre_hears(said)
    assert not any(isinstance(effect, SnapshotShown) for effect in effects)


def test_a_child_hears_where_its_parent_listens():
    meeting = Meeting()
    listens = ("tls://centre.example:7422", "wss://centre.example:443")
    meeting.centre._children.addresses = listens
    child = meeting.join("one", "here")
    assert child._upstream.link.addresses == listens
