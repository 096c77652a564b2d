"""A centre with several spaces: each says its placements, and one that is away stops no other."""

import pytest

from controllers.centre import Controllers
from relay.space_errors import SpaceError
from relay.space_port import Interest, ObjectsListed, Unserved
from schemas.records.placements import result_key
from schemas.records.records import DeltaHead
from tests.awaiting import eventually
from tests.doubles.memory_space import MemorySpace
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_world import SHOP, USER, Centre, config, location, placement, target

pytestmark = pytest.mark.leaps


class Away(MemorySpace):
    """A space that nobody reaches until it is `back`."""

    back = False

    async def identity(self):
        if not self.back:
            raise SpaceError("ServiceUnavailable", "the connection was refused")
        return await super().identity()


class Told(MemorySpace):
    """A space of which a test says in its place what is told."""

    async def follow(self, interests, tell):
        self.tell = tell
        await super().follow(interests, tell)


class WideCentre(Centre):
    """A centre of two workload description spaces and two inventory spaces."""

    def __init__(self, folder, second=MemorySpace):
        super().__init__(folder)
        self.other_wds = second(self.clock, self.dice)
        self.other_inventory = MemorySpace(self.clock, self.dice)

    async def controllers(self):
        workloads = [self.wds, self.other_wds]
        inventories = [self.inventory, self.other_inventory]
        return await Controllers.open(
            self.relay, workloads, inventories, self.clock, self.dice, self.folder
        )

    async def fill(self):
        await self.apply(placement("shop"), config("a"))
        await apply_in_namespaces(self.other_wds, [placement("shop"), config("b")], USER)

    async def issued(self):
        """The placements in force, by the space that says each, with the names of their objects."""
        heads = self.relay.held().values()
        return {
            head.source.space: set(await self.relay.entries(head))
            for head in heads
            if isinstance(head, DeltaHead)
        }


async def test_placements_of_one_name_in_two_spaces_are_two(tmp_path):
    centre = WideCentre(tmp_path)
    one, other = await centre.wds.identity(), await centre.other_wds.identity()
    async with centre.running() as controllers:
        await centre.fill()

        async def both():
            return await centre.issued() == {one: {"a"}, other: {"b"}}

        await eventually(both)
        assert not controllers.lost_spaces()


async def test_a_space_that_is_away_keeps_no_other_from_its_work(tmp_path):
    centre = WideCentre(tmp_path, Away)
    async with centre.running() as controllers:
        await centre.fill()
        one = await centre.wds.identity()

        async def first():
            return await centre.issued() == {one: {"a"}}

        await eventually(first)
        assert controllers.unready()["workloads"]
        centre.other_wds.back = True
        await eventually(lambda: not controllers.unready()["workloads"])
        other = await centre.other_wds.identity()

        async def both():
            return await centre.issued() == {one: {"a"}, other: {"b"}}

        await eventually(both)


async def test_a_placement_goes_to_locations_of_every_inventory_space(tmp_path):
    centre = WideCentre(tmp_path)
    spaces = (centre.inventory, centre.other_inventory)
    for at, space in enumerate(spaces):
        await space.apply(target(f"store-{at}", f"/store-{at}", id=f"store-{at}"), USER)
        await space.apply(location(f"store-{at}", {"matchLabels": {"id": f"store-{at}"}}), USER)
    async with centre.running() as controllers:
        await centre.fill()
        assert not controllers.lost_spaces()
        for space in (centre.wds, centre.other_wds):
            await centre.until_status(SHOP, counts_both, space)
            await centre.until_status(result_key("shop"), lists_both, space)


def counts_both(obj):
    return obj.get("status", {}).get("matchingLocationCount") == 2


def lists_both(obj):
    return {pair["locationName"] for pair in obj["destinations"]} == {"store-0", "store-1"}


async def test_a_space_that_is_away_at_the_start_is_not_called_lost(tmp_path):
    centre = WideCentre(tmp_path, Away)
    centre.other_wds.back = True
    async with centre.running():
        await centre.fill()

        async def both():
            return len(await centre.issued()) == 2

        await eventually(both)
    centre.other_wds.back = False
    async with centre.running() as controllers:
        await eventually(lambda: controllers.translator.placements.known)
        assert not controllers.lost_spaces()
        centre.other_wds.back = True
        await eventually(lambda: not any(controllers.unready().values()))
        assert not controllers.lost_spaces()


async def test_a_centre_is_ready_while_placements_and_destinations_of_all_spaces_can_be_told(
    tmp_path,
):
    centre = WideCentre(tmp_path, second=Told)
    async with centre.running() as controllers:
        await eventually(lambda: not any(controllers.unready().values()), controllers.unready)
        group = "edge.kubestellar.io"
        placements, others = Interest(group, "edgeplacements"), Interest("", "configmaps")
        for interest in (others, placements):
            await centre.other_wds.tell(Unserved(interest, "ServiceUnavailable", "it is down"))
        assert controllers.unready() == {
            "workloads": "ServiceUnavailable: it is down",
            "inventory": "",
        }
        await centre.other_wds.tell(ObjectsListed(placements, {}))
        assert not any(controllers.unready().values())
