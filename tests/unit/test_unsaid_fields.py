"""Fields that nobody said: how they travel, and when they stay out."""

import copy

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.objects.field_owners import owned_fields, unowned
from relay.objects.unsaid_fields import fields_of, numbers_of, without_unknown
from schemas.content.blobs import open_stored
from schemas.content.manifest import UNSAID_MAX, ManifestEntry, build_manifest, read_manifest
from schemas.content.sealing import SealingKey
from schemas.values.identity import TreeId
from schemas.values.wire import astuple, replace

GADGET = {
    "apiVersion": "example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "g"},
    "spec": {
        "size": 1,
        "mode": "fast",
        "a.b/c": {"d": 1},
        "parts": [{"name": "x", "y": 1}, {"name": "z ] y", "y": {"deep": 1}}],
        "plain": [{"n": 1}, {"n": 2}],
        "set": ["one", "two"],
    },
}
REFUSED = {
    ".spec.mode": ("spec", "mode"),
    ".spec.a.b/c": ("spec", "a.b/c"),
    ".spec.a.b/c.d": ("spec", "a.b/c", "d"),
    '.spec.parts[name="x"].y': ("spec", "parts", 0, "y"),
    '.spec.parts[name="z ] y"].y.deep': ("spec", "parts", 1, "y", "deep"),
    '.spec.parts[name="x",protocol="TCP"].y': ("spec", "parts", 0, "y"),
    ".spec.plain[1].n": ("spec", "plain", 1, "n"),
    '.spec.set[="two"]': ("spec", "set", 1),
}


def refusal(*paths):
    said = " ".join(f"{path}: field not declared in schema" for path in paths)
    return f"failed to create typed patch object (default/g; example.com/v1, Kind=Gadget): {said}"


def at(obj, steps):
    for step in steps:
        obj = obj[step]
    return obj


@pytest.mark.parametrize("path", REFUSED)
def test_what_nobody_said_stays_out_where_it_is_unknown(path):
    steps, before = REFUSED[path], copy.deepcopy(GADGET)
    lesser = without_unknown(GADGET, {steps}, refusal(path))
    expected = copy.deepcopy(GADGET)
    del at(expected, steps[:-1])[steps[-1]]
    assert lesser == expected
    assert without_unknown(GADGET, set(), refusal(path)) is None
    assert before == GADGET


def test_of_several_those_go_that_nobody_said():
    message = refusal(".spec.plain[0].n", ".spec.plain[1]", ".spec.mode", ".spec.size")
    unsaid = {("spec", "plain", 1), ("spec", "plain", 0), ("spec", "mode")}
    lesser = without_unknown(GADGET, unsaid, f"errors: {message}")
    assert lesser["spec"]["plain"] == [{}]
    assert "mode" not in lesser["spec"]
    assert lesser["spec"]["size"] == 1


@pytest.mark.parametrize(
    "message",
    [
        "",
        ".spec.nothing: field not declared in schema",
        ".spec.parts[name=: field not declared in schema",
        '.spec.parts[name="none"].y: field not declared in schema',
        ".spec.plain[7].n: field not declared in schema",
        ".spec.mode: Invalid value",
        ".spec.size.x: field not declared in schema",
    ],
)
def test_what_leads_nowhere_takes_nothing_off(message):
    assert without_unknown(GADGET, {("spec",)}, message) is None


def test_at_most_so_many_travel_and_never_what_makes_an_object_one():
    many = {"kind": "X", "metadata": {"name": "x"}, "status": {}, "spec": {"n": [1] * 900}}
    unsaid = {("spec", "n", at) for at in range(900)} | {("metadata", "name"), ("status",)}
    numbers = numbers_of(many, unsaid)
    assert len(numbers) == UNSAID_MAX
    assert ("metadata", "name") not in fields_of(many, numbers)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=2), VALUES, max_size=3), st.data())
def test_fields_come_back_by_their_numbers_whatever_the_order(spec, data):
    obj = {"spec": spec}
    everything = sorted(fields_of(obj, range(1000)), key=str)
    chosen = data.draw(st.sets(st.sampled_from(everything))) if everything else set()
    other = {"spec": dict(reversed(spec.items()))}
    assert fields_of(other, numbers_of(obj, chosen)) == chosen


def test_unowned_are_the_parts_of_which_no_manager_owns_anything():
    owned = {
        "f:spec": {
            "f:size": {},
            "f:parts": {'k:{"name":"x"}': {".": {}, "f:name": {}}},
            "f:plain": {},
            "f:set": {'v:"one"': {}},
        }
    }
    entry = {"manager": "m", "operation": "Apply", "fieldsV1": owned}
    obj = {**GADGET, "metadata": {"managedFields": [entry]}}
    assert set(unowned(owned_fields(obj)["f:spec"], GADGET["spec"], ("spec",))) == {
        ("spec", "mode"),
        ("spec", "a.b/c"),
        ("spec", "parts", 0, "y"),
        ("spec", "parts", 1),
        ("spec", "set", 1),
    }


@pytest.mark.parametrize(
    "key", [None, SealingKey(TreeId("t" * 26), b"k" * 32)], ids=["clear", "sealed"]
)
def test_they_travel_with_the_entry_and_what_has_none_is_listed_as_before(key):
    mark = "0" * 12 if key is not None else ""
    said = ManifestEntry("", "services", "shop", "a", "0" * 64, 1, "wds", 3, mark=mark)
    told = replace(said, name="b", unsaid=(0, 7, 300))

    def listed(*entries):
        first, *chunks = build_manifest(entries, key=key)
        plain = {it.reference.address: open_stored(it) for it in chunks}
        keys = [key] if key is not None else []
        return read_manifest(open_stored(first), plain, keys).entries

    assert set(listed(said, told)) == {said, told}
    if key is None:
        (chunk,) = build_manifest([said])[1:]
        assert msgpack.unpackb(open_stored(chunk))[1] == [list(astuple(said))[:-3]]
    with pytest.raises(ValueError, match="513 unsaid fields, at most 512"):
        replace(told, unsaid=tuple(range(UNSAID_MAX + 1)))
