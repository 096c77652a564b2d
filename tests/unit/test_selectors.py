"""Label selectors match as in Kubernetes, and bad ones are refused with the field's path."""

import pytest

from schemas.objects.selectors import LabelSelector, Requirement
from schemas.values.refusals import BadSelector, RecordRefused

EVERYTHING = LabelSelector()


def selector(**form):
    return LabelSelector.from_kubernetes(form)


def expression(operator, *values, key="tier"):
    listed = {"values": list(values)} if values else {}
    return selector(matchExpressions=[{"key": key, "operator": operator, **listed}])


@pytest.mark.parametrize(
    ("operator", "values", "labels", "expected"),
    [
        ("In", ["web", "db"], {"tier": "web"}, True),
        ("In", ["web", "db"], {"tier": "cache"}, False),
        ("In", ["web"], {}, False),
        ("In", [""], {"tier": ""}, True),
        ("In", [""], {}, False),
        ("NotIn", ["web"], {"tier": "db"}, True),
        ("NotIn", ["web"], {"tier": "web"}, False),
        ("NotIn", ["web"], {}, True),
        ("NotIn", [""], {}, True),
        ("Exists", [], {"tier": ""}, True),
        ("Exists", [], {"other": "x"}, False),
        ("DoesNotExist", [], {"other": "x"}, True),
        ("DoesNotExist", [], {"tier": ""}, False),
    ],
)
def test_operators_match_as_in_kubernetes(operator, values, labels, expected):
    assert expression(operator, *values).matches(labels) is expected


def test_the_empty_selector_selects_everything():
    assert selector() == EVERYTHING
    assert EVERYTHING.is_everything
    assert EVERYTHING.matches({})
    assert selector(matchLabels={}, matchExpressions=[]) == EVERYTHING
    assert selector(matchLabels=None, matchExpressions=None) == EVERYTHING


def test_all_requirements_must_hold():
    both = selector(
        matchLabels={"app": "shop"}, matchExpressions=[{"key": "tier", "operator": "Exists"}]
    )

    assert both.matches({"app": "shop", "tier": "x"})
    assert not both.matches({"app": "shop"})
    assert not both.matches({"tier": "x"})


def test_contradicting_requirements_select_nothing():
    never = LabelSelector((Requirement("a", "In", ("b",)), Requirement("a", "In", ("c",))))

    assert not never.matches({"a": "b"})
    assert LabelSelector.from_kubernetes(never.to_kubernetes()) == never


def test_the_same_selector_said_in_two_ways_is_equal():
    said = selector(matchLabels={"a": "b"})

    assert said == expression("In", "b", key="a")
    assert said == expression("In", "b", "b", key="a")
    assert hash(said) == hash(expression("In", "b", key="a"))


@pytest.mark.parametrize(
    ("form", "path", "said"),
    [
        (
            {"matchExpressions": [{"key": "a", "operator": "Inn"}]},
            "matchExpressions[0].operator",
            '"Inn" is not an operator; use In, NotIn, Exists or DoesNotExist',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "matchExpressions[0].values",
            "In without values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]},
            "matchExpressions[0].values",
            "NotIn without values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "matchExpressions[0].values",
            "Exists with values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": ["x"]}]},
            "matchExpressions[0].values",
            "DoesNotExist with values",
        ),
        (
            {"matchExpressions": [{"key": "a b", "operator": "Exists"}]},
            "matchExpressions[0].key",
            '"a b" is not a label key',
        ),
        (
            {"matchExpressions": [{"key": "X!/a", "operator": "Exists"}]},
            "matchExpressions[0].key",
            'the prefix of "X!/a" is not a DNS subdomain',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["ok", "-x"]}]},
            "matchExpressions[0].values[1]",
            '"-x" is not a label value',
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "value": ["x"]}]},
            "matchExpressions[0].value",
            "unknown field",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "matchExpressions[0].values",
            "not a list of strings",
        ),
        ({"matchExpressions": [{"operator": "In"}]}, "matchExpressions[0].key", "not a string"),
        ({"matchExpressions": [{"key": "a"}]}, "matchExpressions[0].operator", "not a string"),
        ({"matchExpressions": ["a"]}, "matchExpressions[0]", "not a mapping"),
        ({"matchExpressions": {}}, "matchExpressions", "not a list"),
        ({"matchLabels": ["a"]}, "matchLabels", "not a mapping"),
        ({"matchLabels": {"a": 1}}, "matchLabels[a]", "1 is not a string"),
        ({"matchLabels": {"a": "x" * 64}}, "matchLabels[a]", "is not a label value"),
        ({"matchLabel": {"a": "b"}}, "matchLabel", "unknown field"),
    ],
)
def test_a_bad_selector_is_refused_with_the_path(form, path, said):
    with pytest.raises(BadSelector) as refused:
        LabelSelector.from_kubernetes(form)

    assert [fault.path for fault in refused.value.faults] == [path]
    assert said in str(refused.value)
    assert refused.value.faults[0].remedy


def test_all_faults_of_a_selector_are_named_at_once():
    with pytest.raises(BadSelector) as refused:
        selector(matchLabels={"a": "!"}, matchExpressions=[{"key": "?", "operator": "in"}])

    assert [fault.path for fault in refused.value.faults] == [
        "matchLabels[a]",
        "matchExpressions[0].key",
        "matchExpressions[0].operator",
    ]


@pytest.mark.parametrize(
    "wire",
    [
        None,
        3,
        "a",
        {},
        [3],
        [["a"]],
        [["a", "In", "x"]],
        [["a", "In", [1]]],
        [["a", "Inn", []]],
        [["a", "In", ["x"], "more"]],
    ],
)
def test_wire_values_that_are_no_selector_are_refused(wire):
    with pytest.raises(RecordRefused):
        LabelSelector.from_wire(wire)


def test_a_text_without_bytes_is_no_selector():
    with pytest.raises(RecordRefused, match="selector"):
        LabelSelector.from_wire("\ud800")
