"""JSONPaths over objects: what is one, what it leads to, what taking out and putting in leave."""

import copy
import time

import pytest

from schemas.objects.json_paths import EXPRESSION_MAX, PLACES_MAX, JsonPath
from schemas.values.faults import Faulty

OBJECT = {
    "spec": {
        "ports": [{"name": "web", "nodePort": 1}, {"name": "admin"}, {"name": "x", "nodePort": 3}],
        "foo.bar/baz": {"zork": 1},
    },
    "def": {"def": {"def": 1}, "other": [{"def": 2}]},
}


def done(verb, text, *values):
    obj = copy.deepcopy(OBJECT)
    getattr(JsonPath(text), verb)(obj, *values)
    return obj


@pytest.mark.parametrize(
    "text",
    [
        "$.xyz",
        '$["foo.bar/baz"].zork',
        "$['a'].b",
        "$.a[*].b",
        "$..a",
        "$.a.0.1",
        "$.a[-1]",
        "$.a[1:5:2]",
        "$.store.book[?(@.author == 'Kilgore Trout' && @.category == 'fiction')].price",
        "$.a[?@.x > 1.5]",
        "$.a['b', 'c']",
    ],
)
def test_these_are_paths(text):
    JsonPath(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not begin with $"),
        ("xyz", "does not begin with $"),
        ("'xyz", "does not begin with $"),
        ("$", "means the whole object"),
        ("$.", "is not a JSONPath"),
        ("$[", "is not a JSONPath"),
        ("$[]", "is not a JSONPath"),
        ("$.a | $.b", "is not a JSONPath"),
        ("$.a ", "is not a JSONPath"),
        ("$[?match(@.a, '(a*)*b')]", "function 'match' is not defined"),
        ("$..a..b..c", "has 3 times .."),
        ("$.a[?@..b]", "looks at all of the object"),
        ("$.a[?@.b[?$.c]]", "looks at all of the object"),
        ("$" + ".a" * EXPRESSION_MAX, f"at most {EXPRESSION_MAX}"),
        ("$[?(" * 900, "is not a JSONPath"),
    ],
)
def test_these_are_none_and_why_is_said_with_a_remedy(text, said):
    with pytest.raises(Faulty) as refused:
        JsonPath(text)
    [fault] = refused.value.faults
    assert said in str(fault)
    assert fault.remedy
    assert len(str(fault)) < 300


@pytest.mark.parametrize(
    ("text", "at", "left"),
    [
        ("$.spec.ports[*].nodePort", "ports", [{"name": "web"}, {"name": "admin"}, {"name": "x"}]),
        ("$.spec.ports[?@.name != 'admin']", "ports", [{"name": "admin"}]),
        ("$.spec.ports[*]", "ports", []),
        ("$.spec.ports[0, 2, 0]", "ports", [{"name": "admin"}]),
        ("$.spec.ports.1", "ports", [OBJECT["spec"]["ports"][0], OBJECT["spec"]["ports"][2]]),
        ("$.spec.ports[-2:]", "ports", [OBJECT["spec"]["ports"][0]]),
        ('$.spec["foo.bar/baz"].zork', "foo.bar/baz", {}),
        ("$.spec.ports[0].name[0:1]", "foo.bar/baz", {"zork": 1}),
        ("$.spec.none.at.all", "foo.bar/baz", {"zork": 1}),
    ],
)
def test_all_that_a_path_leads_to_is_taken_out_and_nothing_else(text, at, left):
    obj = done("remove", text)
    assert obj["spec"][at] == left
    obj["spec"][at] = OBJECT["spec"][at]
    assert obj == OBJECT


def test_what_lies_in_something_that_is_taken_out_is_no_obstacle():
    assert done("remove", "$..def") == {"spec": OBJECT["spec"]}
    assert done("remove", "$..*") == {}


