"""Merging rows: any tree, any order, any cut on the way gives what all rows together give."""

import json
import math
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.core.status.combined import number_text
from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.core.collectors.cells import CELLS, CellSample, average, from_units, in_units
from relay.core.collectors.merge_tree import MergeTree
from relay.core.collectors.tables import EMPTY, CollectedTable, Outcome, TableAlgebra
from relay.objects.expressions.sketch import bucket_of, value_of
from relay.objects.status_merging import merging
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import (
    QUANTILE_ACCURACY,
    TABLE_MAX_BYTES,
    CombinedField,
    Expression,
    Program,
)
from schemas.values import codec
from schemas.values.ordered_values import pack_values, unpack_values
from schemas.values.refusals import RecordRefused

TYPES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT")
GROUPED = Program(
    "grouped",
    group_by=(Expression("g", "x"),),
    combined=tuple(CombinedField(t.lower(), t, "x", "0.5", 2) for t in TYPES),
    limit=3,
)
SELECTED = Program("selected", select=(Expression("v", "x"),), limit=3)

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64 - 1)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=6)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=4)


def sample(field, number):
    if number is None or field.type == "COUNT":
        return CellSample()
    if field.type == "QUANTILE":
        return CellSample(bucket=bucket_of(float(number)))
    return CellSample(in_units(float(number)), value=number)


@st.composite
def outcomes(draw, program):
    kind = draw(st.sampled_from(["kept", "kept", "kept", "left", "failed"]))
    if kind == "left":
        return Outcome(kept=False)
    if kind == "failed":
        return Outcome(kept=False, failed=(("x", draw(st.sampled_from("ab"))),))
    if program is SELECTED:
        return Outcome(kept=True, columns=pack_values([draw(scalars)]))
    group = pack_values([draw(st.integers(0, 6))])
    number = draw(st.none() | st.integers(-9, 9) | st.sampled_from([0.1, 1e300, -1e300, 1e-300]))
    samples = tuple(sample(field, number) for field in program.combined)
    faults = (("sum", "bad"),) if draw(st.integers(0, 9)) == 0 else ()
    return Outcome(kept=True, group=group, samples=samples, faults=faults)


@st.composite
def leaves(draw, program):
    listed = draw(st.lists(outcomes(program), max_size=12))
    algebra = TableAlgebra(program)
    return [algebra.leaf(each, pack_values([f"s{at:02}", "id"])) for at, each in enumerate(listed)]


def tree_of(draw, algebra, tables):
    """Merge them in some order, by some tree, each tier saying it in bytes."""
    waiting = draw(st.permutations(tables))
    while len(waiting) > 1:
        width = draw(st.integers(2, len(waiting)))
        merged = algebra.merge(waiting[:width])
        waiting = [*waiting[width:], algebra.read(algebra.write(merged))]
    return waiting[0] if waiting else EMPTY


@pytest.mark.parametrize("program", [GROUPED, SELECTED], ids=["grouped", "selected"])
@given(data=st.data())
def test_any_tree_in_any_order_says_what_all_rows_say_together(program, data):
    algebra, tables = TableAlgebra(program), data.draw(leaves(program))
    flat = algebra.merge(tables) if tables else EMPTY
    assert algebra.write(tree_of(data.draw, algebra, tables)) == algebra.write(flat)
    assert flat.counted == len(tables)
    assert algebra.merge([flat, EMPTY]) == flat


@pytest.mark.parametrize("program", [GROUPED, SELECTED], ids=["grouped", "selected"])
@given(data=st.data())
def test_the_rows_kept_are_the_least_and_whole(program, data):
    """Against all rows without any limit: what is kept is exact, and the rest is all else."""
    tables = data.draw(leaves(program))
    algebra = TableAlgebra(program)
    boundless = TableAlgebra(
        Program("all", "", program.group_by, program.combined, program.select, 1000)
    )
    kept, whole = algebra.merge([EMPTY, *tables]), boundless.merge([EMPTY, *tables])
    assert sorted(kept.rows) == sorted(whole.rows)[: program.limit]
    assert all(kept.rows[key] == whole.rows[key] for key in kept.rows)
    beyond = [row for key, row in whole.rows.items() if key not in kept.rows]
    assert (kept.rest.count if kept.rest else 0) == sum(row.count for row in beyond)
    if kept.rest and program is GROUPED:
        at = TYPES.index("SUM")
        assert kept.rest.cells[at] == sum(row.cells[at] for row in beyond)


@pytest.mark.parametrize("program", [GROUPED, SELECTED], ids=["grouped", "selected"])
@pytest.mark.parametrize("truncated", [False, True])
@given(data=st.data())
def test_one_destination_that_cuts_its_rows_hides_none_of_others(program, truncated, data):
    """Wherever it cuts; who has as many rows as there may be cuts at the last of them."""
    tables = data.draw(leaves(program))
    algebra = TableAlgebra(program)
    honest = algebra.merge([EMPTY, *tables])
    said = replace(algebra.merge([EMPTY, *data.draw(leaves(program))]), truncated=truncated)
    cut = data.draw(st.sampled_from([b"", *said.rows]))
    rows = {key: row for key, row in said.rows.items() if key <= cut}
    rest = next(iter(said.rows.values()), None)
    if len(rows) == program.limit and not truncated:
        return
    evil = algebra.of_one(replace(said, rows=rows, cut=cut, rest=rest))
    merged = algebra.merge([honest, evil])
    least = sorted({*honest.rows, *evil.rows})[: program.limit]
    assert sorted(merged.rows) == [key for key in least if honest.cut is None or key <= honest.cut]
    assert merged.truncated
    assert algebra.read(algebra.write(merged)) == merged
    assert algebra.of_one(honest) == honest


