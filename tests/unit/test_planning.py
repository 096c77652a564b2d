"""A plan of a running centre: what it reads, whom else it knows of, and that it writes nothing."""

import pytest

from controllers.core.rollout.rollouts import rollout_key
from controllers.planning import make_plan, weigh_change
from schemas.objects.annotations import ON_REMOVAL
from tests.awaiting import eventually
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    config,
    config_key,
    deployment,
    location,
    placement,
    target,
)
from tests.unit.test_centre_decisions import keyed
from tests.unit.test_several_spaces import WideCentre


async def inventory(centre):
    await apply_in_namespaces(centre.inventory, [target("s1", "/e/s1"), location("l1")], USER)


def rows(plan, resource="configmaps"):
    return {
        row.key.name: (row.action, row.fields)
        for row in plan.rows()
        if row.key.resource == resource
    }


@pytest.fixture
async def centre(tmp_path):
    centre = Centre(tmp_path)
    await inventory(centre)
    return centre


async def test_what_differs_is_read_from_what_was_sent(centre):
    async with centre.running() as controllers:
        await centre.apply(placement(), config("a"), config("b"))
        await controllers.caught_up()
        issued = len(centre.relay.history)
        changes = {config_key("a"): config("a", value="2"), config_key("b"): None}
        trial, plan = await make_plan(controllers, changes, {}, [])
        assert rows(plan) == {"a": ("update", ("data.key",)), "b": ("delete", ())}
        assert dict(trial.placements) == {"edgeplacement/shop": "update"}
        assert len(centre.relay.history) == issued


async def test_a_kind_that_nobody_selected_so_far_is_read_for_a_plan(centre):
    async with centre.running() as controllers:
        await centre.apply(deployment("web"))
        await controllers.caught_up()
        assert not controllers.translator.workloads.resolver.of_kind(("apps", "deployments"))
        changes = {SHOP: placement()}
        _, plan = await make_plan(controllers, changes, {}, [])
        assert rows(plan, "deployments") == {"web": ("create", ())}


async def test_what_another_space_has_delivered_counts(tmp_path):
    centre = WideCentre(tmp_path)
    await inventory(centre)
    async with centre.running() as controllers:
        other = config("a", value="other")
        await apply_in_namespaces(centre.other_wds, [placement("shop"), other], USER)

        async def there():
            return len(await centre.issued()) == 1

        await eventually(there)
        await controllers.caught_up()
        changes = {SHOP: placement(), config_key("a"): config("a", value="mine")}
        _, plan = await make_plan(controllers, changes, {}, [])
        # Of two spaces' placements the first by key has the object.
        ours = controllers.translator.source("shop").key
        theirs = controllers.workload_spaces[1].translator.source("shop").key
        expected = {"a": ("update", ("data.key",))} if ours < theirs else {}
        assert rows(plan) == expected


async def test_a_plan_tells_what_all_come_to_and_by_which_waves(centre):
    async with centre.running() as controllers:
        await centre.apply(placement(), config("a"))
        await controllers.caught_up()
        waves = [{"name": "one", "selector": {"matchLabels": {"no": "one"}}}]
        waves.append({"name": "rest", "percent": 100})
        changes = {
            rollout_key("shop"): {
                "apiVersion": "leafcast.io/v1alpha1",
                "kind": "Rollout",
                "metadata": {"name": "shop"},
                "spec": {"placement": {"name": "shop"}, "waves": waves},
            },
            config_key("a"): config("a", value="2"),
        }
        trial, plan = await make_plan(controllers, changes, {}, [])
        assert rows(plan) == {"a": ("update", ("data.key",))}
        assert dict(trial.waves) == {"edgeplacement/shop": (("one", 0), ("rest", 1))}


def saying(obj, word):
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ON_REMOVAL: word}}}


async def test_what_stays_is_planned_as_kept_with_the_namespace_around_it(centre):
    async with centre.running() as controllers:
        kept, gone = saying(config("a"), "keep"), config("b")
        await centre.apply(placement(), kept, gone, saying(config("c"), "orphan"))
        await controllers.caught_up()
        changes = {SHOP: None}
        _, plan = await make_plan(controllers, changes, {}, [])
        assert rows(plan) == {"a": ("keep", ()), "b": ("delete", ()), "c": ("orphan", ())}
        assert {action for action, _ in rows(plan, "namespaces").values()} == {"keep"}
        why = {row.key.name: row.why for row in plan.rows() if row.key.resource == "configmaps"}
        assert why["a"].endswith(f"is deleted; {ON_REMOVAL}: keep")
        [loss] = (await weigh_change(controllers, changes, {})).values()
        assert (loss.copies, loss.kept) == (3, 2)


async def test_a_placements_word_holds_for_what_says_nothing_itself(centre):
    async with centre.running() as controllers:
        await centre.apply(placement(), config("a"), saying(config("b"), "delete"))
        await controllers.caught_up()
        _, plan = await make_plan(controllers, {SHOP: saying(placement(), "keep")}, {}, [])
        assert rows(plan) == {"a": ("update", (f"metadata.annotations[{ON_REMOVAL}]",))}
        await centre.apply(saying(placement(), "keep"))
        await controllers.caught_up()
        _, plan = await make_plan(controllers, {SHOP: None}, {}, [])
        assert rows(plan) == {"a": ("keep", ()), "b": ("delete", ())}


async def test_a_move_by_labels_is_no_loss_and_one_by_a_selector_is(centre):
    first, second = ({"matchLabels": {"n": n}} for n in ("1", "2"))
    places = [location("l1", first, at="here"), location("l2", second, at="there")]
    targets = [target("s1", "/e/s1", n="1"), target("s2", "/e/s2", n="2")]
    await apply_in_namespaces(centre.inventory, [*places, *targets], USER)
    moving = placement(selectors=({"matchLabels": {"at": "here"}},))
    moving["metadata"]["annotations"] = {"leafcast.io/move": "make-before-break"}
    async with centre.running() as controllers:
        await centre.apply(moving, *(config(f"c{n}") for n in range(20)))
        await controllers.caught_up()
        swapped = [location("l1", first, at="there"), location("l2", second, at="here")]
        assert not await weigh_change(controllers, {}, keyed(*swapped))
        narrowed = keyed(location("l1", second, at="here"))
        [loss] = (await weigh_change(controllers, {}, narrowed)).values()
        assert loss.is_large
        spec = {**moving["spec"], "locationSelectors": [{"matchLabels": {"at": "there"}}]}
        [loss] = (await weigh_change(controllers, {SHOP: {**moving, "spec": spec}}, {})).values()
        assert (loss.copies, loss.is_large) == (20, True)


async def test_nothing_becomes_of_a_place_while_a_person_works_there(centre):
    busy = target("s2", "/e/s2")
    busy["metadata"]["annotations"]["leafcast.io/maintenance"] = "2999-01-01T00:00:00Z"
    await apply_in_namespaces(centre.inventory, [busy], USER)
    async with centre.running() as controllers:
        await centre.apply(placement(), config("a"), config("b"))
        await controllers.caught_up()
        changes = {config_key("a"): config("a", value="2"), config_key("b"): None}
        _, plan = await make_plan(controllers, changes, {}, [])
        found = {(str(row.path), row.key.name): (row.action, row.why) for row in plan.rows()}
        assert found["/e/s1", "a"][0] == "update"
        assert found["/e/s1", "b"][0] == "delete"
        why = "Maintenance: until 2999-01-01T00:00:00Z; leafcast maintenance list"
        assert found["/e/s2", "a"] == found["/e/s2", "b"] == ("held", why)
