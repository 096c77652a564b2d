"""The what resolver ends where its input ends, in whatever order and by whatever detour it came."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.workloads.selection import Clause, Rules
from controllers.core.workloads.what import WhatResolver
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from("ab"),
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from("12"), min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from("ab"),
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
SELECTORS = st.builds(
    lambda labels, expressions: LabelSelector.from_kubernetes(
        {"matchLabels": labels, "matchExpressions": expressions}
    ),
    LABELS,
    st.lists(EXPRESSIONS, max_size=2),
)
KEYS = st.one_of(
    st.builds(ObjectKey, st.just(""), st.just("namespaces"), st.just(""), st.sampled_from("mn")),
    st.builds(
        ObjectKey,
        st.sampled_from(["", "apps"]),
        st.sampled_from(["configmaps", "deployments"]),
        st.sampled_from("mn"),
        st.sampled_from("xy"),
    ),
)
SOME = st.frozensets(st.sampled_from("mnxy*"), max_size=2)
CLAUSES = st.builds(
    Clause,
    group=st.sampled_from([None, "", "apps"]),
    resources=st.frozensets(st.sampled_from(["configmaps", "namespaces", "*"]), max_size=2),
    namespaces=SOME,
    namespace_selectors=st.lists(SELECTORS, max_size=2).map(tuple),
    names=SOME,
    selectors=st.lists(SELECTORS, max_size=2).map(tuple),
    flags=st.integers(0, 7),
)
RULES = st.builds(Rules, st.lists(CLAUSES, max_size=2).map(tuple), flags=st.sampled_from([0, 2]))
STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.one_of(st.none(), LABELS)),
        st.tuples(st.sampled_from("pq"), st.one_of(st.none(), RULES)),
    ),
    max_size=20,
)


def put(resolver, what, value):
    if isinstance(what, ObjectKey):
        if value is None:
            return resolver.remove(what)
        return resolver.put(what, {"metadata": {"name": what.name, "labels": value}})
    if value is None:
        resolver.remove_placement(what)
    else:
        resolver.put_placement(what, value)
    return {what}


@given(STEPS)
def test_changes_lead_where_a_fresh_start_leads(steps):
    changed, final = WhatResolver(), {}
    for what, value in steps:
        put(changed, what, value)
        final[what] = value
    fresh = WhatResolver()
    for what in sorted(final, key=str, reverse=True):
        put(fresh, what, final[what])
    assert [changed.selection(name) for name in "pq"] == [fresh.selection(name) for name in "pq"]


@given(STEPS)
def test_what_is_selected_is_what_each_object_tested_against_all_rules_says(steps):
    resolver, final = WhatResolver(), {}
    for what, value in steps:
        put(resolver, what, value)
        final[what] = value
    objects = {
        key: labels
        for key, labels in final.items()
        if isinstance(key, ObjectKey) and labels is not None
    }
    for name in "pq":
        rules = final.get(name) or Rules()
        flags = {
            key: rules.flags_of(
                key, labels, objects.get(ObjectKey("", "namespaces", "", key.namespace))
            )
            for key, labels in objects.items()
        }
        assert resolver.selection(name) == {
            key: value for key, value in flags.items() if value is not None
        }


@pytest.mark.parametrize("selects", ["names", "labels"])
def test_placements_that_say_whose_objects_are_meant_are_not_asked_of_others(monkeypatch, selects):
    """Many beside each other in one Namespace, in whatever order they become known."""
    asked = Counter[str]()
    flags_of = Rules.flags_of

    def counted(rules, key, labels, namespace):
        asked[key.name] += 1
        return flags_of(rules, key, labels, namespace)

    monkeypatch.setattr(Rules, "flags_of", counted)
    resolver, count = WhatResolver(), 200
    for number in range(count):
        name = f"c{number}"
        said = {
            "names": {"names": frozenset({name})},
            "labels": {
                "selectors": (LabelSelector.from_kubernetes({"matchLabels": {"app": name}}),)
            },
        }
        key = ObjectKey("", "configmaps", "shop", name)
        rules = Rules(
            (Clause("", frozenset({"configmaps"}), frozenset({"shop"}), **said[selects]),)
        )
        for what, value in [(key, {"app": name}), (f"p{number}", rules)][:: 1 - 2 * (number % 2)]:
            put(resolver, what, value)
        assert resolver.selecting(key) == [f"p{number}"]
    assert asked == Counter({f"c{number}": 1 for number in range(count)})


@given(STEPS)
def test_whose_selection_changed_is_told(steps):
    resolver = WhatResolver()
    for what, value in steps:
        before = {name: resolver.selection(name) for name in "pq"}
        told = put(resolver, what, value)
        differs = {name for name in "pq" if resolver.selection(name) != before[name]}
        assert differs <= set(told)


@given(STEPS)
def test_who_differs_in_create_only_is_told_to_both_sides_alike(steps):
    resolver = WhatResolver()
    for what, value in steps:
        put(resolver, what, value)
    flags = {name: resolver.selection(name) for name in "pq"}
    shared = flags["p"].keys() & flags["q"].keys()
    differ = sorted(key for key in shared if (flags["p"][key] ^ flags["q"][key]) & CREATE_ONLY)
    for one, other in ("pq", "qp"):
        assert resolver.differing(one) == ({other: differ} if differ else {})


@given(STEPS)
def test_what_could_be_selected_is_counted(steps):
    resolver, there = WhatResolver(), {}
    for what, value in steps:
        put(resolver, what, value)
        there[what] = value
    objects = [
        key for key, labels in there.items() if isinstance(key, ObjectKey) and labels is not None
    ]
    assert resolver.selectable == len(objects)
