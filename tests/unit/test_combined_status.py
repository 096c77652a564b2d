"""CombinedStatus in the forms that users of the field know."""

import math

import pytest

from controllers.core.status.combined import combined_status, value_form
from leafcast.ask.combined import read_combined
from relay.core.collectors.cells import CellSample
from relay.core.collectors.collected_results import Result
from relay.core.collectors.ports import CopyView, RowOwner
from relay.core.collectors.tables import Outcome, TableAlgebra
from relay.objects.expressions.sketch import bucket_of
from relay.shell.evaluator import CelEvaluator
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import LABEL_PREFIX, CombinedField, Expression, Program
from schemas.values import codec
from schemas.values.identity import DestinationId
from schemas.values.names import LABEL_MAX, label_value_fault
from schemas.values.ordered_values import pack_values


def _named(name):
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": "u1"}}
    return ObjectKey("apps", "deployments", "shop", name), obj


WEB = _named("web")
PLACEMENT_LABEL = f"{LABEL_PREFIX}binding-policy"
SHOP = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "s"), {"metadata": {"uid": "u2"}}


def said(results=(), subject=WEB, placement=SHOP):
    return combined_status(subject, placement, results, title="edgeplacement/s", complete=True)


def result(program, *names, status=None):
    """What a program says of destinations of these names."""
    bound = CelEvaluator().bind(program, codec.canonical({"metadata": {"name": "web"}}))
    algebra = TableAlgebra(program)
    returned = None if status is None else codec.canonical(status)
    leaves = [
        algebra.leaf(
            bound.outcome(CopyView(name, returned)),
            RowOwner(name, DestinationId(f"i-mb-{name}")).who,
        )
        for name in names
    ]
    return Result(ObjectKey("apps", "deployments", "shop", "web"), program, algebra.merge(leaves))


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("a", {"type": "String", "string": "a"}),
        (2, {"type": "Number", "float": "2"}),
        (2.5, {"type": "Number", "float": "2.5"}),
        (1e21, {"type": "Number", "float": "1e+21"}),
        (-math.inf, {"type": "Number", "float": "-Inf"}),
        (math.nan, {"type": "Number", "float": "NaN"}),
        (False, {"type": "Bool", "bool": False}),
        (None, {"type": "Null"}),
        ([1, [None]], {"type": "Array", "array": [1, [None]]}),
        ((), {"type": "Array", "array": []}),
        ({"a": [1]}, {"type": "Object", "object": {"a": [1]}}),
    ],
)
def test_a_value_has_the_form_of_its_type(value, form):
    assert value_form(value) == form


def test_a_column_that_fails_is_a_row_error_and_no_cell():
    columns = (Expression("who", "inventory.name"), Expression("n", "returned.status.nothing"))
    [told] = said([result(Program("p", select=columns), "b", "a", status={})])["results"]
    assert told["rows"] == []
    [error] = told["rowErrors"]
    assert error["wec"] == {"clusterId": "a"}
    assert (error["columnName"], error["error"]) == ("n", "no such key: nothing")
    assert error["count"] == "2"


def test_of_rows_of_several_objects_it_is_told_which_object_each_is_of():
    fields = (
        CombinedField("most", "TOP", "returned.status.n"),
        CombinedField("sum", "SUM", "returned.status.text"),
    )
    program = Program("p", combined=fields, scope="Placement")
    bound, algebra = CelEvaluator().bind(program, b""), TableAlgebra(program)
    statuses = {"a": {"n": 1, "text": "four"}, "b": {"n": 2, "text": 0}, "c": {"text": 0}}
    who = RowOwner("s1", DestinationId("i-mb-s1")).who
    leaves = [
        algebra.leaf(
            bound.outcome(CopyView("s1", codec.canonical(status))),
            who,
            pack_values(["apps", "deployments", "shop", name]),
        )
        for name, status in statuses.items()
    ]
    whole = Result(ObjectKey("", "", "", ""), program, algebra.merge(leaves))
    [told] = said([whole])["results"]
    assert told["rows"][0]["columns"][0]["array"] == [
        {"clusterId": "s1", "object": "shop/deployments.apps/b", "value": "2"},
        {"clusterId": "s1", "object": "shop/deployments.apps/a", "value": "1"},
    ]
    [trouble] = told["aggregationErrors"]
    assert trouble["error"] == '"four" is not a number (at s1, shop/deployments.apps/a)'
    [error] = told["rowErrors"]
    assert error["error"] == "shop/deployments.apps/c: no such key: n"


