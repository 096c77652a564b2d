"""A centre that goes on elsewhere keeps its hubs: no other one of its tree gets them meanwhile."""

from contextlib import AsyncExitStack
from dataclasses import replace
from types import SimpleNamespace

import pytest

from leafcast.centre import centre_spaces
from leafcast.centre.centre_spaces import HeldSpaces, centre_identity
from leafcast.centre.copying import OF_MEMBER, Copying, end_membership, keep_copying
from leafcast.data_dir import DataDir
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import MemberSettings, keep_member
from leafcast.space_settings import EMBEDDED, CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemDice
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.claims.centre_lease import WORKLOADS_LEASE, always
from relay.claims.claim import CentreIdentity, CentreVerdict
from relay.claims.tenured_space import TenuredSpace
from schemas.values.identity import NodePath
from tests.unit.lease_space import LeaseSpace, lease
from tests.unit.test_centre_lease import ME, OTHER_TREE, TREE, HandClock, a_lease

WAIT = CentreVerdict.WAIT


@pytest.fixture
def hub(monkeypatch):
    """A hub in the place of what a setting names."""
    made = TenuredSpace(LeaseSpace(), always)

    async def opened(*_):
        return made

    monkeypatch.setattr(centre_spaces, "open_space", opened)
    monkeypatch.setattr(centre_spaces, "open_kubernetes", lambda *_: made)
    return made.leases


def held_spaces(me, clock):
    return HeldSpaces(me, clock, None, lambda _: None, lambda *_: None, False)


ON_HUB = CentreSpaces((SpaceSetting("kubeconfig", "hub.yaml"),), (EMBEDDED,))


async def run_once(held):
    async with AsyncExitStack() as stack, held.open(ON_HUB, None, None, stack):
        pass


async def test_between_runs_of_a_centre_no_other_one_of_its_tree_gets_its_hub(hub):
    clock = HandClock()
    held, standby = held_spaces(ME, clock), a_lease(clock, held_by_another())
    for _ in range(3):
        await run_once(held)
        await standby.take(hub)
        assert (standby.verdict, hub.held[WORKLOADS_LEASE].holder) == (WAIT, ME.holder)
    await held.give_back()
    await standby.take(hub)
    assert standby.is_held


def held_by_another():
    return CentreIdentity(TREE, "there", "run-3", "host-3")


async def test_a_member_that_follows_finds_the_hub_as_the_former_one_left_it(hub):
    clock = HandClock()
    first, second = (CentreIdentity(TREE, "members", f"run-{it}", "host") for it in "12")
    standby = a_lease(clock, held_by_another())
    for me in (first, second, first):
        await run_once(held_spaces(me, clock))
        await standby.take(hub)
        assert (standby.verdict, hub.held[WORKLOADS_LEASE].holder) == (WAIT, me.holder)


def members(folder, keys, name="m1"):
    cluster = ClusterSettings(TREE, name, 1, ("127.0.0.1:2", "127.0.0.1:3"), "s" * 32)
    settings = MemberSettings(NodePath(), cluster, (), {}, keys, b"0" * 32)
    keep_member(folder, settings)
    return settings


KEYS = {f"m{it}": str(it).encode() * 32 for it in range(1, 6)}


def of(*names):
    return {name: KEYS[name] for name in names}


def identity(folder, member=None):
    return centre_identity(TREE, folder, SystemDice(), member)


def lies(me):
    return lease(WORKLOADS_LEASE, me.holder, **me.notes())


@pytest.mark.parametrize(
    ("now", "is_same"),
    [(("m1", "m3", "m4"), True), (("m3", "m4", "m5"), False), (("m4", "m5"), False)],
)
def test_a_centre_of_which_one_member_was_replaced_is_the_same_to_a_hub(tmp_path, now, is_same):
    before = identity(tmp_path, SimpleNamespace(keys=of("m1", "m2", "m3")))
    folder = tmp_path / "m3"
    folder.mkdir()
    after = identity(folder, SimpleNamespace(keys=of(*now)))
    assert after.is_place_of(lies(before)) == is_same
    assert not replace(after, tree=OTHER_TREE).is_place_of(lies(before))


def test_a_lease_of_a_release_that_names_no_members_is_told_by_its_place(tmp_path):
    me = identity(tmp_path, SimpleNamespace(keys=of("m1", "m2", "m3")))
    assert me.is_place_of(lies(replace(me, members=(), run="before")))


def test_a_centre_that_grows_from_a_folder_is_the_same_to_a_hub_and_a_copy_is_not(tmp_path):
    folders = [tmp_path / name for name in ("m1", "m2")]
    for folder in folders:
        folder.mkdir()
    alone = identity(folders[0])
    grown, other = (identity(it, SimpleNamespace(keys=of("m1", "m2", "m3"))) for it in folders)
    assert grown.is_place_of(lies(alone))
    assert not other.is_place_of(lies(alone))


@pytest.mark.parametrize("ended", [True, False])
def test_a_centre_that_shrinks_is_the_same_to_a_hub_and_one_that_recovers_waits(tmp_path, ended):
    settings = members(tmp_path, of("m1", "m2", "m3"))
    before = identity(tmp_path, settings)
    if ended:
        keep_copying(tmp_path, Copying("m1", alone=True))
    # As after a loss of power amid it.
    for _ in range(2):
        end_membership(DataDir(tmp_path))
    assert (tmp_path / OF_MEMBER / MEMBER_FILE).exists()
    assert identity(tmp_path).is_place_of(lies(before)) == ended


def test_a_member_knows_that_all_are_told_to_end_until_it_starts_again(tmp_path):
    place = DataDir(tmp_path)
    assert not place.is_ending()
    place.say_ending()
    assert place.is_ending()
    place.forget_ending()
    place.forget_ending()
    assert not place.is_ending()
