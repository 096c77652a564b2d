"""The tree over all records in force: a map, whose form is told by its contents alone."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relay.core.records.snapshot import (
    NOT_LISTED,
    ListedAt,
    SnapshotInterest,
    SnapshotView,
    UnreadBlobs,
)
from relay.core.records.snapshot_reading import SnapshotReading
from relay.core.records.tree import SnapshotTree
from schemas.content.blobs import open_value
from schemas.records.snapshots import (
    HEIGHT_MAX,
    INNER_MAX,
    LEAF_MAX,
    SNAPSHOT_TERMS,
    BlobPointer,
    EntryKey,
    SnapshotRecord,
    SnapshotRefused,
    TermList,
    encode,
    mail_entry_key,
    path_entry_key,
    path_entry_prefix,
    read_inner,
    read_leaf,
)
from schemas.values.identity import NodePath, short_key
from tests.snapshots import TERM, nodes_of, view_of

# Few distinct ends: long runs without a place to split, and runs of nothing but such places.
ENDS = (bytes(8), bytes([255] * 8), b"\0\0\0\0\0\0\0\x10", b"\0\0\0\0\0\0\0\x01")


def entry_key(number: int) -> EntryKey:
    digest = hashlib.sha256(str(number).encode()).digest()
    raw = digest[:20] if number % 3 else digest[:12] + ENDS[digest[12] % 4]
    if number % 2:
        return mail_entry_key(short_key(raw))
    path = NodePath.parse(f"/{'emea' if digest[0] % 2 else 'emea-2'}/s{digest[1] % 7}")
    return path_entry_key(path, short_key(raw))


GENERATIONS = st.integers(0, 2**63 - 1)
KEYS = st.integers(0, 600).map(entry_key)
CHANGES = st.dictionaries(KEYS, st.none() | GENERATIONS, max_size=80)
RANGES = st.tuples(st.integers(0, 3000), st.integers(0, 3000), st.none() | GENERATIONS).map(
    lambda chosen: {entry_key(n): chosen[2] for n in range(*sorted(chosen[:2]))}
)
HISTORIES = st.lists(CHANGES | RANGES, max_size=6)
TREES = HISTORIES.map(lambda history: grown(history)[0])


def grown(history):
    tree, model = SnapshotTree.empty(), {}
    for changes in history:
        tree = tree.changed(changes)
        model = {k: g for k, g in (model | changes).items() if g is not None}
    return tree, model


@given(HISTORIES)
def test_the_tree_is_a_map_in_order_of_keys_that_keeps_its_rule(history):
    tree, model = grown(history)
    tree.assert_invariants()
    assert [(entry.key, entry.generation) for entry in tree.entries()] == sorted(model.items())
    assert tree.count == len(model)


@given(HISTORIES)
def test_equal_contents_have_equal_roots_whatever_their_history(history):
    tree, model = grown(history)
    assert SnapshotTree.empty().changed(model).root == tree.root
    one_by_one = SnapshotTree.empty()
    for key in sorted(model, key=lambda key: key[::-1])[:200]:
        one_by_one = one_by_one.changed({key: model[key]})
    rest = {
        key: None for key in model if key not in dict.fromkeys(e.key for e in one_by_one.entries())
    }
    assert tree.changed(rest).root == one_by_one.root


@given(TREES)
def test_nodes_keep_their_limits(tree):
    assert tree.height <= HEIGHT_MAX
    for blob in tree.blobs():
        plain = open_value(blob.reference, blob.values[blob.reference.address])
        if blob.reference.kind == "sleaf":
            assert len(read_leaf(plain).entries) <= LEAF_MAX
        else:
            assert 1 <= len(read_inner(plain).children) <= INNER_MAX


@given(TREES, CHANGES | RANGES)
def test_a_change_costs_the_blobs_that_the_tree_did_not_have(tree, changes):
    after = tree.changed(changes)
    had = {blob.reference for blob in tree.blobs()}
    new = {blob.reference for blob in after.blobs_since(tree)}
    assert had | new >= {blob.reference for blob in after.blobs()}
    assert tree.changed({}).root == tree.root
    assert not [*after.blobs_since(after)] or not after.count


@given(TREES, st.lists(KEYS, max_size=20))
def test_each_key_is_found_with_its_generation_or_told_as_not_listed(tree, keys):
    view = view_of(tree)
    model = {entry.key: entry.generation for entry in tree.entries()}
    wanted = {
        k: ListedAt(model[k]) if k in model else NOT_LISTED for k in {*keys, *list(model)[:50]}
    }
    assert {key: view.generation_of(key) for key in wanted} == wanted
    assert dict(view.generations_of(list(wanted))) == wanted


@given(TREES, st.data())
def test_with_blobs_missing_just_what_they_hide_is_unread(tree, data):
    nodes = nodes_of(tree)
    hidden = data.draw(st.sets(st.sampled_from(sorted(nodes)), max_size=5))
    full, partial = view_of(tree), view_of(tree, hidden)
    keys = [*[entry.key for entry in tree.entries()][:300], *data.draw(st.lists(KEYS))]
    together = dict(partial.generations_of(keys))
    for key in keys:
        found = partial.generation_of(key)
        assert together[key] == found
        on_the_way = {subtree.address for subtree, _ in full.subtrees(SnapshotInterest([key]))}
        if isinstance(found, UnreadBlobs):
            (missing,) = found.missing
            assert missing.address in hidden & on_the_way
        else:
            assert not hidden & on_the_way
            assert found == full.generation_of(key)


def whole_of(tree, interest):
    """What a node has that read all that an interest needs, and the bytes of it."""
    view, nodes = view_of(tree), {}
    reading = SnapshotReading(view.record, interest, nodes)
    while missing := reading.missing():
        for reference in missing:
            reading.take(reference.address, view.nodes[reference.address])
    assert nodes.keys() == reading.whole().addresses
    return reading.whole(), nodes


KEY_LISTS = st.lists(KEYS, max_size=20)


@given(TREES, CHANGES, KEY_LISTS, KEY_LISTS, st.booleans(), st.integers(1, 5))
def test_a_reading_ends_with_each_key_judged_and_takes_what_is_shared_from_before(
    tree, changes, former_keys, keys, whole_region, most
):
    after = tree.changed(changes)
    region = NodePath.parse("/emea") if whole_region else None
    former, interest = SnapshotInterest(former_keys, region), SnapshotInterest(keys, region)
    earlier, kept = whole_of(tree, former)
    before = dict(kept)
    new = view_of(after)
    reading = SnapshotReading(new.record, interest, kept, earlier)
    fetched = set()
    while missing := reading.missing(most):
        assert len(missing) <= most
        for reference in missing:
            assert reference.address not in fetched | set(before)
            fetched.add(reference.address)
            reading.take(reference.address, new.nodes[reference.address])
    needed = set(whole_of(after, interest)[0].addresses)
    assert fetched == needed - set(before)
    whole = reading.whole().addresses
    assert whole == needed
    view = SnapshotView(new.record, {address: kept[address] for address in whole})
    for key in keys:
        assert view.generation_of(key) == new.generation_of(key)
    old = view_of(tree)
    differing = {key for key in former_keys if old.generation_of(key) != new.generation_of(key)}
    assert differing & {*keys} <= reading.changed()


PATHS = st.lists(st.sampled_from(["emea", "emea-2", "e", "s1", "0"]), max_size=3).map(
    lambda names: NodePath(tuple(names))
)


@given(PATHS, st.lists(PATHS, max_size=10))
@example(NodePath(("emea",)), [NodePath(("emea-2",)), NodePath(("emea", "0")), NodePath(("e",))])
def test_what_a_subtree_needs_lies_side_by_side(top, paths):
    key = short_key(b"k" * 20)
    ordered = sorted(path_entry_key(path, key) for path in {top, *paths})
    below = [entry.startswith(path_entry_prefix(top)) for entry in ordered]
    inside = [path_entry_key(path, key) for path in {top, *paths} if top.holds(path)]
    assert [e for e, held in zip(ordered, below, strict=True) if held] == sorted(inside)
    assert sum(first != second for first, second in pairwise([False, *below, False])) == 2
    assert all(mail_entry_key(key) < entry for entry in ordered)


@given(TREES)
def test_all_entries_are_read_once_all_nodes_are_here(tree):
    view = view_of(tree)
    assert [*view.entries()] == [*tree.entries()]
    lacking = view_of(tree, {view.record.tree.address})
    assert lacking.entries() == UnreadBlobs((view.record.tree.reference,))


def test_a_reading_given_up_leaves_nothing_that_a_later_one_takes_for_complete():
    tree = SnapshotTree.empty().changed({entry_key(n): n for n in range(500)})
    view, interest, kept = view_of(tree), SnapshotInterest.everything(), {}
    root = view.record.tree.address
    reading = SnapshotReading(view.record, interest, kept)
    reading.take(root, view.nodes[root])
    assert reading.missing()
    again = SnapshotReading(view.record, interest, kept)
    assert set(again.missing()) == set(reading.missing())


def test_a_blob_that_breaks_the_form_is_refused_and_still_lacked():
    tree = SnapshotTree.empty().changed({entry_key(1): 1})
    view = view_of(tree)
    root = view.record.tree
    reading = SnapshotReading(view.record, SnapshotInterest.everything(), {})
    with pytest.raises(SnapshotRefused):
        reading.take(root.address, b"\x91\x91\x92")
    assert root.reference in reading.missing()


def test_the_record_leads_to_the_tree_and_to_the_terms():
    record = view_of(SnapshotTree.empty()).record
    assert [reference.kind for reference in record.references] == ["sleaf", SNAPSHOT_TERMS]
    assert isinstance(record, SnapshotRecord)
    assert record.term == TERM
    assert BlobPointer.to(record.terms_reference) == record.terms
    assert encode(TermList(())) == b"\x91\x90"
