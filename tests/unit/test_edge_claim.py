"""One cluster is one edge: who claims it, who is refused, and that nothing is done by ignorance."""

import asyncio

import pytest

from relay.adapters.clock import SystemClock
from relay.claims.claim import (
    EDGE_NOTE,
    PATH_NOTE,
    TREE_NOTE,
    EdgeIdentity,
    EdgeVerdict,
    judge_edge,
)
from relay.claims.edge_claim import EdgeClaim
from relay.claims.guarded_space import ClaimedSpace
from relay.claims.leases import EDGE_LEASE, Lease
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Interests
from schemas.objects.objects import ObjectKey
from tests.unit.lease_space import LeaseSpace, away, forbidden, lease

TREE, OTHER_TREE = "a" * 32, "b" * 32
ME = EdgeIdentity(TREE, "/r1/s1", "mine", ("/r0/s1",))


def claimed_by(tree=TREE, path="/r1/s1", edge="mine"):
    return lease(holder=path, **{TREE_NOTE: tree, PATH_NOTE: path, EDGE_NOTE: edge})


class Note:
    """What the folder says."""

    def __init__(self, cluster=""):
        self.edge, self.cluster = "mine", cluster

    def keep(self, cluster):
        self.cluster = cluster


def an_edge(note=None, me=ME, **how):
    return EdgeClaim(me, note or Note(), SystemClock(), **how)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, EdgeVerdict.CREATE),
        (claimed_by(), EdgeVerdict.KEEP),
        # Another folder at the same place: its store was wiped, and it was let in again.
        (claimed_by(edge="before"), EdgeVerdict.RENEW),
        # It was moved.
        (claimed_by(path="/r0/s1"), EdgeVerdict.RENEW),
        (claimed_by(path="/r0/s1", edge="before"), EdgeVerdict.RENEW),
        (claimed_by(path="/r9/s9"), EdgeVerdict.RENEW),
        (claimed_by(path="/r1/s2", edge="other"), EdgeVerdict.REFUSED),
        (claimed_by(tree=OTHER_TREE), EdgeVerdict.REFUSED),
        (claimed_by(tree=OTHER_TREE, edge="other"), EdgeVerdict.REFUSED),
        # Someone made a Lease of that name who is no edge.
        (Lease(EDGE_LEASE, "x"), EdgeVerdict.REFUSED),
        (claimed_by(tree=""), EdgeVerdict.REFUSED),
    ],
)
def test_a_claim_is_of_this_edge_by_its_tree_and_by_its_folder_or_a_place_of_it(found, verdict):
    assert judge_edge(found, ME, take_over=False) is verdict
    taken = EdgeVerdict.TAKE_OVER if verdict is EdgeVerdict.REFUSED else verdict
    assert judge_edge(found, ME, take_over=True) is taken


def test_an_edge_without_a_name_of_its_own_is_no_edge_of_the_tree_at_large():
    nameless = EdgeIdentity(TREE, "/r1/s1", "")
    found = claimed_by(path="/r1/s2", edge="")
    assert judge_edge(found, nameless, take_over=False) is EdgeVerdict.REFUSED


async def test_a_cluster_that_nobody_claims_is_claimed_with_tree_path_and_folder():
    space, note = LeaseSpace(), Note()
    claim = an_edge(note)
    assert not claim.held
    await claim.look(space, True)
    assert (claim.held, note.cluster) == (True, "one")
    found = space.held[EDGE_LEASE]
    assert (found.holder, found.notes) == ("/r1/s1", ME.notes())
    assert found.acquired.endswith("Z")
    await claim.look(space, True)
    assert space.writes == 1


async def test_what_is_no_destination_yet_claims_nothing_and_sees_at_once_that_it_is_anothers():
    space = LeaseSpace()
    claim = an_edge()
    await claim.look(space, None)
    assert (claim.held, claim.refused, space.writes) == (False, False, 0)
    space.put(claimed_by(path="/r1/s2", edge="other"))
    await claim.look(space, None)
    assert (claim.refused, space.writes) == (True, 1)


async def test_a_second_edge_is_told_which_one_is_there_since_when_and_what_to_do():
    space, note = LeaseSpace(cluster="uid-7"), Note()
    space.put(claimed_by(path="/r1/s2", edge="other"))
    claim = an_edge(note)
    await claim.look(space, True)
    for word in ("uid-7", "/r1/s2", "of this tree", "2026-01-01", "--context", "--take-over"):
        assert word in claim.refused_at_start
    space.put(claimed_by(tree=OTHER_TREE))
    await claim.look(space, True)
    assert "of tree bbbbbbbb" in claim.refused_at_start
    assert (note.cluster, space.writes) == ("", 2)