def test_a_value_is_put_at_every_depth_but_not_into_what_was_put():
    assert done("replace", "$..def", {"def": 7})["def"] == {"def": 7}
    put = done("replace", "$..nodePort", 9)["spec"]["ports"]
    assert [port.get("nodePort") for port in put] == [9, None, 9]


def test_a_last_step_that_names_a_field_makes_it_where_it_is_missing():
    put = done("replace", "$.spec.ports[1::1].nodePort", 9)["spec"]["ports"]
    assert [port["nodePort"] for port in put] == [1, 9, 9]
    assert done("replace", "$.metadata", {"a": 1})["metadata"] == {"a": 1}
    assert done("replace", "$.none.field", 1) == OBJECT
    assert done("replace", "$.spec.ports[7]", 1) == OBJECT
    assert done("replace", "$.spec.ports.name", 1) == OBJECT


def test_it_is_told_in_how_many_places_a_value_was_put():
    for path, places in (("$..nodePort", 2), ("$.spec.new", 1), ("$.none.field", 0)):
        assert JsonPath(path).replace(copy.deepcopy(OBJECT), 1) == places


def test_a_number_is_an_index_or_a_name():
    obj = {"a": [{"1": "x"}, {"1": "y"}]}
    JsonPath("$.a.1.1").remove(obj)
    assert obj == {"a": [{"1": "x"}, {}]}
    JsonPath("$.a.1.7").replace(obj, "z")
    assert obj == {"a": [{"1": "x"}, {"7": "z"}]}


def test_what_leads_to_too_many_places_is_refused_and_changes_nothing():
    obj = {"a": [0] * (PLACES_MAX + 1)}
    with pytest.raises(Faulty, match=f"more than {PLACES_MAX}"):
        JsonPath("$.a[*]").remove(obj)
    assert len(obj["a"]) == PLACES_MAX + 1


def _nested(deep):
    return {"a": [_nested(deep - 1)["a"]] * 2 if deep else []}


@pytest.mark.parametrize(
    ("text", "obj"),
    [
        ("$" + "".join(f"[{','.join([name] * 30)}]" for name in ["'a'"] * 4) + ".no", {}),
        ("$.a" + "[*,*]" * 18, _nested(18)),
        ("$.a" + "[*,0:,?@||1==1]" * 12, _nested(12)),
        ("$.a[?@" + "[*,*]" * 18 + "]", _nested(19)),
        ("$..*..nope", {"a": [[[0] * 200] * 20] * 50}),
        ("$..nope..nope", {"a": [[[{}] * 20] * 100] * 100}),
        (f"$.a[?{'&&'.join(['1==1'] * 100)}&&@.b]", {"a": [1] * 100_000}),
        ("$..[" + ",".join(f"'{at}'" for at in range(600)) + "]", {"a": [[]] * 100_000}),
    ],
)
def test_a_path_that_would_take_long_is_refused_soon(text, obj):
    inner = {"a": {"a": {"a": {"a": {}}}}}
    before = time.process_time()
    with pytest.raises(Faulty, match="name fewer"):
        JsonPath(text).remove(obj or inner)
    assert time.process_time() - before < 2


def test_a_long_name_is_said_in_no_path_on_the_way():
    obj = {"a" * 500_000: [[] for _ in range(9_000)]}
    before = time.process_time()
    assert len(JsonPath("$..*").places(obj)) == 9_001
    assert time.process_time() - before < 2


def test_what_was_put_in_several_places_is_not_one_value():
    ports = done("replace", "$.spec.ports[*].extra", {"a": 1})["spec"]["ports"]
    ports[0]["extra"]["a"] = 2
    assert ports[1]["extra"] == {"a": 1}


def test_an_object_that_is_too_deep_is_refused_and_not_changed():
    deep = {}
    obj = {"deep": deep}
    for _ in range(300):
        deep["a"] = deep = {}
    with pytest.raises(Faulty, match="cannot be followed"):
        JsonPath("$..x").remove(obj)
