"""Snapshots on the wire: equal values have equal bytes, and what breaks the form is refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.records.tree import SnapshotTree
from schemas.records.snapshots import (
    API_SNAPSHOT,
    BlobPointer,
    Child,
    Entry,
    EntryKey,
    InnerNode,
    LeafNode,
    SnapshotRefused,
    Subtree,
    TermEntry,
    TermList,
    encode,
    mail_entry_key,
    mail_key_of,
    read_inner,
    read_leaf,
    read_snapshot,
    read_terms,
    snapshot_source,
)
from schemas.values.codec import CodecError
from schemas.values.identity import TreeId, mail_key
from tests.snapshots import TERM, view_of

A, B, C = (EntryKey(b"\0" + bytes([n]) * 20) for n in range(3))
HASH = bytes(32)


def pack(value):
    return msgspec.msgpack.encode(value)


def test_what_is_written_is_read_again():
    record = view_of(SnapshotTree.empty().changed({A: 1})).record
    assert read_snapshot(encode(record)) == record
    leaf = LeafNode((Entry(A, 1), Entry(B, 2**63 - 1)))
    assert read_leaf(encode(leaf)) == leaf
    inner = InnerNode(2, (Child(A, HASH, 1), Child(B, HASH, 2)))
    assert read_inner(encode(inner)) == inner
    terms = TermList((TermEntry(TERM, None),))
    assert read_terms(encode(terms)) == terms


def test_bytes_of_a_leaf_are_as_the_protocol_says():
    assert encode(LeafNode((Entry(A, 1),))) == b"\x91\x91\x92\xc4\x15" + A + b"\x01"


def test_what_a_newer_program_adds_at_the_end_is_passed_over():
    assert read_leaf(pack([[[A, 1, "more"]], "more"])) == LeafNode((Entry(A, 1),))


def test_an_entry_names_its_mail_key():
    key = mail_key("api", "space", "", "name")
    assert mail_key_of(mail_entry_key(key)) == key
    assert snapshot_source(TreeId("t" * 26)).api == API_SNAPSHOT


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (read_leaf, [[[B, 1], [A, 1]]]),
        (read_leaf, [[[A, 1], [A, 1]]]),
        (read_leaf, [[[A, -1]]]),
        (read_leaf, [[[A, 2**63]]]),
        (read_leaf, [[[b"short", 1]]]),
        (read_leaf, [[[b"x" * 2049, 1]]]),
        (read_leaf, [[[b"\0" + n.to_bytes(20, "big"), 1] for n in range(129)]]),
        (read_leaf, "text"),
        (read_inner, [1, []]),
        (read_inner, [0, [[A, HASH, 1]]]),
        (read_inner, [17, [[A, HASH, 1]]]),
        (read_inner, [1, [[A, HASH[1:], 1]]]),
        (read_inner, [1, [[A, HASH, 2**40]]]),
        (read_inner, [1, [[B, HASH, 1], [A, HASH, 1]]]),
        (read_inner, [1, [[b"\0" + n.to_bytes(20, "big"), HASH, 1] for n in range(65)]]),
        (read_terms, [[[b"z" * 8, 1], [b"a" * 8, 1]]]),
        (read_terms, [[[b"short", 1]]]),
        (read_snapshot, [5, TERM, 1, 2, 6, [HASH, 1], [HASH, 1], 0, 0]),
        (read_snapshot, [5, TERM, 1, 2, 4, [HASH, 1], [HASH, 1], 17, 0]),
    ],
)
def test_what_breaks_the_form_is_refused(read, value):
    with pytest.raises(SnapshotRefused):
        read(pack(value))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_refusal(data):
    for read in (read_leaf, read_inner, read_terms, read_snapshot):
        try:
            value = read(data)
        except CodecError:
            continue
        assert read(encode(value)) == value


def test_bytes_that_nest_without_end_or_are_no_text_are_refused():
    for data in (b"\x91" * 100_000, b"\x92\xa1\xff\x90", b""):
        with pytest.raises(SnapshotRefused):
            read_leaf(data)


POINTER = BlobPointer(HASH, 1)


def test_a_node_that_is_not_what_the_node_above_names_is_refused():
    leaf = encode(LeafNode((Entry(A, 1), Entry(B, 1))))
    assert Subtree(POINTER, 0, A, A, C).leaf(leaf).generation_of(B) == 1
    inner = encode(InnerNode(1, (Child(A, HASH, 1), Child(B, HASH, 1))))
    assert Subtree(POINTER, 1, A, A, C).inner(inner).position(C) == 1
    for refused in (
        lambda: Subtree(POINTER, 0, B, B, C).leaf(leaf),
        lambda: Subtree(POINTER, 0, A, A, B).leaf(leaf),
        lambda: Subtree(POINTER, 0, A, A, C).leaf(encode(LeafNode(()))),
        lambda: Subtree(POINTER, 2, A, A, C).inner(inner),
        lambda: Subtree(POINTER, 1, A, A, B).inner(inner),
        lambda: Subtree(POINTER, 1, B, B, C).inner(inner),
    ):
        with pytest.raises(SnapshotRefused):
            refused()