async def test_of_two_that_start_at_once_one_has_the_cluster():
    space = LeaseSpace()
    one, other = an_edge(), an_edge(me=EdgeIdentity(TREE, "/r1/s2", "other"))
    space.before_write = lambda: space.put(claimed_by(path="/r1/s2", edge="other"))
    await one.look(space, True)
    await other.look(space, True)
    assert (one.held, one.refused, other.held) == (False, True, True)


async def test_a_moved_edge_says_where_it_hangs_now_and_since_when_it_has_the_cluster():
    space = LeaseSpace()
    space.put(claimed_by(path="/r0/s1"))
    await an_edge(Note("one")).look(space, True)
    found = space.held[EDGE_LEASE]
    assert (found.holder, found.notes[PATH_NOTE]) == ("/r1/s1", "/r1/s1")
    assert found.acquired == "2026-01-01T00:00:00.000000Z"


async def test_an_edge_whose_cluster_changed_under_it_writes_nothing_there():
    space, note = LeaseSpace(cluster="two"), Note("one")
    claim = an_edge(note)
    await claim.look(space, True)
    assert (claim.refused, space.writes, note.cluster) == (True, 0, "one")
    for word in ("two", "one", "--context", "--take-over"):
        assert word in claim.trouble


async def test_who_takes_over_does_so_once_and_not_again_when_a_person_gives_it_to_another():
    space, note = LeaseSpace(cluster="two"), Note("one")
    space.put(claimed_by(tree=OTHER_TREE))
    claim = an_edge(note, take_over=True)
    await claim.look(space, None)
    assert not claim.held
    await claim.look(space, True)
    assert (claim.held, note.cluster) == (True, "two")
    assert space.held[EDGE_LEASE].notes == ME.notes()
    space.put(claimed_by(tree=OTHER_TREE))
    await claim.look(space, True)
    assert (claim.held, claim.refused, claim.refused_at_start) == (False, True, "")
    assert claim.standing["claim"] == "refused"


async def test_an_edge_that_is_no_destination_any_more_gives_back_its_own_claim_alone():
    space, note = LeaseSpace(), Note()
    claim = an_edge(note)
    await claim.look(space, True)
    await claim.look(space, False)
    assert (space.held, note.cluster, claim.held) == ({}, "", False)
    # Of the same place, and of a folder that is not this one.
    space.put(claimed_by(edge="before"))
    await claim.look(space, False)
    assert EDGE_LEASE in space.held


async def test_a_cluster_that_does_not_answer_is_not_claimed_and_one_that_was_stays_claimed():
    space = LeaseSpace()
    claim = an_edge(Note("one"))
    space.fails = [away()]
    await claim.look(space, True)
    assert (claim.held, claim.reason) == (False, "ServiceUnavailable")
    await claim.look(space, None)
    assert claim.held
    space.fails = [away()]
    await claim.look(space, True)
    assert claim.held


async def test_who_lacks_a_right_is_told_which_and_how_it_is_given():
    space = LeaseSpace()
    space.fails = [forbidden()]
    claim = an_edge()
    await claim.look(space, True)
    for word in ("leases is forbidden", "namespace kube-system", "install --role edge"):
        assert word in claim.trouble
    assert not claim.refused


class Recorded:
    """A space that notes what is asked of it."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        async def note(*_args, **_options):
            self.asked.append(name)

        return note

    async def get(self, key):
        self.asked.append(key)

    async def follow(self, interests, tell):
        self.asked.append("follow")
        await asyncio.Event().wait()


KEY = ObjectKey("", "configmaps", "shop", "settings")


async def test_in_a_cluster_that_is_not_claimed_nothing_is_read_or_written():
    behind, claim, space = Recorded(), an_edge(), LeaseSpace()
    guarded = ClaimedSpace(behind, claim)
    calls = (
        lambda: guarded.get(KEY),
        guarded.list,
        guarded.kinds,
        lambda: guarded.apply({}, "me"),
        lambda: guarded.delete(KEY),
        lambda: guarded.set_status(KEY, {}),
    )
    for call in calls:
        with pytest.raises(SpaceError, match="whose it is"):
            await call()
    with pytest.raises(AnotherSpace):
        await guarded.follow(Interests(()), None)
    assert behind.asked == []
    await claim.look(space, True)
    await guarded.get(KEY)
    assert behind.asked == [KEY]


async def test_who_follows_a_cluster_stops_as_soon_as_another_has_it():
    behind, claim, space = Recorded(), an_edge(), LeaseSpace()
    await claim.look(space, True)
    following = asyncio.create_task(ClaimedSpace(behind, claim).follow(Interests(()), None))
    while not behind.asked:
        await asyncio.sleep(0)
    space.put(claimed_by(tree=OTHER_TREE))
    await claim.look(space, True)
    with pytest.raises(AnotherSpace, match="is already the edge"):
        await following
