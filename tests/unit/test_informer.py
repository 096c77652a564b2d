"""A centre's informer: who the space is is asked before anything is taken for gone."""

import pytest

from controllers.spaces.informer import SpaceInformer
from relay.adapters.clock import SystemClock
from relay.space_errors import AnotherSpace
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, Synced
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import number_of
from tests.memory_tree import config_map

KINDS = tuple(Interest("", f"things-{number}") for number in range(45))
KEY = ObjectKey("", "configmaps", "shop", "one")


class Told:
    """A space that tells what it is given to tell, and counts who asks who it is."""

    def __init__(self, *events) -> None:
        self.events = events
        self.names = iter(())
        self.asked = 0

    async def identity(self):
        self.asked += 1
        return next(self.names, "one")

    async def revision(self):
        return "1"

    async def follow(self, interests, tell):
        for event in self.events:
            await tell(event)


class Taken:
    """A reconciler that keeps what it was told."""

    def __init__(self) -> None:
        self.deleted = []
        self.lists = []

    async def ready(self, first):
        return True

    def listed(self, objects, kind):
        self.lists.append(kind)

    def changed(self, change):
        self.deleted.append(change.key)

    def synced(self):
        pass

    def read_to(self, revision):
        pass


def informer(space):
    taken = Taken()
    return SpaceInformer(space, "one", Interests(KINDS), taken, SystemClock()), taken


async def test_a_list_of_many_kinds_asks_once_who_the_space_is():
    lists = [ObjectsListed(kind, {}, "1") for kind in KINDS]
    space = Told(*lists, Synced(frozenset(KINDS)))
    following, _ = informer(space)
    await following.run()
    assert following.synced
    assert space.asked == 1


@pytest.mark.parametrize("how", ["change", "list"])
async def test_that_something_is_gone_is_not_believed_of_another_space(how):
    deleted = ObjectChange("deleted", KEY, config_map("one", "shop"), "2")
    told = deleted if how == "change" else ObjectsListed(KINDS[0], {}, "2")
    space = Told(Synced(frozenset(KINDS)), told)
    space.names = iter(["one", "another"])
    following, taken = informer(space)
    with pytest.raises(AnotherSpace):
        await following.run()
    assert taken.deleted == []
    assert taken.lists == [None]


@pytest.mark.parametrize(
    ("revision", "number"), [("12", 12), ("12.3", 12), ("", 0), ("x", 0), ("²", 0)]
)
def test_revisions_compare_by_the_number_before_the_dot(revision, number):
    assert number_of(revision) == number
