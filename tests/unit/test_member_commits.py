"""A change of the members is in the stream of the node's state before it is anybody's file."""

import asyncio

import pytest

from leafcast.members import state_files
from leafcast.members.member import Member, _State
from leafcast.members.membership import FILE, TRUSTED, kept_membership
from leafcast.members.sealed_state import StateUnreadable, opened, sealed, sealed_to
from leafcast.members.settings import kept_member
from leafcast.members.state_files import StateFiles
from leafcast.members.steps import Replaced, carry_out
from relay.adapters.clock import SystemClock
from relay.ports import BusBroken
from tests.unit.test_member_replacement import DICE, KEYS, NAMES, begin, region

__all__ = ["region"]


class Stream:
    """What is put: whole at once when `goes_on` is set, unless it breaks."""

    def __init__(self):
        self.order = []
        self.held, self.goes_on, self.asked = {}, asyncio.Event(), asyncio.Event()
        self.goes_on.set()
        self.broken = None

    async def put(self, kept, gone):
        self.asked.set()
        await self.goes_on.wait()
        if self.broken is not None:
            raise self.broken
        self.order = list(kept)
        self.held |= kept
        self.held = {name: it for name, it in self.held.items() if name not in gone}


class Node:
    def __init__(self, folder):
        self.folder = folder


class Active:
    """Member m1 of a region, whose stream has what its files say."""

    def __init__(self, folders):
        self.folders, folder = folders, folders["m1"]
        self.member = Member(kept_member(folder), Node(folder), SystemClock(), DICE)
        self.state = _State(Stream(), StateFiles(folder, ("keys.json", FILE)))
        (folder / "keys.json").write_text("first")

    @property
    def stream(self):
        return self.state.stream

    async def settle(self):
        await self.member._settle(self.state)

    def to(self, name):
        return sealed_to(self.stream.held[name])


@pytest.fixture
def active(region):
    return Active(region)


async def test_a_change_that_is_in_no_stream_is_in_no_file(active, region):
    await active.settle()
    active.stream.broken = BusBroken("no answer")
    with pytest.raises(BusBroken, match="no answer"):
        await active.member._commit(active.state, begin(region))
    assert kept_membership(region["m1"]) is None
    active.stream.broken = None
    await active.member._commit(active.state, begin(region))
    kept = kept_membership(region["m1"])
    assert kept is not None
    assert opened(FILE, active.stream.held[FILE], "m3", bytes(KEYS["m3"])) == kept.text().encode()
    # What says who the members are comes first: what is not sealed anew with it is so later.
    assert active.stream.order == [FILE, "keys.json"]


async def test_what_was_under_way_as_a_change_began_is_sealed_to_the_lost_one_no_more(
    active, region
):
    await active.settle()
    assert active.to("keys.json") == frozenset(NAMES)
    (region["m1"] / "keys.json").write_text("second one")
    active.stream.goes_on.clear()
    active.stream.asked.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(active.settle())
        await active.stream.asked.wait()
        group.create_task(active.member._commit(active.state, begin(region)))
        await asyncio.sleep(0)
        active.stream.goes_on.set()
    await active.settle()
    assert active.to("keys.json") == active.to(FILE) == {"m1", "m3", "m4"}


async def test_a_change_that_cannot_be_written_down_is_not_undone_in_the_stream(
    active, region, monkeypatch
):
    change = begin(region)
    await active.member._commit(active.state, change)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_files, "atomic_write", full)
    with pytest.raises(BusBroken, match=r"cannot be written down.* No space"):
        await active.member._commit(active.state, change.at(TRUSTED + 1))
    await active.settle()
    text = opened(FILE, active.stream.held[FILE], "m3", bytes(KEYS["m3"])).decode()
    assert text == change.at(TRUSTED + 1).text()


def test_a_member_that_came_is_not_told_that_it_is_none_by_what_is_sealed_later(active, region):
    keys = {name: bytes(KEYS[name].public_key) for name in NAMES}
    own = keys.pop("m1")
    others, member = sealed("keys.json", b"x", keys, DICE), active.member
    with pytest.raises(Replaced, match="m1 is no member"):
        member._opened("keys.json", others)
    change = begin(region)
    member._settings = carry_out(region["m1"], member._settings, change)
    with pytest.raises(StateUnreadable, match="not sealed to this member"):
        member._opened("keys.json", others)
    with pytest.raises(Replaced, match="m1 is no member"):
        member._opened(FILE, sealed(FILE, b"x", keys, DICE))
    assert member._opened("keys.json", sealed("keys.json", b"x", {"m1": own}, DICE)) == "x"
