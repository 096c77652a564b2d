"""A placement made for files selects what is in them, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.workloads.what import WhatResolver
from leafcast.changes.placements_by_names import (
    SelectsOtherwise,
    is_much,
    placeable,
    placement_of,
    treatments_in,
)
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from tests.unit.test_selection import obj, put, rules

KINDS = [("ConfigMap", "v1"), ("Secret", "v1"), ("Service", "v1"), ("Deployment", "apps/v1")]
UNIVERSE = [
    *(
        obj(kind, name, namespace, version)
        for kind, version in KINDS
        for namespace in ("kube-system", "a", "b")
        for name in ("one", "two", "three")
    ),
    *(obj("ClusterRole", name, "", "rbac.authorization.k8s.io/v1") for name in ("one", "two")),
    *(obj("Namespace", name) for name in ("a", "b")),
]
KEYS = [BUILT_IN_KINDS.key_of(one) for one in UNIVERSE]
TREATMENTS = st.sampled_from([{}, {"createOnly": True}, {"wantSingletonReportedState": True}])


def keys(*names):
    return {ObjectKey("", "configmaps", "a", str(name)) for name in names}


@given(st.sets(st.sampled_from(KEYS), min_size=1), st.data())
def test_just_the_objects_named_are_selected_and_each_is_treated_as_before(named, data):
    treatments = {key: data.draw(TREATMENTS) for key in sorted(named)}
    placement = placement_of("p", named, [{}], treatments)
    resolver = WhatResolver()
    put(resolver, *UNIVERSE)
    resolver.put_placement("p", rules(*placement["spec"]["downsync"]))
    assert set(resolver.selection("p")) == named
    assert treatments_in(placement) == treatments


def test_objects_of_one_name_in_several_namespaces_take_one_clause():
    found = {key for key in KEYS if key.group == "" and key.namespace and key.name == "one"}
    [clause] = placement_of("p", found, [{}])["spec"]["downsync"]
    assert clause == {
        "apiGroup": "",
        "resources": ["configmaps", "secrets", "services"],
        "namespaces": ["a", "b", "kube-system"],
        "objectNames": ["one"],
    }


def test_the_namespaces_go_along_that_objects_need():
    objects = [
        obj("ConfigMap", "one", "a"),
        obj("ConfigMap", "one", "kube-system"),
        obj("Node", "n"),
    ]
    named = placeable({BUILT_IN_KINDS.key_of(one): one for one in objects})
    assert sorted(map(str, named)) == [
        "configmaps/a/one",
        "configmaps/kube-system/one",
        "namespaces/a",
    ]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"downsync": [{"apiGroup": "", "resources": ["configmaps"]}]}, "downsync[0]"),
        ({"downsync": [{"apiGroup": "", "objectNames": ["a"]}]}, "downsync[0]"),
        ({"downsync": [{"resources": ["configmaps"], "objectNames": ["a"]}]}, "downsync[0]"),
        (
            {"downsync": [{"apiGroup": "", "resources": ["pods"], "objectNames": ["*"]}]},
            "downsync[0]",
        ),
        (
            {
                "downsync": [
                    {
                        "apiGroup": "",
                        "resources": ["pods"],
                        "objectNames": ["a"],
                        "labelSelectors": [{"matchLabels": {"a": "b"}}],
                    }
                ]
            },
            "downsync[0]",
        ),
        ({"namespaceSelector": {}}, "namespaceSelector, nonNamespacedObjects"),
    ],
)
def test_a_placement_that_selects_otherwise_than_by_names_is_left_to_whoever_wrote_it(spec, field):
    with pytest.raises(SelectsOtherwise) as caught:
        treatments_in({"spec": spec})
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("leaving", "before", "much"),
    [
        (0, 0, False),
        (0, 5, False),
        (1, 1, True),
        (2, 3, False),
        (10, 11, False),
        (11, 50, True),
        (11, 55, False),
        (12, 55, True),
        (55, 55, True),
    ],
)
def test_more_than_ten_and_a_fifth_or_all_is_much(leaving, before, much):
    assert is_much(keys(*range(leaving)), keys(*range(before))) is much


def test_all_is_much_though_the_namespace_stays():
    namespace = ObjectKey("", "namespaces", "", "a")
    assert is_much(keys(1, 2), {namespace, *keys(1, 2)})
    assert not is_much(keys(1), {namespace, *keys(1, 2)})
    assert is_much({namespace}, {namespace})
