"""Nulls of custom resources: kept as written at the centre, left out where a server keeps them."""

import pytest

from leafcast.show.rendering import rendering_lines
from relay.adapters.clock import SystemClock, SystemDice
from relay.objects.nulls import field_text, null_fields, refused_nulls, without_fields
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.doubles.memory_space import MemorySpace
from tests.unit.test_serving import DEFINITION, SERVING, kept, widget

KEY = ObjectKey("example.com", "widgets", "default", "w")
SAID = {
    "size": 1,
    "mode": None,
    "name": None,
    "labels": {"a": None, "b": "c"},
    "parts": [{"x": 1}],
    "any": {"x": None},
}


def space_with(*, as_written):
    return MemorySpace(SystemClock(), SystemDice(), as_written=as_written)


async def test_a_space_of_a_cluster_prunes_nulls_and_the_centres_keeps_them():
    edge, centre = space_with(as_written=False), space_with(as_written=True)
    for space in (edge, centre):
        await space.apply(DEFINITION, "me")
        for _ in range(2):
            made = await space.apply(widget(**SAID), "me")
        assert made["metadata"]["generation"] == 1
    pruned = {"size": 1, "mode": "on", "labels": {"b": "c"}, "parts": [{}], "any": {}}
    assert (await edge.get(KEY))["spec"] == pruned
    there = (await centre.get(KEY))["spec"]
    assert there == {**pruned, "name": None, "labels": {"a": None, "b": "c"}, "any": {"x": None}}
    named = [field_text(steps) for steps in SERVING.not_nullable(await centre.get(KEY))]
    assert named == ["spec.labels.a", "spec.name"]


async def test_a_null_that_is_said_no_more_is_gone_and_others_nulls_refuse_nothing():
    centre = space_with(as_written=True)
    await centre.apply(DEFINITION, "me")
    await centre.apply(widget(**SAID), "me")
    await centre.apply({**widget(), "metadata": {"name": "w", "labels": {"a": "b"}}}, "other")
    made = await centre.apply(widget(size=1, name=None), "me")
    assert made["spec"] == {"size": 1, "mode": "on", "name": None}
    assert (await centre.apply(widget(size=1), "me"))["spec"] == {"size": 1, "mode": "on"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"size": None}, "spec.size: Required value"),
        ({"size": 1, "parts": [None]}, "spec.parts[0] in body must be of type object"),
    ],
)
def test_a_null_is_none_where_a_value_is_required_and_no_item(spec, said):
    with pytest.raises(SpaceError) as refused:
        kept(**spec)
    assert said in str(refused.value.message)


def test_of_a_refusal_just_the_nulls_that_it_names_are_left_out():
    wish = widget(a=None, b={"c d": None, "e": None}, f=[{"g": None}], h={}, i=None)
    words = [
        f': spec.{path} in body must be of type object: "null"'
        for path in ("a", "b.c d", "f[0].g", "h", "f[1].g")
    ]
    refused = refused_nulls(wish, "".join(words))
    assert sorted(map(field_text, refused)) == ["spec.a", "spec.b.c d", "spec.f[0].g", "spec.h"]
    assert without_fields(wish, refused)["spec"] == {"b": {"e": None}, "f": [{}], "i": None}
    assert refused_nulls(wish, "spec.a: Required value") == frozenset()
    assert len(list(null_fields(wish))) == 5


def test_what_is_left_out_is_named():
    form = {"changes": [], "taken_off": {}, "nulls": ["spec.csi.cephfs"], "unsaid": []}
    assert list(rendering_lines(form))[1:] == [
        "left out there, as it is null and its definition does not let it be:",
        "  spec.csi.cephfs",
    ]
