"""What every message bus promises of the copies that a child keeps at its parent."""

import pytest

from relay.ports import CopiesPage
from schemas.reports.upsync import COPY_MAX_BYTES, EDGE_MAX_BYTES
from tests.awaiting import eventually
from tests.contract.buses import TREES


@pytest.fixture(params=TREES)
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


async def grown(tree):
    """A centre with two children, the first with room for copies."""
    centre, _ = await tree.open()
    first, _ = await tree.sprout("/s1", centre)
    second, _ = await tree.sprout("/s2", centre)
    await centre.open_copies("s1")
    # Nothing answers a child whose link opens just now.
    await eventually(first.copies_place)
    return centre, first, second


async def kept(centre, child):
    page = await centre.read_copies(child, 1)
    return {copy.key: copy.data for copy in page.copies}


async def test_who_has_no_room_has_no_place(tree):
    centre, _, second = await grown(tree)

    assert await second.copies_place() is None
    assert await centre.read_copies("s2", 1) == CopiesPage()


async def test_the_last_copy_of_a_key_is_kept_until_it_is_erased(tree):
    centre, first, _ = await grown(tree)
    empty = await first.copies_place()
    assert (empty.last, empty.count) == (0, 0)

    places = [await first.put_copy(key, key.encode() * n) for n in (1, 2) for key in ("a", "b")]

    assert places == sorted(set(places))
    assert 0 not in places
    assert await kept(centre, "s1") == {"a": b"aa", "b": b"bb"}
    place = await first.copies_place()
    assert (place.since, place.last, place.count) == (empty.since, places[-1], 2)
    assert await first.erase_copies(key="b")
    assert await first.erase_copies(key="b")
    assert await kept(centre, "s1") == {"a": b"aa"}
    assert (await first.copies_place()).last == places[-1]


async def test_what_lies_before_a_place_goes_at_once(tree):
    centre, first, _ = await grown(tree)
    for key in ("a", "b", "c"):
        last = await first.put_copy(key, b"old")
    await first.put_copy("b", b"new")

    assert await first.erase_copies(before=last + 1)

    assert await kept(centre, "s1") == {"b": b"new"}


async def test_a_child_that_brings_up_too_much_loses_its_oldest_and_nobody_elses(tree):
    centre, first, second = await grown(tree)
    await centre.open_copies("s2")
    await second.put_copy("mine", b"stays")
    big = bytes(COPY_MAX_BYTES)
    for number in range(EDGE_MAX_BYTES // COPY_MAX_BYTES + 3):
        assert await first.put_copy(f"k{number}", big)

    found, page = set(), await centre.read_copies("s1", 1)
    while True:
        found |= {copy.key for copy in page.copies}
        assert sum(len(copy.data) for copy in page.copies) <= 4 * COPY_MAX_BYTES or page.next == 0
        if not page.next:
            break
        page = await centre.read_copies("s1", page.next)

    assert "k0" not in found
    assert f"k{EDGE_MAX_BYTES // COPY_MAX_BYTES + 2}" in found
    assert await kept(centre, "s2") == {"mine": b"stays"}


async def test_the_parent_is_told_who_said_the_last_hello_and_keeps_copies_over_restarts(tree):
    centre, first, _ = await grown(tree)
    await first.put_copy("a", b"1")
    assert await first.send_hello(b"a hello")
    await tree.close("/")
    centre, _ = await tree.open()

    page = await centre.read_copies("s1", 1)

    assert page.hello == b"a hello"
    assert [copy.data for copy in page.copies] == [b"1"]
    await centre.open_copies("s1")
    assert await kept(centre, "s1") == {"a": b"1"}


async def test_a_removed_childs_copies_go_along(tree):
    centre, first, _ = await grown(tree)
    before = await first.copies_place()
    await first.put_copy("a", b"1")

    await centre.remove_child("s1")
    assert await centre.read_copies("s1", 1) == CopiesPage()
    await tree.readmit("/s1", centre)
    await centre.open_copies("s1")
    after = await eventually(first.copies_place)
    assert (after.last, after.count) == (0, 0)
    assert after.since != before.since
