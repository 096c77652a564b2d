"""Make before break at the centre: what is held, until when, and what is let go."""

from contextlib import asynccontextmanager

import pytest

from controllers.core.inventory import make_before_break
from controllers.core.inventory.make_before_break import HealthBaseline, holds_in
from schemas.api.parsing import parse_kind
from schemas.objects.annotations import MOVE, MOVE_DEADLINE
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Summary
from schemas.values.faults import InvalidObject
from tests.unit.centre_world import (
    USER,
    Centre,
    condition,
    config,
    holds,
    location,
    placement,
    target,
)

pytestmark = pytest.mark.leaps

GREEN = {"matchLabels": {"carbon": "low"}}


@pytest.fixture
def centre(tmp_path, monkeypatch):
    monkeypatch.setattr(make_before_break, "GATHER_SECONDS", 0.1)
    monkeypatch.setattr("controllers.inventory.moves.GATHER_SECONDS", 0.1)
    return Centre(tmp_path / "keys")


def moving(deadline=None, **metadata):
    made = placement(selectors=[GREEN])
    said = {MOVE: "make-before-break"} | ({MOVE_DEADLINE: deadline} if deadline else {})
    return {**made, "metadata": {**made["metadata"], "annotations": said, **metadata}}


def record(relay, name):
    found = (item for item in relay.held().values() if item.source.name == name)
    return next(found, None)


def held(relay, name):
    found = record(relay, name)
    return bool(found is not None and holds_in(found))


def labelled(relay, name, carbon):
    found = record(relay, name)
    return found is not None and found.labels.get("carbon") == carbon


async def report(centre, healthy, unwell=0, *, exact=True):
    counted = {"healthy": healthy, "progressing": unwell}
    summary = Summary({"synced": healthy + unwell}, {k: n for k, n in counted.items() if n}, {})
    await centre.relay.report(centre.relay.delta("shop").source.key, summary, exact=exact)


async def begin(centre, deadline=None):
    await centre.inventory.apply(location("east", carbon="low"), USER)
    await centre.inventory.apply(location("west", carbon="high"), USER)
    await centre.apply(config("a"), moving(deadline))


async def until_said(centre, name="east", carbon="high"):
    await centre.inventory.apply(location(name, carbon=carbon), USER)
    await centre.relay.until(lambda relay: labelled(relay, name, carbon))


async def test_who_loses_it_keeps_it_until_all_are_healthy(centre):
    await begin(centre)
    async with centre.running():
        await centre.relay.until(holds("a"))
        await report(centre, 1)
        await until_said(centre)
        assert held(centre.relay, "east")
        await until_said(centre, "west", "low")
        assert not held(centre.relay, "west")
        await report(centre, 1, unwell=1)
        await report(centre, 2, exact=False)
        count = len(centre.relay.history)
        await centre.clock.sleep(0.3)
        assert held(centre.relay, "east")
        await report(centre, 2)
        await centre.relay.until(lambda relay: not held(relay, "east"))
    # The placement was said once, and of each Location one record for each step.
    names = [item.source.name for item in centre.relay.history]
    assert names.count("shop") == 1
    assert len(centre.relay.history) == count + 1


async def test_the_deadline_ends_it_also_over_a_restart(centre):
    await begin(centre, "2s")
    async with centre.running():
        await centre.relay.until(holds("a"))
        await report(centre, 1)
        await until_said(centre)
        await report(centre, 1, unwell=1)
        assert held(centre.relay, "east")
    count = len(centre.relay.history)
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert held(centre.relay, "east")
        assert len(centre.relay.history) == count
        await centre.relay.until(lambda relay: not held(relay, "east"))


async def test_back_again_nothing_is_held(centre):
    await begin(centre)
    async with centre.running():
        await centre.relay.until(holds("a"))
        await until_said(centre)
        assert held(centre.relay, "east")
        await until_said(centre, "east", "low")
        assert not held(centre.relay, "east")


async def test_a_placement_that_is_gone_or_just_moves_holds_nothing(centre):
    await begin(centre)
    async with centre.running():
        await centre.relay.until(holds("a"))
        await until_said(centre)
        assert held(centre.relay, "east")
        await centre.apply(placement(selectors=[GREEN]))
        await centre.relay.until(lambda relay: not held(relay, "east"))
        await until_said(centre, "east", "low")
        await until_said(centre, "east", "high")
        assert not held(centre.relay, "east")


