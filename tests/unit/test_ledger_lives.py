"""A ledger over its starts: whatever the store lost or brought back, nothing is dropped unasked."""

import random

import pytest

from controllers.core.ledger.ledger import Draft, Ledger, entry_key_of
from controllers.core.ledger.ledger_issuer import LedgerIssuer
from controllers.core.ledger.snapshots import SETTLING_SECONDS
from controllers.core.ledger.start import read_stored_ledger
from relay.core.instant import Instant
from relay.core.records.snapshot import SnapshotInterest, SnapshotView
from relay.core.records.snapshot_reading import SnapshotReading
from relay.core.records.verdict import HeldRecord, RecordAcceptance, RecordStanding, admit, standing
from schemas.content.blobs import open_value
from schemas.objects.selectors import LabelSelector
from schemas.records.moves import MOVED_ANNOTATION
from schemas.records.records import (
    API_LOCATION,
    API_NODE,
    API_SYNC_TARGET,
    DeltaHead,
    LocationRecord,
    NodeRecord,
    Profile,
    Source,
)
from schemas.records.signed_records import EncodedBody, read_stored
from schemas.records.signing import Signer
from schemas.records.snapshots import Term, mail_key_of, read_snapshot
from schemas.records.snapshots import encode as encode_snapshot
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import SNAPSHOT_KEY, KeyId, NodePath, TreeId, random_id
from schemas.values.wire import replace

TREE = TreeId(random_id(b"a tree of tests "))
SIGNER = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)


class Centre:
    """A store, and the issuer of the present term; what it drops nobody may have wanted."""

    def __init__(self):
        self.own, self.blobs = {}, {}
        # How many keys had been issued since the last snapshot as each of these was.
        self.counted = {}
        self.since_snapshot = set()
        self.now, self.terms = 0.0, 0
        # All that was ever issued, by key and generation; and what was deleted in due form.
        self.issued, self.deleted = {}, set()
        self.start()

    @property
    def instant(self):
        return Instant(self.now, int(self.now * 1000))

    def start(self):
        self.terms += 1
        self.since_snapshot.clear()
        reading = read_stored_ledger(read_stored(self.own)._replace(issued=self.counted))
        try:
            wanted = next(reading)
            while True:
                wanted = reading.send(
                    {it.address: self.load(it) for it in wanted if it.address in self.blobs}
                )
        except StopIteration as end:
            self.issuer: LedgerIssuer = end.value.begin(f"{self.terms:016x}", SIGNER, self.instant)
        self.issuer.assert_invariants()
        return self.issuer

    def load(self, reference):
        return open_value(reference, self.blobs[reference.address])

    def issue(self, *records, delete=()):
        drafts = [Draft(kind_of(record), record) for record in records]
        publication = self.issuer.issue(drafts, self.instant)
        self.blobs |= publication.blobs
        for signed in publication.signed:
            record = signed.record
            self.own[signed.slot] = signed.envelope
            self.since_snapshot.add(signed.slot)
            self.counted[signed.slot] = len(self.since_snapshot)
            self.issued[record.source.key, record.generation] = record
            # A record of before is superseded: it may go.
            self.deleted |= {
                (key, generation)
                for key, generation in self.issued
                if key == record.source.key and generation < record.generation
            }
        gone = self.issuer.published(publication, self.instant, delete)
        self.deleted |= {(record.source.key, record.generation) for record in gone}
        self.issuer.assert_invariants()
        return publication.records

    def delete(self, *keys):
        gone = self.issuer.delete(keys, self.instant)
        self.deleted |= {(record.source.key, record.generation) for record in gone}

    def sign(self):
        self.now = max(self.now, self.issuer.snapshots.due)
        publication = self.issuer.sign_snapshot(self.instant)
        self.blobs |= publication.blobs
        self.own[SNAPSHOT_KEY] = publication.envelope
        for key in publication.dropped:
            self.own.pop(key, None)
        self.since_snapshot.clear()
        self.issuer.snapshot_published(publication)
        self.issuer.assert_invariants()
        return publication

    def lose(self, *records):
        for record in records:
            del self.own[record.source.key]

    def view(self):
        """What a node that fetched all reads in the last snapshot."""
        snapshot, nodes = read_snapshot(self.own[SNAPSHOT_KEY].payload), {}
        reading = SnapshotReading(snapshot, SnapshotInterest.everything(), nodes)
        while missing := reading.missing():
            for reference in missing:
                reading.take(reference.address, self.load(reference))
        return SnapshotView(snapshot, nodes)

    def standing(self, record):
        """What a node that holds the record makes of it under the last snapshot."""
        term = Term(bytes.fromhex(record.term))
        held, view = HeldRecord(entry_key_of(record), record.generation, term), self.view()
        return standing(held, view.generation_of(held.key), view)

    def listed(self):
        return {mail_key_of(entry.key): entry.generation for entry in self.view().entries()}


