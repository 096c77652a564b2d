"""What happens to one placement or object at an edge costs as much beside a few or many others."""

from relay.core.destination import claims
from relay.core.records.accepted import Held
from relay.core.content.content import Content
from relay.core.destination.destination import Edge
from relay.core.effects import LoadBlob
from relay.core.events import BlobArrived, ObjectObserved
from relay.core.where import Where
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry, build_manifest
from schemas.identity import DestinationId, NodePath, short_key
from schemas.records import (
    API_PLACEMENT,
    API_SYNC_TARGET,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    Profile,
    Source,
)
from schemas.selectors import LabelSelector

PATH = NodePath.parse("/r/e")
MANY = 300
EVERYWHERE = (Alternative(OVER_SYNC_TARGET, LabelSelector(()), ""),)


def mail_key(number):
    return short_key(number.to_bytes(20, "big"))


def listed(number, revision=1, objects=1):
    """The entries of a placement; no two placements list the same object."""
    return [
        ManifestEntry(
            "", "configmaps", "shop", f"c{number}-{at}", f"{number * 1000 + at:063x}{revision:x}",
            10, "s", "u", revision, order=12,
        )
        for at in range(objects)
    ]  # fmt: skip


class Bench:
    """One edge, told of deltas whose content is at hand."""

    def __init__(self):
        self.out, self.where = [], Where(PATH)
        self.content = Content(frozenset(), self.out)
        self.edge = Edge(PATH, self.where, self.content, [])
        source = Source(API_SYNC_TARGET, "i", "", "e")
        profile = Profile(source, 1, False, "", (), DestinationId("d"), PATH, {"a": "b"}, {}, {})
        self.where.set_profile(mail_key(0), profile)
        self.edge.own_profile()

    def put(self, number, revision=1, objects=1):
        """A delta; names the placements of which something else may be to be said."""
        entries = listed(number, revision, objects)
        stored = build_manifest(entries)
        values = {blob.reference.address: blob.values for blob in stored}
        self.content.held.update(entry.address for entry in entries)
        self._put(number, revision, stored[0].reference)
        while self.out:
            wanted = self.out.pop()
            assert isinstance(wanted, LoadBlob)
            address = wanted.reference.address
            event = BlobArrived(wanted.reference, values[address][address], local=True)
            for owner in self.content.arrived(event, 0.0):
                self.edge.content_ready(owner[5:])
        return self.edge.resolve()

    def _put(self, number, revision, root: Reference):
        key, source = mail_key(number + 1), Source(API_PLACEMENT, "s", "", f"p{number}")
        head = DeltaHead(source, revision, False, "", (root,), b"h" * 32, EVERYWHERE, 0)
        self.where.set_delta(key, EVERYWHERE)
        self.edge.evaluate(Held(key, "delta", head, b"", b"", 0, DeltaBody((Gate(root),))))

    def see(self, entry, health="healthy"):
        return self.edge.observe(ObjectObserved(entry.key, True, entry.address, "", health, None))


def counted(monkeypatch, owner, name):
    """Count the calls of a function."""
    honest, calls = getattr(owner, name), []

    def counting(*args):
        calls.append(args)
        return honest(*args)

    monkeypatch.setattr(owner, name, counting)
    return calls


def test_a_change_of_one_placement_chooses_of_its_objects_only_and_touches_no_other(monkeypatch):
    bench = Bench()
    for number in range(MANY):
        assert bench.put(number).keys() == {mail_key(number + 1)}
    chosen = counted(monkeypatch, claims, "choose")
    assert bench.put(7, revision=2).keys() == {mail_key(8)}
    assert [key.name for key, _ in chosen] == ["c7-0"]


def test_what_is_seen_of_one_object_judges_no_other(monkeypatch):
    bench = Bench()
    bench.put(0, objects=MANY)
    bench.edge.summary(mail_key(1), 5)
    judged = counted(monkeypatch, Edge, "_judged")
    entries = listed(0, objects=MANY)
    for entry in entries:
        assert bench.see(entry).keys() == {mail_key(1)}
        bench.edge.summary(mail_key(1), 5)
    assert len(judged) == MANY
    assert bench.edge.summary(mail_key(1), 5).states == {"synced": 1}


def test_a_delta_looked_at_again_without_news_leaves_nothing_to_choose():
    bench = Bench()
    bench.put(0)
    former = dict(bench.edge.wanted)
    root = build_manifest(listed(0))[0].reference
    bench._put(0, 1, root)
    assert not bench.edge.changed
    assert bench.edge.wanted == former


def test_an_object_that_is_degraded_or_well_again_is_said_so():
    bench = Bench()
    bench.put(0, objects=2)
    one, other = listed(0, objects=2)
    for entry, health in ((one, "degraded"), (other, "healthy")):
        bench.see(entry, health)
    summary = bench.edge.summary(mail_key(1), 5)
    assert (summary.health, [sample.object for sample in summary.exceptions]) == (
        {"degraded": 1},
        [str(one.key)],
    )
    bench.see(one)
    summary = bench.edge.summary(mail_key(1), 5)
    assert (summary.health, summary.exceptions) == ({"healthy": 1}, ())