@given(st.data(), st.integers(1, 50))
def test_many_destinations_alike_count_as_each_of_them(data, count):
    for program in (GROUPED, SELECTED):
        algebra, outcome = TableAlgebra(program), data.draw(outcomes(program))
        whos = [pack_values([f"s{at:02}", "id"]) for at in range(count)]
        each = algebra.merge([algebra.leaf(outcome, who) for who in whos])
        assert algebra.write(algebra.many(outcome, whos)) == algebra.write(each)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_sums_are_exact_and_rounded_once(listed):
    exact = sum(map(Fraction, listed))
    units = sum(map(in_units, listed))
    assert Fraction(units, 2**1074) == exact
    largest = Fraction(sys.float_info.max)
    if abs(exact) <= largest:
        assert from_units(units) == float(exact)
    elif abs(exact) > largest * 2:
        assert math.isinf(from_units(units))
    assert average((units, len(listed))) == float(exact / len(listed))


@given(st.floats(-1e307, 1e307))
def test_a_bucket_stands_for_its_values_within_the_accuracy(number):
    bucket, near = bucket_of(number), value_of(bucket_of(number))
    assert abs(near - number) <= QUANTILE_ACCURACY * abs(number) * 1.000001 + 1e-300
    assert (bucket > 0) == (near > 0)
    assert bucket_of(-number) == -bucket


@given(st.lists(values, max_size=4))
def test_packed_values_are_read_back(listed):
    assert json.dumps(unpack_values(pack_values(listed))) == json.dumps(
        [_plain(value) for value in listed]
    )


def _plain(value):
    """Integral numbers are integers, as canonical bytes have them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**64:
        return int(value)
    return [_plain_inner(item) for item in value] if isinstance(value, list) else value


def _plain_inner(value):
    return _as_lists(codec.unpack(codec.canonical(value)))


def _as_lists(value):
    return [_as_lists(item) for item in value] if isinstance(value, tuple) else value


@given(numbers, numbers)
def test_the_bytes_of_numbers_are_ordered_as_they_are(first, second):
    by_bytes = pack_values([first]) < pack_values([second])
    assert by_bytes == (first < second)


@given(st.text(), st.text())
def test_the_bytes_of_texts_are_ordered_as_they_are(first, second):
    assert (pack_values([first]) < pack_values([second])) == (first.encode() < second.encode())


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_rows_are_read_or_refused(data):
    for program in (GROUPED, SELECTED):
        algebra = TableAlgebra(program)
        try:
            table = algebra.read(data)
        except RecordRefused:
            continue
        assert algebra.write(algebra.merge([table, table]))


statuses = st.dictionaries(
    st.sampled_from(["replicas", "readyReplicas", "phase", "ok", "inner", "items"]),
    st.integers(-3, 9) | st.booleans() | st.sampled_from(["a", "b"]) | st.just([1]) | st.just({}),
    max_size=4,
)


@given(st.data(), st.sampled_from(["deployments", "jobs", "daemonsets"]))
def test_a_status_is_merged_the_same_by_any_tree(data, resource):
    key, algebra = ObjectKey("apps", resource, "n", "x"), AggregateAlgebra()
    listed = data.draw(st.lists(statuses, max_size=8))
    leaves = [
        Aggregate(1, codec.canonical(status), merging(key, codec.unpack(codec.canonical(status))))
        for status in listed
    ]
    flat = algebra.merge(leaves)
    waiting = data.draw(st.permutations(leaves))
    while len(waiting) > 1:
        width = data.draw(st.integers(2, len(waiting)))
        merged = algebra.merge(waiting[:width])
        waiting = [*waiting[width:], algebra.read(algebra.write(merged))]
    assert algebra.write(waiting[0] if waiting else algebra.empty) == algebra.write(flat)


def test_rows_that_find_no_room_are_counted_and_said():
    algebra = TableAlgebra(Program("big", select=(Expression("v", "x"),), limit=1000))
    big = Outcome(kept=True, columns=bytes(15_000))
    table = algebra.merge([algebra.leaf(big, pack_values([f"s{at}", "i"])) for at in range(9)])
    said = algebra.read(algebra.write(table))
    assert len(algebra.write(table)) <= TABLE_MAX_BYTES
    assert said.truncated
    assert said.counted == 9
    assert len(said.rows) + said.rest.count == 9
    # What another part of the tree says beyond the cut is not whole here: it goes to the rest.
    late = algebra.leaf(Outcome(kept=True, columns=b"x"), pack_values(["t", "i"]))
    both = algebra.merge([said, late])
    assert len(both.rows) == len(said.rows)
    assert both.rest.count == said.rest.count + 1


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(-5, 5) | st.none()), max_size=60))
def test_a_merge_tree_has_the_total_of_its_children(steps):
    tree = MergeTree(sum)
    held = {}
    for child, value in steps:
        tree.set(str(child), value)
        held[child] = value
        there = [each for each in held.values() if each is not None]
        assert tree.total() == (sum(there) if there else None)
    tree.assert_invariants()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (2.0, "2"),
        (2.5, "2.5"),
        (1e21, "1e+21"),
        (123456789.0, "123456789"),
        (1e-5, "1e-05"),
        (0.0001, "0.0001"),
        (1.5e300, "1.5e+300"),
        (-0.25, "-0.25"),
        (0.0, "0"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_users_of_the_field_know_them(number, text):
    assert number_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_text_is_the_number(number):
    assert float(number_text(number)) == number


def test_each_type_of_field_has_its_cell():
    assert tuple(CELLS) == TYPES
    assert CollectedTable() == EMPTY