def kind_of(record):
    return {LocationRecord: "location", Profile: "profile", NodeRecord: "node"}[type(record)]


def location(name, **labels):
    source = Source(API_LOCATION, "space", "", name)
    return LocationRecord(source, 0, "", "", labels, {}, LabelSelector())


def profile(name, path, former=""):
    source = Source(API_SYNC_TARGET, "space", "", name)
    said = {MOVED_ANNOTATION: former} if former else {}
    return Profile(source, 0, "", "", f"space-mb-{name}", NodePath.parse(path), {}, said, {})


def node(path):
    return NodeRecord(Source(API_NODE, TREE, "", path), 0, "", "", NodePath.parse(path), "N")


@pytest.fixture
def centre():
    return Centre()


def test_a_new_record_is_in_force_before_and_after_a_snapshot_lists_it(centre):
    centre.sign()
    (record,) = centre.issue(location("l"))
    assert centre.standing(record) is RecordStanding.IN_FORCE
    assert centre.listed() == {}
    centre.sign()
    assert centre.listed() == {record.source.key: record.generation}


@pytest.mark.parametrize(("name", "soon"), [("changed", True), ("added", False)])
def test_a_start_settles_soon_what_the_last_run_took_and_not_what_it_added(centre, name, soon):
    centre.issue(location("changed"))
    centre.now += SETTLING_SECONDS
    centre.sign()
    (record,) = centre.issue(location(name, to="this"))
    centre.start()
    centre.sign()
    assert (centre.issuer.snapshots.due == centre.now + SETTLING_SECONDS) is soon
    centre.sign()
    assert read_snapshot(centre.own[SNAPSHOT_KEY].payload).settled >= record.generation


def test_what_is_deleted_is_listed_for_two_seconds_and_then_dropped_and_erased(centre):
    (record,) = centre.issue(location("l"))
    centre.sign()
    centre.now += 5
    centre.delete(record.source.key)
    assert record.source.key not in centre.issuer.ledger.records
    assert centre.issuer.ledger.contains(record.source.key)
    deleted_at = centre.now
    publication = centre.sign()
    assert centre.now == deleted_at + 2
    assert publication.dropped == (record.source.key,)
    assert record.source.key not in centre.own
    assert not centre.issuer.ledger.contains(record.source.key)
    assert centre.standing(record) is RecordStanding.DROPPED


def test_nothing_is_dropped_or_settled_while_an_apply_is_under_way(centre):
    (record,) = centre.issue(location("l"))
    centre.sign()
    centre.now += 5
    centre.issuer.snapshots.pause("apply", now=centre.instant.seconds)
    centre.delete(record.source.key)
    (gained,) = centre.issue(location("m"))
    centre.now += 30
    assert centre.issuer.snapshots.due > centre.now
    (late,) = centre.issue(location("n"))
    centre.issuer.snapshots.resume("apply")
    publication = centre.sign()
    assert publication.dropped == (record.source.key,)
    settled = read_snapshot(publication.envelope.payload).settled
    assert gained.generation <= settled < late.generation


def test_a_move_drops_profile_and_node_at_the_old_place_in_one_snapshot(centre):
    (old_node,) = centre.issue(node("/a"))
    (old,) = centre.issue(profile("s", "/a"))
    centre.issue(node("/b"))
    centre.sign()
    centre.now += 5
    (new,) = centre.issue(profile("s", "/b"), delete=[old_node.source.key])
    # Both stay at the old place until the new one had its time.
    assert centre.standing(old) is centre.standing(old_node) is RecordStanding.IN_FORCE
    publication = centre.sign()
    assert publication.dropped == (old_node.source.key,)
    assert centre.standing(old) is centre.standing(old_node) is RecordStanding.DROPPED
    assert centre.standing(new) is RecordStanding.IN_FORCE


def test_a_start_after_a_move_drops_profile_and_node_at_the_old_place_in_one_snapshot(centre):
    (old_node,) = centre.issue(node("/a"))
    (old,) = centre.issue(profile("s", "/a"))
    centre.issue(node("/b"))
    centre.sign()
    centre.issue(profile("s", "/b", former="/a"), delete=[old_node.source.key])
    centre.start()
    centre.sign()
    assert centre.standing(old) is centre.standing(old_node) is RecordStanding.IN_FORCE
    centre.sign()
    assert centre.standing(old) is centre.standing(old_node) is RecordStanding.DROPPED


def test_who_moved_and_is_deleted_at_once_is_kept_while_a_snapshot_lists_it(centre):
    centre.issue(profile("s", "/a"))
    centre.sign()
    (moved,) = centre.issue(profile("s", "/b"))
    centre.now += SETTLING_SECONDS / 2
    centre.delete(moved.source.key)
    centre.now += SETTLING_SECONDS / 2
    assert centre.sign().dropped == ()
    assert centre.standing(moved) is RecordStanding.IN_FORCE
    centre.start()
    assert not centre.issuer.lost
    assert moved.source.key in centre.issuer.ledger.records


