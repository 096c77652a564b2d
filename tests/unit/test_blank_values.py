"""Blank rows of what is sealed: relays make the same ones without the object."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relay.core.collectors.ports import CopyView
from relay.shell.evaluator import CelEvaluator
from schemas.content.blobs import open_stored
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import (
    BLANKS_MAX_BYTES,
    BlankValue,
    CombinedField,
    Expression,
    Program,
    program_set,
    read_program_set,
)
from schemas.values import codec
from schemas.values.ordered_values import pack_values
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode

WEB = ObjectKey("apps", "deployments", "shop", "web")
EVALUATOR = CelEvaluator()
BLANK, AWAY = CopyView("s"), CopyView("s", reachable=False)


def by(*texts, **fields):
    columns = tuple(Expression(f"c{at}", text) for at, text in enumerate(texts))
    return Program("p", select=columns, **fields)


def blanks(obj, program):
    return EVALUATOR.blanks(program, codec.canonical(obj))


def values(obj, program):
    return [(blank.place, blank.value) for blank in blanks(obj, program)]


# A map has no order, so none of these makes a list of one.
TEXTS = (
    "obj",
    "obj.data",
    "has(obj.a.b) ? obj.a.b : 'none'",
    "obj['a']['b']",
    "obj.a[0].b",
    "size(obj.a.b) > 1",
    "obj.a.all(x, size(obj.b.map(y, y == x)) > 1)",
    "obj.b.exists(x, x == obj.a.c)",
    "obj.a + obj.b",
    "has(obj.c) && obj.c.a == null",
    "propagation.reachable && obj.a == 1",
    "propagation.reachable ? 1 : obj.b",
    "inventory.name",
    "returned.status.n",
    "!has(returned.status)",
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text("ab", max_size=3)
NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.recursive(
    LEAVES.filter(lambda leaf: not isinstance(leaf, float) or abs(leaf) < 1e300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def but_for_texts(outcome):
    """Without what errors quote: a map has no order there."""
    faults, failed = ([name for name, _ in each] for each in (outcome.faults, outcome.failed))
    return outcome._replace(faults=tuple(faults), failed=tuple(failed))


@given(
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.lists(st.sampled_from(TEXTS), min_size=1),
    st.sampled_from(["", *TEXTS]),
)
@example({"a": list(range(2000)), "b": [1]}, ["obj.a.map(x, obj.b.map(y, y == x))"], "")
@example({"a": "x" * 20_000}, ["obj.a"], "")
def test_rows_are_the_same_without_the_object(obj, texts, kept):
    fields = tuple(CombinedField(f"s{at}", "SUM", text) for at, text in enumerate(texts))
    grouped = Program("p", kept, by(*texts[:1]).select, fields)
    for program in (by(*texts, filter=kept), grouped):
        plain = codec.canonical(obj)
        opened = EVALUATOR.bind(program, plain)
        closed = EVALUATOR.bind(program, EVALUATOR.blanks(program, plain))
        for seen in (BLANK, AWAY):
            assert not closed.lacks_object(seen)
            assert but_for_texts(closed.outcome(seen)) == but_for_texts(opened.outcome(seen))


def test_what_expressions_give_is_told_and_no_more():
    obj = {"spec": {"ports": [1, 2], "token": "x"}}
    assert values(obj, by("size(obj.spec.ports)", "inventory.name")) == [(1, pack_values([2]))]
    grouped = Program("p", "", by("1").select, (CombinedField("n", "SUM", "obj.spec.ports[1]"),))
    assert values(obj, grouped) == [(2, pack_values([2]))]
    assert [blank.reachable for blank in blanks(obj, by("obj.spec", "propagation.reachable"))] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("has(returned.status)", []),
        ("obj.spec.n > 1", [(0, pack_values([False]))]),
        ("obj.spec.n == 1", [(0, pack_values([True])), (1, pack_values(["x"]))]),
        ("inventory.name == 'a'", [(1, pack_values(["x"]))]),
        ("obj.spec.none == 1", [(0, b"no such key: none")]),
    ],
)
def test_of_a_row_that_is_left_out_only_the_filter_is_told(kept, told):
    obj = {"spec": {"n": 1, "token": "x"}}
    assert values(obj, by("obj.spec.token", filter=kept)) == told


def test_of_an_object_and_a_name_at_once_nothing_can_be_told():
    program = by("obj.metadata.name + inventory.name", "obj.metadata.name")
    closed = EVALUATOR.bind(program, blanks({"metadata": {"name": "web"}}, program))
    assert closed.lacks_object(BLANK)


def test_blank_rows_in_a_set_are_bounded():
    keys = [ObjectKey("", "configmaps", "a", f"{at:03}") for at in range(20)]
    program = by("obj.a")
    said = blanks({"a": "x" * 16_000}, program)
    found = read_program_set(
        open_stored(
            program_set(dict.fromkeys(keys, (program,)), {key: {program: said} for key in keys})
        )
    )
    told = [item.blanks for item in found.objects if item.blanks]
    assert told == [(said,)] * (BLANKS_MAX_BYTES // len(encode((said,))))


GOOD = BlankValue(0, True, False, pack_values([1]))


@pytest.mark.parametrize(
    "bad",
    [
        [[[0, True, False, b""]]],
        [[[0, True, False, b"\0"]]],
        [[[0, True, False, pack_values([1, 2])]]],
        [[[0, True, True, b"\xff"]]],
        [[GOOD], [GOOD]],
    ],
)
def test_blank_rows_that_no_centre_says_are_refused(bad):
    with pytest.raises(RecordRefused):
        read_program_set(encode([1, [by("obj.a")], [[WEB, [0], bad]]]))
