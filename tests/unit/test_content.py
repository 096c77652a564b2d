"""Content on demand: whatever a record leads to is fetched once, checked, and asked for again."""

import hashlib

import pytest

from relay.core.content.content import (
    RETRY_FIRST_SECONDS,
    RETRY_MAX_SECONDS,
    UNHEARD_MAX_SECONDS,
    Content,
    manifest_of,
)
from relay.core.effects import KeepBlob, LoadBlob, Noted
from relay.core.events import BlobArrived
from schemas.content import blobs
from schemas.content.manifest import ManifestEntry, build_manifest


class Bench:
    """A node's content, and the blobs that its parent has."""

    def __init__(self, count=3, *, size=10, held=frozenset()):
        self.out, self.store, self.objects = [], {}, []
        entries = []
        for at in range(count):
            blob = blobs.store("object", bytes([at % 256, at // 256]) * size)
            self.objects.append(blob.reference)
            self.store.update(blob.values)
            address, length = blob.reference.address, blob.reference.size
            entries.append(ManifestEntry("", "x", "n", f"o{at}", address, length, "s", at))
        self.entries = tuple(entries)
        manifest = build_manifest(entries)
        for blob in manifest:
            self.store.update(blob.values)
        self.root = manifest[0].reference
        self.content = Content(held, self.out)
        self.loaded, self.kept = [], {}

    def serve(self, now=0.0, *, but=()):
        """Answer what is asked until nothing more is; names the owners that are done."""
        done = []
        while self.out:
            effect = self.out.pop(0)
            if isinstance(effect, KeepBlob):
                self.kept[effect.address] = effect.value
            if isinstance(effect, LoadBlob) and effect.reference.address not in but:
                self.loaded.append(effect.reference.address)
                done += self.content.arrived(self.answer(effect.reference), now)
        return done

    def answer(self, reference, *, local=False):
        value = self.store.get(reference.address)
        parts = blobs.parts_of(reference, value) if value else ()
        found = tuple((p.address, self.store[p.address]) for p in parts)
        return BlobArrived(reference, value, local, found)


def test_a_walk_brings_all_that_a_record_leads_to_each_once():
    bench = Bench(200)
    assert not bench.content.begin("a", (bench.root,))
    assert bench.serve() == ["a"]
    assert bench.content.begin("a", (bench.root,))
    assert len(bench.loaded) == len(set(bench.loaded))
    assert bench.kept == bench.store


def test_what_is_here_is_not_asked_for_again():
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    bench.serve()
    assert bench.content.begin("b", (bench.root, *bench.objects))
    assert bench.out == []


def test_a_blob_that_several_wait_for_is_fetched_once_and_tells_them_all():
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    bench.content.begin("b", (bench.root,))
    bench.content.begin("c", (bench.objects[0],))
    assert sorted(bench.serve()) == ["a", "b", "c"]
    assert len(bench.loaded) == len(set(bench.loaded)) == len(bench.store)


def test_who_no_longer_waits_is_not_told():
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    bench.content.begin("b", (bench.root,))
    bench.content.end("a")
    assert bench.serve() == ["b"]
    assert not bench.content.knows("a")


def test_a_reading_walk_gives_the_manifests_entries():
    bench = Bench(100)
    bench.content.begin("a", (bench.root,), read=True)
    bench.serve()
    assert set(manifest_of(bench.content.plains("a"), bench.root).entries) == set(bench.entries)
    assert not bench.content.begin("b", (bench.root,), read=True)  # read once more, from here
    assert bench.serve() == ["b"]


def test_without_expanding_only_the_references_are_fetched():
    bench = Bench()
    bench.content.begin("a", (bench.root,), expand=False)
    assert bench.serve() == ["a"]
    assert bench.loaded == [bench.root.address]
    assert not bench.content.begin("b", (bench.root,))  # that it is here says nothing of the rest
    assert bench.serve() == ["b"]
    assert bench.kept == bench.store


def test_content_of_an_unknown_type_is_copied_as_bytes():
    bench = Bench(0)
    new = blobs.store("hologram", b"anything")
    bench.store = dict(new.values)
    bench.content.begin("a", (new.reference,))
    assert bench.serve() == ["a"]
    assert bench.kept == bench.store


def test_a_large_blob_comes_in_parts_and_only_listed_parts_are_kept():
    plain = b"".join(hashlib.sha256(at.to_bytes(4, "big")).digest() for at in range(40_000))
    large = blobs.store("object", plain)
    bench = Bench(0)
    bench.content.begin("a", (large.reference,))
    parts = {a: v for a, v in large.values.items() if a != large.reference.address}
    stranger = ("f" * 64, b"\0stranger")
    value = large.values[large.reference.address]
    event = BlobArrived(large.reference, value, local=False, parts=(*parts.items(), stranger))
    assert bench.content.arrived(event, 0.0) == ["a"]
    bench.serve()
    assert bench.kept == dict(large.values)
    assert list(bench.kept)[-1] == large.reference.address


@pytest.mark.parametrize("value", [None, b"", b"\0other", b"\1not zstd", b"\2\xc1", b"\7"])
def test_a_missing_or_damaged_blob_is_refused_and_asked_for_again(value):
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    bad = bench.objects[1]
    bench.serve(but={bad.address})
    assert bench.content.refused_since("a") is None
    assert bench.content.arrived(BlobArrived(bad, value, local=False), 10.0) == []
    assert bench.content.knows("a")
    assert bench.content.refused_since("a") == 10.0
    assert [type(effect) for effect in bench.out] == [Noted]
    assert bench.content.deadline() == 10.0 + RETRY_FIRST_SECONDS
    bench.out.clear()
    bench.content.retry(10.1)
    assert bench.out == []
    bench.content.retry(11.0)
    assert bench.out == [LoadBlob(bad, fresh=value is not None)]
    assert bench.content.deadline() is None
    assert bench.serve(11.0) == ["a"]
    assert bench.content.refused_since("a") is None
    assert bench.kept == bench.store


def test_retries_grow_rarer_up_to_a_bound_and_a_new_link_asks_at_once():
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    now, waits = 0.0, []
    for _ in range(10):
        bench.content.arrived(BlobArrived(bench.root, None, local=False), now)
        waits.append(bench.content.deadline() - now)
        now = bench.content.deadline()
        bench.content.retry(now)
    assert waits == sorted(waits)
    assert waits[-1] == RETRY_MAX_SECONDS
    bench.content.arrived(BlobArrived(bench.root, None, local=False), now)
    bench.out.clear()
    bench.content.retry_all()
    assert bench.out == [LoadBlob(bench.root)]


def unheard(reference):
    return BlobArrived(reference, None, local=False, unheard=True)


def test_what_nobody_answers_for_is_asked_for_again_and_nothing_is_said_of_it():
    bench = Bench(60)
    bench.content.link(up=True)
    bench.content.begin("a", (bench.root,))
    away = {reference.address for reference in bench.objects}
    bench.serve(but=away)
    for reference in bench.objects:
        bench.content.arrived(unheard(reference), 10.0)
    bench.content.link(up=False)
    assert bench.out == []
    assert bench.content.take_troubled() == []
    assert bench.content.refused_since("a") is None
    assert bench.content.deadline() == 10.0 + RETRY_FIRST_SECONDS
    now = 10.0
    while now < 10.0 + 5 * UNHEARD_MAX_SECONDS:
        now = bench.content.deadline()
        bench.content.retry(now)
        asked, bench.out[:] = list(bench.out), []
        assert {type(effect) for effect in asked} == {LoadBlob}
        for effect in asked:
            bench.content.arrived(unheard(effect.reference), now)
    assert bench.content.refused_since("a") is None
    bench.content.link(up=True)
    bench.content.retry_all()
    assert bench.serve(now) == ["a"]
    assert bench.kept == bench.store


def test_a_parent_that_is_there_and_never_answers_counts_as_one_that_lacks_it_in_the_end():
    """What takes waits for this content, and a parent could hold it back for ever by silence."""
    bench = Bench()
    bench.content.link(up=True)
    bench.content.begin("a", (bench.root,))
    bench.out.clear()
    now, waited = 0.0, []
    while bench.content.refused_since("a") is None:
        bench.content.arrived(unheard(bench.root), now)
        waited.append(now)
        now = bench.content.deadline()
        bench.content.retry(now)
    assert UNHEARD_MAX_SECONDS <= waited[-1] <= UNHEARD_MAX_SECONDS + RETRY_MAX_SECONDS
    assert [effect.reason for effect in bench.out if isinstance(effect, Noted)] == ["MissingBlob"]
    bench.out[:] = [effect for effect in bench.out if isinstance(effect, LoadBlob)][-1:]
    assert bench.serve(now) == ["a"]


def test_however_much_content_a_parent_lacks_and_for_how_long_it_is_said_once():
    bench = Bench(200)
    bench.content.link(up=True)
    bench.content.begin("a", (bench.root,))
    bench.serve(but={reference.address for reference in bench.objects})
    now, said = 0.0, []
    for reference in bench.objects:
        bench.content.arrived(BlobArrived(reference, None, local=False), now)
    for _ in range(10):
        now = bench.content.deadline()
        bench.content.retry(now)
        asked = [effect for effect in bench.out if isinstance(effect, LoadBlob)]
        said += [effect for effect in bench.out if isinstance(effect, Noted)]
        bench.out.clear()
        for effect in asked:
            bench.content.arrived(BlobArrived(effect.reference, None, local=False), now)
    assert [noted.reason for noted in said] == ["MissingBlob"]
    assert bench.content.refused_since("a") == 0.0


def test_a_blob_lost_from_the_store_is_found_out_and_fetched():
    bench = Bench()
    bench.content.begin("a", (bench.root,))
    bench.serve()
    bench.content.begin("r", (bench.root,), read=True)
    bench.out.clear()
    bench.content.arrived(BlobArrived(bench.root, None, local=True), 0.0)
    assert bench.root.address not in bench.content.held
    assert not bench.content.begin("b", (bench.root,))


def test_an_answer_that_nobody_waits_for_is_passed_over():
    bench = Bench()
    assert bench.content.arrived(bench.answer(bench.root), 0.0) == []
    assert bench.out == []