def test_who_moved_twice_around_starts_is_listed_at_the_last_place_only(centre):
    for path in ("/a", "/b", "/c"):
        (profiled,) = centre.issue(profile("s", path))
        if path != "/c":
            centre.sign()
        centre.start()
    centre.sign()
    centre.sign()
    assert [entry.key for entry in centre.view().entries()] == [entry_key_of(profiled)]


def test_what_the_store_brings_back_is_not_in_force_and_is_erased_again(centre):
    (record,) = centre.issue(location("l"))
    kept = dict(centre.own)
    centre.sign()
    centre.delete(record.source.key)
    centre.sign()
    centre.own |= kept | {SNAPSHOT_KEY: centre.own[SNAPSHOT_KEY]}
    centre.start()
    assert record.source.key not in centre.issuer.ledger.records
    assert centre.sign().dropped == (record.source.key,)
    assert record.source.key not in centre.own


def test_what_the_store_lost_stays_listed_until_it_is_issued_anew_or_someone_lets_it_go(centre):
    lost, anew, kept = centre.issue(location("lost"), location("anew"), location("kept"))
    centre.sign()
    centre.lose(lost, anew)
    centre.start()
    assert centre.issuer.lost.keys() == {lost.source.key, anew.source.key}
    (anew,) = centre.issue(location("anew", x="1"))
    centre.sign()
    assert centre.listed() == {it.source.key: it.generation for it in (lost, anew, kept)}
    assert centre.issuer.forget_lost(centre.instant) == 1
    centre.sign()
    assert centre.standing(lost) is RecordStanding.DROPPED
    assert centre.standing(kept) is RecordStanding.IN_FORCE


def test_a_lost_ledger_drops_nothing_and_a_withdrawn_term_all_of_its_own(centre):
    (record,) = centre.issue(location("l"))
    centre.sign()
    centre.own.clear()
    centre.start()
    centre.sign()
    assert centre.standing(record) is RecordStanding.ORPHANED
    centre.issuer.withdraw(record.term, centre.instant)
    centre.sign()
    assert centre.standing(record) is RecordStanding.DROPPED
    # For good, over any start.
    centre.start()
    centre.sign()
    assert centre.standing(record) is RecordStanding.DROPPED


def test_above_a_snapshot_that_someone_has_goes_what_was_issued_since_the_start_alone(centre):
    before = centre.issue(location("before"))
    centre.sign()
    centre.start()
    since = centre.issue(location("l"), profile("s", "/a"))
    assert not centre.issuer.raise_above(since[-1].generation, centre.instant)
    shown = since[-1].generation + 10**6
    assert centre.issuer.raise_above(shown, centre.instant)
    drafts = centre.issuer.issued_in_this_term()
    again = centre.issue(*(draft.record for draft in drafts))
    assert all(record.generation > shown for record in again)
    assert [record.labels for record in again] == [record.labels for record in since]
    # What it forgot may be more than what it issues now.
    (later,) = centre.issue(*before)
    centre.sign()
    assert centre.standing(later) is RecordStanding.IN_FORCE


def test_a_start_keeps_the_reign_of_the_last_snapshot(centre):
    centre.issue(location("l"))
    centre.sign()
    first = read_snapshot(centre.own[SNAPSHOT_KEY].payload)
    assert first.reign == 0
    promoted = encode_snapshot(replace(first, reign=3))
    centre.own[SNAPSHOT_KEY] = SIGNER.seal("snapshot", promoted)
    centre.start()
    centre.sign()
    assert read_snapshot(centre.own[SNAPSHOT_KEY].payload).reign == 3


@pytest.mark.parametrize("withdrawn", [False, True])
def test_what_a_restored_centre_lists_with_a_lower_generation_waits_for_a_person(centre, withdrawn):
    (old,) = centre.issue(location("l", at="1"))
    centre.sign()
    backup = dict(centre.own)
    (newer,) = centre.issue(location("l", at="2"))
    centre.sign()
    assert centre.standing(old) is RecordStanding.OUTDATED
    centre.own = backup
    centre.start()
    centre.sign()
    assert centre.listed()[old.source.key] == old.generation
    assert centre.standing(old) is RecordStanding.IN_FORCE
    assert centre.standing(newer) is RecordStanding.ORPHANED
    if withdrawn:
        centre.issuer.withdraw(newer.term, centre.instant)
    else:
        centre.issue(location("l", at="3"))
    centre.sign()
    # What is listed takes its place: an older one, or the newest.
    held = HeldRecord(entry_key_of(newer), newer.generation, Term(bytes.fromhex(newer.term)))
    listed = centre.listed()[newer.source.key]
    assert admit(held.key, listed, centre.view(), held) is RecordAcceptance.TAKEN
    assert centre.standing(newer) is RecordStanding.OUTDATED