def test_rows_stand_in_the_order_of_destinations_and_collectors_by_name():
    columns = (Expression("who", "inventory.name"),)
    results = [result(Program(name, select=columns), "s2", "s10", "s1") for name in ("z", "a")]
    told = said(results)["results"]
    assert [each["name"] for each in told] == ["a", "z"]
    rows = [row["columns"][0]["string"] for row in told[0]["rows"]]
    assert rows == ["s1", "s10", "s2"]


def test_a_name_too_long_for_a_label_is_cut_and_told_in_full():
    name = "w" * 100
    metadata = said(subject=_named(name))["metadata"]
    cut = metadata["labels"]["status.kubestellar.io/name"]
    assert len(cut) <= LABEL_MAX
    assert cut != _label("w" * 101)
    assert metadata["annotations"]["status.kubestellar.io/name"] == name
    assert metadata["labels"][PLACEMENT_LABEL] == "s"
    assert PLACEMENT_LABEL not in metadata["annotations"]


@pytest.mark.parametrize("name", ["shop:reader", "a" * 54 + ":b", ":::", ":a", "a:", "n\u00e4he"])
def test_a_name_that_no_label_may_hold_is_cleaned_and_told_in_full(name):
    metadata = said(subject=_named(name))["metadata"]
    assert label_value_fault(_label(name)) is None
    assert _label(name) != _label(f"{name}:")
    assert metadata["annotations"]["status.kubestellar.io/name"] == name


def _label(name):
    return said(subject=_named(name))["metadata"]["labels"]["status.kubestellar.io/name"]


def _quantiles(numbers, *ranks):
    fields = tuple(CombinedField(rank, "QUANTILE", "1", rank) for rank in ranks)
    algebra = TableAlgebra(program := Program("p", combined=fields))
    leaves = [
        algebra.leaf(
            Outcome(kept=True, samples=(CellSample(bucket=bucket_of(x)),) * len(ranks)), b""
        )
        for x in numbers
    ]
    [told] = said([Result(ObjectKey("", "", "", ""), program, algebra.merge(leaves))])["results"]
    values = [float(column["float"]) for column in told["rows"][0]["columns"]]
    return values, [note["note"] for note in told["notes"]], told.get("truncated", False)


def test_a_quantile_that_is_only_an_upper_bound_says_so():
    wide = [10 ** (12 * at / 1999) for at in range(2000)]
    (low, high), (low_note, high_note), truncated = _quantiles(wide, "0.05", "0.95")
    assert low > wide[100]
    assert "only an upper bound in 1 of 1 row" in low_note
    assert abs(high - wide[1899]) <= wide[1899] / 90
    assert "upper bound" not in high_note
    assert truncated
    (low,), (note,), truncated = _quantiles(wide[:1000], "0.05")
    assert abs(low - wide[49]) <= wide[49] / 90
    assert "upper bound" not in note
    assert not truncated


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0, 1.5, 1e21, True, "7", None, [1]])
def test_a_value_is_read_as_it_was(value):
    obj = said()
    row = {"columns": [value_form(value)]}
    obj["results"] = [{"name": "p", "columnNames": ["n"], "rows": [row]}]
    [told] = read_combined(obj)
    assert told.rows == ({"n": value},)
    assert type(told.rows[0]["n"]) is type(value)
