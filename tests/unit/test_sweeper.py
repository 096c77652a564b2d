"""What nothing leads to any more leaves the blob store, and nothing else does."""

import random

import pytest

from relay.core.content.content import Content
from relay.core.content.sweeper import (
    SWEEP_EVERY_SECONDS,
    SWEEP_FIRST_SECONDS,
    SWEEP_RETRY_SECONDS,
    Sweeper,
)
from relay.core.effects import DropBlobs, LoadBlob, Noted
from relay.core.events import BlobArrived
from relay.core.records.tree import SnapshotTree
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.records.snapshots import Subtree


class Store:
    """A blob store with its sweeper; `roots` lead to what is in force."""

    def __init__(self):
        self.values, self.out, self.roots = {}, [], []
        self.content = Content((), self.out)
        self.knows_all = True
        self.sweeper = Sweeper(
            self.content,
            lambda: self.roots,
            lambda: self.knows_all,
            self.out,
            0.0,
        )

    def put(self, *texts):
        """A placement's content; its manifest, and the addresses of all that it leads to."""
        stored = [blobs.store("object", text) for text in texts]
        entries = [
            ManifestEntry(
                "", "x", "n", f"o{at}", blob.reference.address, blob.reference.size, "s", at
            )
            for at, blob in enumerate(stored)
        ]
        manifest = build_manifest(entries)
        values = {a: v for blob in (*stored, *manifest) for a, v in blob.values.items()}
        self.values |= values
        self.content.keep(values)
        return manifest[0].reference, set(values)

    def sweep(self, meanwhile=lambda: None):
        """Sweep once, when that is due."""
        self.sweeper.tick(self.sweeper.deadline())
        meanwhile()
        while self.out:
            effect = self.out.pop(0)
            match effect:
                case LoadBlob(reference):
                    self.sweeper.arrived(self.answer(reference))
                case DropBlobs(addresses):
                    for address in addresses:
                        del self.values[address]
                case Noted(reason):
                    assert reason == "SweepEnded"
            self.sweeper.assert_invariants()
            self.content.assert_invariants()
        assert not self.sweeper.is_sweeping

    def answer(self, reference):
        value = self.values.get(reference.address)
        parts = blobs.parts_of(reference, value) if value else ()
        found = tuple((part.address, self.values[part.address]) for part in parts)
        return BlobArrived(reference, value, local=True, parts=found)


LARGE = random.Random(1).randbytes(1_000_000)


@pytest.mark.parametrize("old", [b"old", LARGE], ids=["small", "in parts"])
def test_what_was_superseded_goes_with_the_second_sweep(old):
    store = Store()
    _, former = store.put(old, b"same")
    root, now = store.put(b"new", b"same")
    store.roots = [root]
    store.sweep()
    assert store.values.keys() == former | now
    store.sweep()
    assert store.values.keys() == now
    assert store.content.held == now


def test_what_is_in_force_stays_however_often_it_is_swept():
    store = Store()
    root, addresses = store.put(LARGE, b"small")
    store.roots = [root]
    for _ in range(4):
        store.sweep()
    assert store.values.keys() == addresses


def test_all_nodes_of_a_snapshot_in_force_stay():
    store, tree = Store(), SnapshotTree.empty().changed({at.to_bytes(24): at for at in range(500)})
    stored = {a: v for blob in tree.blobs() for a, v in blob.values.items()}
    store.values |= {**stored, "b" * 64: b"of an older one"}
    store.content.keep(store.values)
    store.roots = [Subtree(tree.root, tree.height).reference]
    for _ in range(2):
        store.sweep()
    assert store.values.keys() == stored.keys()


def test_what_comes_into_force_during_a_sweep_stays():
    store = Store()
    one, addresses = store.put(b"one")
    other, _ = store.put(b"other")
    store.roots = [other]
    store.sweep()
    store.sweep(meanwhile=lambda: store.roots.append(one))
    assert addresses <= store.values.keys()


def test_what_is_fetched_or_was_passed_on_the_way_stays():
    store = Store()
    root, addresses = store.put(b"one")
    store.content.begin("mail/x", (root,))
    store.out.clear()
    store.sweep()
    store.sweep()
    assert root.address in store.values
    assert addresses & store.content.in_use() <= store.values.keys()


def test_a_structure_that_cannot_be_read_ends_the_sweep_and_nothing_goes():
    store = Store()
    _, former = store.put(b"old")
    root, _ = store.put(b"new")
    store.roots = [root]
    store.sweep()
    store.values[root.address] = b"damaged"
    store.sweep()
    assert former <= store.values.keys()


def test_who_does_not_know_all_or_understand_all_sweeps_nothing():
    store = Store()
    store.put(b"old")
    store.knows_all = False
    store.sweeper.tick(SWEEP_FIRST_SECONDS)
    assert store.sweeper.deadline() == SWEEP_FIRST_SECONDS + SWEEP_RETRY_SECONDS
    store.knows_all, store.roots = True, [Reference("of a newer version", "a" * 64, 1)]
    store.sweeper.tick(SWEEP_FIRST_SECONDS + SWEEP_RETRY_SECONDS)
    assert not store.sweeper.is_sweeping
    store.roots = []
    store.sweep()
    assert store.sweeper.deadline() > SWEEP_EVERY_SECONDS
    assert store.values
