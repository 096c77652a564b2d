"""CustomTransforms: what goes out follows from what there is, in whatever order it came."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.translation.clean_objects import CleanObjects
from controllers.core.workloads.transforms import TransformFailed, Transforms, transform
from schemas.content.blobs import OBJECT
from schemas.objects.json_paths import JsonPath
from schemas.objects.objects import ObjectKey

KEY = ObjectKey("", "configmaps", "n", "c")
PATHS = ("$.data.a", "$.data[*]", "$..b", "$.list[?@.a == 1]", "$.list[0]", "$.kind", "$.[")
VALUES = st.recursive(
    st.integers(0, 2),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=8,
)
OBJECTS = st.builds(
    lambda data, listed: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": data,
        "list": listed,
    },
    st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2),
    st.lists(VALUES, max_size=3),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["t1", "t2"]),
        st.one_of(
            st.none(),
            st.tuples(
                st.sampled_from(["configmaps", "secrets"]),
                st.lists(st.sampled_from(PATHS), max_size=2),
            ),
        ),
    ),
    max_size=8,
)


def put(transforms, name, said):
    if said is None:
        return transforms.remove(name)
    resource, remove = said
    return transforms.put(
        name,
        {
            "apiVersion": "control.kubestellar.io/v1alpha1",
            "kind": "CustomTransform",
            "metadata": {"name": name},
            "spec": {"apiGroup": "", "resource": resource, "remove": remove},
        },
    )


def outcome(cleaned, obj):
    """What goes out of an object, or why nothing does."""
    try:
        address = cleaned.reference(KEY, obj).address
        stored = cleaned.blob(KEY, obj, OBJECT)
    except ValueError as refused:
        return str(refused)
    assert stored.reference.address == address
    return address


@given(STEPS, OBJECTS)
def test_a_cached_outcome_is_that_of_a_fresh_start_and_whose_it_changes_is_told(steps, obj):
    transforms, final = Transforms(), {}
    cleaned = CleanObjects(transforms=transforms)
    before = outcome(cleaned, obj)
    for name, said in steps:
        touched = put(transforms, name, said)
        final[name] = said
        after = outcome(cleaned, obj)
        assert after == before or ("", "configmaps") in touched
        before = after
    fresh = Transforms()
    for name in sorted(final, reverse=True):
        put(fresh, name, final[name])
    assert outcome(CleanObjects(transforms=fresh), obj) == before


@given(OBJECTS, st.sampled_from(PATHS[:5]))
def test_what_is_taken_off_is_gone_and_the_object_that_came_in_is_as_it_was(obj, path):
    transforms = Transforms()
    put(transforms, "t1", ("configmaps", [path]))
    kept, changed = copy.deepcopy(obj), copy.deepcopy(obj)
    outcome(CleanObjects(transforms=transforms), obj)
    assert obj == kept
    transform(changed, transforms.of(KEY))
    if path != "$.list[0]":  # Of a list the next one has that place now.
        assert JsonPath(path).places(changed) == []
    removed = len(set(JsonPath(path).places(kept)))
    assert (changed == kept) == (removed == 0)


@given(OBJECTS)
def test_no_kind_goes_out_of_a_transform_that_takes_its_kind_or_cannot_be_read(obj):
    for path in PATHS[5:]:
        transforms = Transforms()
        put(transforms, "t1", ("configmaps", [path]))
        with pytest.raises(TransformFailed, match="customtransform/t1") as failed:
            transform(copy.deepcopy(obj), transforms.of(KEY))
        assert failed.value.remedy
