"""What may be installed: what the pinned publisher signed, whoever brings it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcast.publisher.root_making import next_root
from schemas.releases.publisher_roots import PublisherRoots
from schemas.releases.release_folder import (
    LaunchNote,
    LaunchState,
    WantedRelease,
    read_launch_note,
    read_wanted,
)
from schemas.releases.release_manifest import Piece, read_manifest
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import version_order
from tests.publishing import key, manifest, piece, release, root_after, signed, wish

A, B, C, D, STRANGER = map(key, "ABCDS")
FIRST = root_after(None, wish([A, B, C], 2, [D]), A, B)


def refused(match, act, *args):
    with pytest.raises(ReleaseRefused, match=match):
        act(*args)


def test_a_release_is_what_its_publisher_signed():
    data = release(FIRST, D)
    assert FIRST.verified(data) == manifest() == read_manifest(data)
    assert PublisherRoots.parse(FIRST.data) == FIRST


@pytest.mark.parametrize("keys", [(), (STRANGER,), (A, B, C)], ids=["nobody", "stranger", "roots"])
def test_a_release_that_others_signed_is_refused(keys):
    refused("release: 0 of the 1 signatures", FIRST.verified, release(FIRST, *keys))


def test_nothing_that_is_signed_can_be_changed():
    form = json.loads(release(FIRST, D))
    form["signed"]["leafcast"]["upgrades_from"] = "0.0.1"
    refused("0 of the 1 signatures", FIRST.verified, json.dumps(form).encode())


def test_who_holds_all_keys_of_a_tree_makes_no_root_that_a_machine_follows():
    own = root_after(None, wish([STRANGER]), STRANGER)
    second = root_after(own, wish(lowest="0.1.0"), STRANGER)
    # With the publisher's own root put in front of it, too.
    forged = PublisherRoots((*FIRST.files, *second.files[1:]))
    refused("0 of the 1 signatures", FIRST.verified, release(own, STRANGER))
    refused("root 2: 0 of the 2 signatures", FIRST.verified, release(second, STRANGER))
    refused("root 2: 0 of the 2 signatures", FIRST.verified, release(forged, STRANGER))


def test_roots_change_by_the_word_of_those_before_and_of_their_own():
    change = wish([A, STRANGER], 2, [STRANGER])
    refused("root 2: 1 of the 2", root_after, FIRST, change, A, STRANGER)
    refused("root 2: 1 of the 2", root_after, FIRST, change, A, B)
    second = root_after(FIRST, change, A, B, STRANGER)
    data = release(second, STRANGER)
    assert FIRST.after(data).version == 2
    assert FIRST.verified(data) == manifest()
    # The former key signs nothing any more for who follows.
    refused("0 of the 1", second.verified, release(FIRST, D))
    assert second.after(release(FIRST, D)) == second


def test_a_machine_that_was_away_follows_all_roots_between_and_skips_none():
    second = root_after(FIRST, wish(lowest="0.2.0"), A, B)
    third = root_after(second, wish(lowest="0.3.0"), B, C)
    assert FIRST.verified(release(third, D)).version == "0.3.0"
    gap = PublisherRoots(third.files[2:])
    refused("root 3 does not follow root 1", FIRST.verified, release(gap, D))
    assert second.verified(release(gap, D)).version == "0.3.0"


def test_what_is_below_the_lowest_is_not_installed_any_more():
    second = root_after(FIRST, wish(lowest="0.3.1"), A, C)
    refused(
        r"version: 0.3.0 is below 0.3.1, .*; choose a newer", FIRST.verified, release(second, D)
    )
    assert FIRST.verified(release(second, D, of=manifest("0.3.1"))).version == "0.3.1"
    # Whoever pinned the newer root keeps to it, though the release brings the older one.
    refused("below 0.3.1", second.verified, release(FIRST, D))


def test_a_key_counts_once_and_no_root_asks_for_more_than_it_names():
    refused("3 of 1 keys of role root", root_after, None, wish([A], 3), A)
    form = json.loads(FIRST.data)
    keys = form["signed"]["keys"]
    keys["another"] = keys[A.public.keyid]
    refused("it has a key twice", PublisherRoots.from_form, form)


def test_a_root_that_enough_keys_did_not_sign_is_no_publisher():
    refused("root 1: 1 of the 2", PublisherRoots.parse, signed(next_root(None, wish([A, B], 2)), A))


def test_a_release_for_another_platform_says_which_there_are():
    refused("none for linux-arm64: linux-amd64", manifest().of, "linux-arm64")
    assert [it.name for it in manifest().of("linux-amd64")] == ["leafcast-0.3.0-py3-none-any.whl"]


def test_a_piece_is_its_bytes():
    one = piece("a-1-py3-none-any.whl", b"good")
    assert one.holds(b"good")
    for other in (b"evil", b"goo", b""):
        assert not one.holds(other)


@pytest.mark.parametrize(
    "name", ["../a.whl", "a/b.whl", ".whl", "a.tar.gz", "a\n.whl", "/etc/x.whl"]
)
def test_no_piece_has_a_name_that_leads_elsewhere(name):
    refused("is no name of a wheel", Piece, name, "0" * 64, 1)


def test_versions_have_an_order():
    ordered = ["0.2.0", "0.3.0a1", "0.3.0b1", "0.3.0rc1", "0.3.0rc10", "0.3.0", "0.10.0", "1.0.0"]
    assert sorted(set(ordered), key=version_order) == ordered
    for bad in ("1", "1.0", "01.0.0", "1.0.0-rc1", "1.0.0\n", "../1.0.0", "1.0.0+a"):
        refused("is no version", version_order, bad)


@given(
    st.builds(
        LaunchNote,
        running=st.sampled_from(["0.1.0", "0.3.0rc1"]),
        former=st.sampled_from(["", "0.1.0"]),
        state=st.sampled_from(LaunchState),
        why=st.text(max_size=20),
        manifest=st.sampled_from(["", "a" * 64]),
        attempt=st.integers(0, 3),
        starts=st.integers(0, 3),
    )
)
@settings(max_examples=20)
def test_notes_say_what_was_written(note):
    assert read_launch_note(note.text.encode()) == note
    wish = WantedRelease(note.running, "b" * 64, note.attempt)
    assert read_wanted(wish.text.encode()) == wish


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"version":"1.0.0","manifest":"x"}', b"\xff"]
)
def test_a_wish_that_is_none_names_its_field(data):
    refused("remove the file", read_wanted, data)


MADE = release(FIRST, D)


@given(st.data())
@settings(max_examples=60)
def test_whatever_bytes_come_nothing_but_the_signed_is_taken(data):
    changed = bytearray(MADE)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = FIRST.verified(bytes(changed))
    except ReleaseRefused:
        return
    assert found == manifest()
