"""Waves and dependencies as the centre says them: in entries, in deltas, in conditions."""

import pytest

from relay.space_errors import SpaceError
from schemas.api.parsing import parse_kind
from schemas.objects.annotations import DEPENDS_ON
from schemas.objects.order import WAVE, wave_of
from schemas.values.faults import InvalidObject
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    condition,
    config,
    holds,
    lists,
    placement,
    placement_key,
)

pytestmark = pytest.mark.leaps


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


def annotated(obj, **said):
    names = {"wave": WAVE, "after": DEPENDS_ON}
    annotations = {names[name]: value for name, value in said.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def of(name, after=None, selectors=({},)):
    made = placement(name, {"namespaces": [name]}, selectors)
    return annotated(made, after=after) if after is not None else made


async def test_a_wave_stands_in_the_entry_and_one_that_is_none_is_refused(centre):
    await centre.apply(annotated(config("a"), wave="-2"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
        entries = await centre.relay.entries(centre.relay.delta("shop"))
        assert (wave_of(entries["a"].order), wave_of(entries["b"].order)) == (-2, 0)
        with pytest.raises(SpaceError, match='"soon" is not a wave; write an integer in quotes'):
            await centre.apply(annotated(config("b"), wave="soon"))


def deltas(centre, name):
    return [head for head in centre.relay.history if head.source.name == name]


def after_of(relay, name="shop"):
    return relay.body(relay.delta(name)).after


async def test_a_placement_names_what_it_waits_for_at_its_present_generation(centre):
    where = {"matchLabels": {"env": "prod"}}
    await centre.apply(
        config("p", "platform"),
        config("a", "shop"),
        of("shop", after="platform, crds"),
        of("platform", selectors=[where]),
    )
    async with centre.running():
        await centre.relay.until(holds("a"))
        (first,) = after_of(centre.relay)
        assert (first.name, first.generation) == (
            "platform",
            centre.relay.delta("platform").generation,
        )
        assert first.alternatives == centre.relay.delta("platform").alternatives
        missing = await centre.until_status(SHOP, lambda obj: condition(obj, "DependencyMissing"))
        assert "edgeplacement/crds" in condition(missing, "DependencyMissing")["message"]
        # What changes in one place only lets nobody wait anew.
        await centre.apply(config("p2", "platform"))
        await centre.relay.until(holds("p", "p2", of="platform"))
        assert len(deltas(centre, "shop")) == 1
        # Both at once: the new content waits for the new one.
        await centre.apply(config("p3", "platform"), config("a2", "shop"))
        await centre.relay.until(holds("a", "a2"))
        await centre.relay.until(holds("p", "p2", "p3", of="platform"))
        (now,) = after_of(centre.relay)
        assert now.generation == deltas(centre, "platform")[-1].generation
        # Elsewhere meant, or gone: it is said at once.
        await centre.apply(of("platform", selectors=[{}]))
        await centre.relay.until(meant_everywhere)
        await centre.relay.until(lambda relay: lists(relay, key_of("platform", centre)))
        await centre.wds.delete(placement_key("platform"))
        await centre.relay.until(waits_for_nothing)
        # Not as long as a snapshot lists it: were shop deleted, too, it would go first.
        assert not await lists(centre.relay, key_of("platform", centre))


def key_of(name, centre):
    return next(head for head in centre.relay.history if head.source.name == name).source.key


async def meant_everywhere(relay):
    (one,) = after_of(relay)
    return one.alternatives[0].selector.is_everything


async def waits_for_nothing(relay):
    return not after_of(relay)


async def test_in_a_circle_nothing_waits_and_each_says_so(centre):
    await centre.apply(config("a", "shop"), of("shop", after="platform"))
    await centre.apply(config("p", "platform"), of("platform", after="shop"))
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.relay.until(holds("p", of="platform"))
        for name in ("shop", "platform"):
            obj = await centre.until_status(
                placement_key(name), lambda obj: condition(obj, "DependencyCircle")
            )
            said = condition(obj, "DependencyCircle")["message"]
            assert "edgeplacement/platform, edgeplacement/shop wait for each other" in said
            assert after_of(centre.relay, name) == ()
        await centre.wds.apply(of("platform", after=""), USER)
        await centre.until_status(SHOP, lambda obj: not condition(obj, "DependencyCircle"))
        await centre.relay.until(waits_for_platform)


async def waits_for_platform(relay):
    return [each.name for each in after_of(relay)] == ["platform"]


async def test_a_restart_issues_nothing_anew(centre):
    await centre.apply(config("p", "platform"), of("platform"))
    await centre.apply(config("a", "shop"), of("shop", after="platform"))
    async with centre.running():
        await centre.relay.until(holds("a"))
    count = len(centre.relay.history)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(config("a", "shop", value="2"))
        await centre.relay.until(lambda relay: newer(relay, count))
    assert [head.source.name for head in centre.relay.history[count:]] == ["shop"]


async def newer(relay, count):
    return len(relay.history) > count


def test_a_dependency_that_cannot_be_is_refused_with_field_and_remedy():
    for value, said in (
        ("shop", "it names the placement itself"),
        ("platform, Not_A_Name", "name placements of the same kind"),
        (", ".join(f"p{at}" for at in range(17)), "17 placements, at most 16"),
    ):
        for made in (of("shop", after=value), policy(value)):
            with pytest.raises(InvalidObject, match=said) as refused:
                parse_kind(made)
            assert f"metadata.annotations[{DEPENDS_ON}]" in str(refused.value)


def policy(after):
    return annotated(
        {
            "apiVersion": "control.kubestellar.io/v1alpha1",
            "kind": "BindingPolicy",
            "metadata": {"name": "shop"},
            "spec": {"downsync": [{"namespaces": ["shop"]}]},
        },
        after=after,
    )
