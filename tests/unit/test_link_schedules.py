"""Schedules that broke the link once: the centre and one child, face to face."""

from relay.core.effects import DropBlobs
from relay.core.events import SnapshotIssued, Tick
from schemas.records import API_LOCATION, LocationRecord, Source
from schemas.signing import Envelope
from schemas.snapshots import encode as encode_snapshot
from tests.unit.meeting import SIGNER, TERM, Meeting


def location(name, generation, selector=None, **labels):
    source = Source(API_LOCATION, "space", "", name)
    return LocationRecord(source, generation, TERM.hex(), "", (), labels, {}, selector)


def test_the_centre_keeps_all_nodes_of_its_snapshot_for_those_who_read_it_later():
    meeting = Meeting()
    for at in range(400):
        meeting.issue("location", location(f"l{at}", 10 + at))
    meeting.now += 3
    issued = meeting.issuer.sign(500, now=meeting.now, now_ms=meeting.instant.wall_ms)
    values = {a: value for blob in issued.blobs for a, value in blob.values.items()}
    meeting.stored |= values
    sealed: Envelope = SIGNER.seal("snapshot", encode_snapshot(issued.record))
    meeting.tell(meeting.centre, SnapshotIssued(sealed.encode(), (), frozenset(values)))
    for _ in range(3):
        meeting.now += 3601
        effects = meeting.tell(meeting.centre, Tick())
        assert not [effect for effect in effects if isinstance(effect, DropBlobs)]