@asynccontextmanager
async def taken_by(centre, selects):
    """A running centre whose Location `east` takes SyncTarget `t`, which has what moves."""
    await centre.inventory.apply(location("east", selects, carbon="low"), USER)
    await centre.inventory.apply(target("t", "/r/e", site="a"), USER)
    await centre.apply(config("a"), moving())
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.relay.until(lambda relay: record(relay, "t"))
        await report(centre, 1)
        yield


async def test_a_sync_target_that_leaves_its_location_keeps_it_too(centre):
    async with taken_by(centre, {"matchLabels": {"site": "a"}}):
        await centre.inventory.apply(target("t", "/r/e", site="b"), USER)
        await centre.relay.until(lambda relay: held(relay, "t"))


async def test_a_sync_target_that_leaves_a_location_that_keeps_it_keeps_it_too(centre):
    selects = {"matchLabels": {"site": "a"}}
    async with taken_by(centre, selects):
        await centre.inventory.apply(location("east", selects, carbon="high"), USER)
        await centre.relay.until(lambda relay: held(relay, "east"))
        assert not held(centre.relay, "t")
        await centre.inventory.apply(target("t", "/r/e", site="b"), USER)
        await centre.relay.until(lambda relay: record(relay, "t").labels["site"] == "b")
        assert held(centre.relay, "t")


def test_what_lasts_is_taken_for_usual():
    usual = HealthBaseline(3, 100.0, healthy=7)
    assert usual.seen(2, 8, 101.0, 60.0) == HealthBaseline(2, 101.0, healthy=8)
    assert usual.seen(5, 5, 159.0, 60.0) == HealthBaseline(3, 100.0, healthy=5)
    assert usual.seen(5, 5, 160.0, 60.0) == HealthBaseline(5, 160.0, healthy=5)


async def test_one_that_was_unwell_and_leaves_makes_no_room_for_another_that_is(centre):
    def site(name, carbon):
        return location(name, {"matchLabels": {"site": name}}, carbon=carbon)

    for name, carbon in (("east", "low"), ("mid", "low"), ("west", "high")):
        await centre.inventory.apply(site(name, carbon), USER)
        await centre.inventory.apply(target(f"{name}-1", f"/r/{name}", site=name), USER)
    await centre.apply(config("a"), moving())
    async with centre.running():
        await centre.relay.until(holds("a"))
        # East is healthy, mid is not; it moves from east to west, and mid is removed.
        await report(centre, 1, unwell=1)
        await centre.clock.sleep(0.2)
        await report(centre, 1, unwell=1, exact=False)
        for name, carbon in (("east", "high"), ("west", "low")):
            await centre.inventory.apply(site(name, carbon), USER)
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "mid-1"))
        await centre.relay.until(lambda relay: labelled(relay, "west", "low"))
        await report(centre, 1, unwell=1)
        await centre.clock.sleep(0.5)
        assert held(centre.relay, "east")
        await report(centre, 2)
        await centre.relay.until(lambda relay: not held(relay, "east"))


def test_a_move_that_cannot_be_is_refused_with_field_and_remedy():
    for annotations, field, said in (
        ({MOVE: "jump"}, MOVE, "write make-before-break"),
        ({MOVE_DEADLINE: "soon"}, MOVE_DEADLINE, "write it as in 90s"),
        ({MOVE_DEADLINE: "1000h"}, MOVE_DEADLINE, "too long"),
    ):
        bad = moving()
        bad["metadata"]["annotations"] = annotations
        with pytest.raises(InvalidObject, match=said) as refused:
            parse_kind(bad)
        assert f"metadata.annotations[{field}]" in str(refused.value)


KEY = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")


async def test_that_it_moves_is_said(centre):
    await begin(centre)
    async with centre.running():
        await centre.relay.until(holds("a"))
        await report(centre, 1)
        await until_said(centre)
        await report(centre, 1, unwell=1)
        obj = await centre.until_status(KEY, lambda obj: condition(obj, "Moving"))
        assert (
            "that loses it keeps it until all who gain it are healthy"
            in condition(obj, "Moving")["message"]
        )
        await report(centre, 2)
        await centre.until_status(KEY, lambda obj: not condition(obj, "Moving"))
