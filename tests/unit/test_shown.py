"""What is shown of a sealed object for collectors: which paths, and that rows are the same."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from relay.core.collecting.ports import Seen
from relay.evaluator import CelEvaluator
from relay.objects.expressions.shown import paths_in, shown_of
from schemas import codec
from schemas.blobs import open_stored
from schemas.collectors import (
    SHOWN_IN_ALL_MAX_BYTES,
    SHOWN_MAX_BYTES,
    CombinedField,
    Expression,
    Program,
    program_set,
    read_program_set,
)
from schemas.objects import ObjectKey
from schemas.refusals import RecordRefused
from schemas.wire import encode

WEB = ObjectKey("apps", "deployments", "shop", "web")
SECRET = ObjectKey("", "secrets", "shop", "key")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("returned.status.n", []),
        ("'obj.a' // obj.b", []),
        ("obj.a.b == obj . c", [("a", "b"), ("c",)]),
        ("obj['a'].b[\"c.d\"]", [("a", "b", "c.d")]),
        ("obj.a.exists(x, x.b) && has(obj.c.d)", [("a",), ("c", "d")]),
        ("obj.a[0].b + obj.a[returned.n]", [("a",)]),
        ("obj.a.?b", [("a",)]),
        ("obj", None),
        ("obj.size() + obj.a", None),
        ("obj[inventory.name]", None),
        ("obj.a == .obj.b", None),
        ("[1].map(obj, obj + 1)", None),
        (r"r'\' == obj.a + ''", None),
        ("obj.a.`b//c` == obj.d", None),
    ],
)
def test_paths_are_read_from_the_expression(text, paths):
    assert paths_in(text) == (None if paths is None else frozenset(paths))


def by(*texts):
    return Program("p", select=tuple(Expression(f"c{at}", text) for at, text in enumerate(texts)))


def shown(key, obj, *texts):
    return shown_of(key, obj, len(codec.canonical(obj)), [by(*texts)])


def test_only_what_is_looked_at_is_shown():
    obj = {"metadata": {"labels": {"a": "1", "b": "2"}, "name": "web"}, "spec": {"token": "x"}}
    said = shown(WEB, obj, "obj.metadata.labels.a", "has(obj.metadata.labels.c.d)", "obj.no.where")
    assert codec.unpack(said) == {"metadata": {"labels": {"a": "1"}}}


@pytest.mark.parametrize(
    ("key", "text", "is_shown"),
    [
        (WEB, "obj.metadata.labels", True),
        (WEB, "obj.metadata", False),
        (WEB, "obj.ports.exists(p, p == 1)", False),
        (WEB, "has(obj.metadata.annotations)", False),
        (WEB, "obj.data.a", False),
        (WEB, "obj.big", False),
        (WEB, "size(obj)", False),
        (WEB, "1 + 1", False),
        (SECRET, "obj.metadata.labels", True),
        (SECRET, "obj.metadata", False),
        (SECRET, "obj.metadata.annotations.a", False),
        (SECRET, "obj.stringData", False),
    ],
)
def test_nothing_confidential_large_or_whole_is_shown(key, text, is_shown):
    meta = {"labels": {"a": "1"}, "annotations": {"a": "x"}}
    obj = {"metadata": meta, "data": {"a": "x"}, "ports": [1, 2], "big": "x" * SHOWN_MAX_BYTES}
    assert bool(shown(key, obj, text)) is is_shown
    assert not shown(key, obj, text, "obj.data")


TEXTS = (
    "obj.a",
    "has(obj.a.b) ? obj.a.b : 'none'",
    "obj.a.b.c",
    "obj['a']['b']",
    "obj.a[0]",
    "obj.a[0].b",
    "size(obj.a)",
    "size(obj.a.b) > 1",
    "obj.a.map(x, x)",
    "obj.a.map(x, obj.b.map(y, y == x))",
    "obj.b.exists(x, x == obj.a.c)",
    "obj.a + obj.b",
    "obj.a.b + 'x'",
    "has(obj.c) && obj.c.a == null",
    "'a' in obj.b",
    "obj.b == obj.c.b",
)
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3)
NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
EVALUATOR = CelEvaluator()


def but_for_texts(outcome):
    """Without what errors quote: a map has no order there."""
    faults, failed = ([name for name, _ in each] for each in (outcome.faults, outcome.failed))
    return outcome._replace(faults=tuple(faults), failed=tuple(failed))


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.lists(st.sampled_from(TEXTS), min_size=1))
@example({"a": [1], "d": list(range(2000))}, ["obj.a.map(x, obj.a.map(y, x))"])
def test_rows_are_the_same_of_what_is_shown(obj, texts):
    whole, part = codec.canonical(obj), shown(WEB, obj, *texts)
    programs = [by(*texts), *(Program("p", filter=text, select=by("1").select) for text in texts)]
    programs += [
        Program("p", "", by(text).select, (CombinedField("s", "SUM", text),)) for text in texts
    ]
    for program in programs if part else ():
        for seen in (Seen("s"), Seen("s", reachable=False)):
            said = [EVALUATOR.bind(program, plain).outcome(seen) for plain in (whole, part)]
            assert but_for_texts(said[0]) == but_for_texts(said[1])


def test_a_set_in_which_nothing_is_shown_has_the_bytes_that_it_had():
    program = by("obj.a")
    plain = open_stored(program_set({WEB: (program,)}, {WEB: b""}))
    assert plain == encode([1, [program], [[WEB, [0]]]])
    assert read_program_set(plain).objects[0].shown == b""


def test_what_is_shown_in_a_set_is_bounded():
    keys = [ObjectKey("", "configmaps", "a", f"{at:03}") for at in range(20)]
    part = codec.canonical({"a": "x" * (SHOWN_MAX_BYTES - 10)})
    found = read_program_set(
        open_stored(program_set({k: (by("obj.a"),) for k in keys}, dict.fromkeys(keys, part)))
    )
    told = [item.shown for item in found.objects if item.shown]
    assert told == [part] * (SHOWN_IN_ALL_MAX_BYTES // len(part))


@pytest.mark.parametrize("bad", [b"\x01", b"\xc1", b"x" * (SHOWN_MAX_BYTES + 1)])
def test_what_is_shown_and_no_object_is_refused(bad):
    with pytest.raises(RecordRefused):
        read_program_set(encode([1, [by("obj.a")], [[WEB, [0], bad]]]))
