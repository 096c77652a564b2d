"""What relays and the centre do for one change: no more than one answer needs."""

from collections import Counter

from controllers.workloads.placement_translator import PlacementTranslator
from schemas.records.placements import placement_key
from schemas.values.identity import NodePath
from tests.awaiting import until_object
from tests.doubles.memory.bus import MemoryBus
from tests.memory_tree import LeapingClock, config_map, memory_tree, placement

REGION, SITES = NodePath.parse("/emea"), ("/emea/s1", "/emea/s2")
EDGE = NodePath.parse("/s-001")


class StillClock(LeapingClock):
    """Once it is stopped it shows what a test sets it to."""

    stopped_at = None

    def now(self):
        now = super().now()
        return now if self.stopped_at is None else now._replace(seconds=self.stopped_at)


async def test_a_relay_reports_a_change_once_as_soon_as_all_have_answered(tmp_path, monkeypatch):
    said = Counter()
    send_report = MemoryBus.send_report

    async def counting(bus, reports):
        said[bus.path] += 1
        return await send_report(bus, reports)

    def still(tree):
        tree.clock = StillClock()

    async with memory_tree(tmp_path, [str(REGION), *SITES], prepare=still) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        former = await tree.until("shop", lambda count: count.exact and is_synced(count))
        # No window ends by itself any more.
        tree.clock.stopped_at = tree.clock.now().seconds + 3
        monkeypatch.setattr(MemoryBus, "send_report", counting)
        await tree.apply(config_map("one", "shop", text="second"))
        await tree.until(
            "shop",
            lambda count: (
                count.exact and is_synced(count) and count.summary.arms != former.summary.arms
            ),
        )
    assert said == {REGION: 1} | {NodePath.parse(site): 1 for site in SITES}


def is_synced(count):
    return count.summary.states == {"synced": len(SITES)}


async def test_a_status_that_is_written_has_nothing_translated_and_a_foreign_one_is_put_right(
    tmp_path, monkeypatch
):
    translated = Counter()
    reconcile = PlacementTranslator.reconcile

    async def counting(translator, names):
        translated.update(names)
        return await reconcile(translator, names)

    async with memory_tree(tmp_path, [str(EDGE)]) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        key = placement_key("shop")
        await until_object(tree.workloads, key, says_synced)
        monkeypatch.setattr(PlacementTranslator, "reconcile", counting)
        await tree.workloads.set_status(key, {"synced": 7})
        await until_object(tree.workloads, key, says_synced)
    assert translated == {}


def says_synced(obj):
    return obj.get("status", {}).get("synced") == 1