def test_a_snapshot_whose_content_is_lost_says_nothing_of_what_the_store_lacks(centre):
    lost, kept = centre.issue(location("lost"), location("kept"))
    centre.sign()
    centre.lose(lost)
    centre.blobs.clear()
    centre.start()
    assert not centre.issuer.lost
    assert centre.issuer.ledger.records.keys() == {kept.source.key}
    (anew,) = centre.issue(*(draft.record for draft in centre.issuer.unvouched_drafts()))
    centre.sign()
    assert centre.standing(lost) is RecordStanding.ORPHANED
    assert centre.standing(kept) is RecordStanding.OUTDATED
    assert centre.standing(anew) is RecordStanding.IN_FORCE
    # It is of this term now, and can be deleted.
    centre.delete(kept.source.key)
    centre.sign()
    assert centre.standing(anew) is RecordStanding.DROPPED


@pytest.mark.parametrize("again", [False, True])
def test_what_is_lost_above_the_last_snapshot_is_orphaned_and_not_dropped(centre, again):
    listed, *_ = centre.issue(location("listed"), location("other"))
    centre.sign()
    lost, kept = centre.issue(location("lost"), location("kept"))
    if again:
        (lost,) = centre.issue(location("lost", at="2"))
        (kept,) = centre.issue(location("kept", at="2"))
    centre.lose(lost)
    centre.start()
    (anew,) = centre.issue(*(draft.record for draft in centre.issuer.unvouched_drafts()))
    assert anew.source == kept.source
    centre.sign()
    assert centre.standing(lost) is RecordStanding.ORPHANED
    assert centre.standing(listed) is RecordStanding.IN_FORCE
    # What was above it can be deleted all the same, and a start that lacks nothing issues nothing.
    centre.delete(kept.source.key)
    centre.sign()
    assert centre.standing(anew) is RecordStanding.DROPPED
    assert not centre.start().unvouched


def test_a_start_issues_nothing_anew_while_all_above_the_last_snapshot_is_there(centre):
    centre.issue(location("a"))
    centre.sign()
    centre.issue(location("b"), location("c"))
    centre.issue(location("a", at="2"), location("b", at="2"))
    assert not centre.start().unvouched
    centre.issue(location("d"))
    assert not centre.start().unvouched
    centre.sign()
    centre.delete(centre.issue(location("e"))[0].source.key)
    assert not centre.start().unvouched


@pytest.mark.parametrize("seed", range(40))
def test_over_any_life_only_what_was_deleted_is_dropped(seed):
    chance, centre = random.Random(seed), Centre()
    centre.sign()
    saved = [(dict(centre.own), dict(centre.blobs))]
    for _ in range(60):
        centre.now += chance.choice([0.1, 1, 3])
        keys = sorted(centre.issuer.ledger.records)
        match chance.randrange(9):
            case 0 | 1 | 2:
                centre.issue(location(chance.choice("abcdef"), x=str(chance.random())))
            case 3:
                centre.issue(profile("s", chance.choice(["/a", "/b"])))
            case 4 if keys:
                centre.delete(chance.choice(keys))
            case 5:
                centre.sign()
                saved.append((dict(centre.own), dict(centre.blobs)))
            case 6:
                before = set(centre.own)
                dropped = centre.sign().dropped
                centre.start()
                assert centre.issuer.ledger.records.keys().isdisjoint(dropped)
                assert centre.issuer.ledger.records.keys() == before - {*dropped, SNAPSHOT_KEY}
            case 7:
                # Its disk is rolled back, unnoticed; or it is lost.
                own, blobs = chance.choice([*saved, ({}, {})])
                centre.own, centre.blobs = dict(own), dict(blobs)
                centre.start()
                centre.sign()
            case _:
                centre.sign()
        for (key, generation), record in centre.issued.items():
            if (key, generation) not in centre.deleted and SNAPSHOT_KEY in centre.own:
                assert centre.standing(record) is not RecordStanding.DROPPED, record


def test_only_the_first_version_after_a_deletion_takes_away_what_was_before():
    ledger, source = Ledger(TREE, "0" * 16), Source(API_PLACEMENT, "space", "", "p")
    head = DeltaHead(source, 0, "", "", bytes(32), (), 0)
    losses = []
    for deleted in (False, True, False):
        if deleted:
            ledger.delete([source.key])
        (record,) = ledger.stamp([Draft("delta", head, EncodedBody(b"", None))], 1000)
        ledger.remember("delta", record, EncodedBody(b"", None))
        losses.append(record.last_loss == record.generation)
    assert losses == [False, True, False]
