"""Expressions: what is refused before it runs, what fails at one row, and what it costs."""

import pytest

from relay.core.collectors.cells import in_units
from relay.core.collectors.ports import CopyView
from relay.core.collectors.tables import FILTER
from relay.objects.expressions.bounds import narrowed
from relay.objects.expressions.cel import (
    CompiledExpression,
    EvaluationFailed,
    ExpressionRefused,
    ExpressionValues,
)
from relay.objects.expressions.programs import program_faults
from relay.shell.evaluator import CelEvaluator
from schemas.reports.collectors import CombinedField, Expression, Program
from schemas.reports.upsync import UpsyncClause
from schemas.values import codec
from schemas.values.ordered_values import pack_values, unpack_values
from schemas.values.wire import replace

WEB = {
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"version": "v2"}},
    "spec": {"replicas": 3, "ports": list(range(300))},
    "long": "x" * 40_000,
}
STATUS = {"readyReplicas": 2, "phase": "four", "items": [{"a": 1}, {"a": 2}]}
COUNT = CombinedField("n", "COUNT")
LONG = f"[{','.join('1' * 240)}]"
SUM = " + ".join(["obj.l"] * 100)


def outcome(program, status=STATUS, obj=WEB, **seen):
    said = None if status is None else codec.canonical(status)
    bound = CelEvaluator().bind(program, codec.canonical(obj))
    return bound.outcome(CopyView("s-001", said, **seen))


def selected(text, **given):
    return outcome(Program("p", select=(Expression("x", text),)), **given)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 +", "not CEL: at 1:4"),
        ("object.spec", 'unknown variable "object"; there are inventory, obj'),
        ("size(obj) > now()", 'unknown function "now"'),
        ("obj.a.map(x, y)", 'unknown variable "y"'),
        ("'" + "x" * 4096 + "'", "4098 bytes, at most 4096"),
        ("(" * 40 + "1" + ")" * 40, "nested deeper than 32"),
        ("obj.a.all(x, obj.b.all(y, obj.c.all(z, true)))", "3 nested loops, at most 2"),
        ("uint(9223372036854775808)", "not CEL: at 1:6: invalid int literal"),
        ("string(obj)", "string(obj) is not possible; there is string(number, text, bytes"),
        ("has(returned.status) && string(obj.metadata) != ''", "string(obj.metadata) is not poss"),
        ("obj.a ? string(propagation.reachable) : ''", "string(propagation.reachable) is not"),
        ("returned.status.n > int(true)", "int(true) is not possible; there is int(number or te"),
        ("'a' in obj && '12' . int() == 1", "'12' . int() is not possible; there is int(number"),
        ("startsWith(obj.kind, 'D')", "is not possible; there is text.startsWith(text)"),
        ("size(returned.status.l) + size(1)", "size(1) is not possible; there is size(text, bytes"),
        ("propagation.lastReportTime.getHours('Z')", "there is time or duration.getHours()"),
        ("obj.a == Foo{a: 1}", "Foo{a: 1} is not possible; write a map"),
        ("type(obj.a) == string", 'there are texts for types, as in type(value) == "string"'),
        (f"{LONG}.map(x, {LONG}.map(y, x))", "it may make too many values out of 481 items"),
        (
            f"({SUM}).all(x, ({SUM}).all(y, x < y))",
            "too costly: 2 nested loops over up to 597 items",
        ),
        ("[1].all(x, obj.kind.matches('a'))", "at most 4 matches() are allowed, and none in a l"),
        (" || ".join(["obj.kind.matches('a')"] * 5), "write startsWith, endsWith or contains"),
        ("obj.kind.matches('(')", 'the pattern "(" is none: missing ): (; see the syntax of RE2'),
        (r"obj.kind.matches(r'\pL{1,100}b')", "too large once it is compiled; repeat less"),
        (r"matches(obj.kind, '(\\pL{1,100}){1,40}b')", "too large once it is compiled"),
        ("obj.kind.matches(1)", "is not possible; there is text.matches(text)"),
        ("obj.kind.re2find('a')", 'unknown function "re2find"'),
    ],
)
def test_an_expression_that_is_wrong_is_refused_by_what_is_wrong(text, why):
    with pytest.raises(ExpressionRefused, match=None) as refused:
        CompiledExpression(text)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "obj.a.map(x, obj.b.map(y, x + y)).size() > 0 && obj.c.exists(z, z == 1)",
        "'(((((((((((((((((((((((((((((((((((((((((' == obj.a",
        "has(obj.a) ? [1, 2].map(x, x * 2)[0] : 1",
        "timestamp('2026-01-01T00:00:00Z') < propagation.lastReportTime",
        "string(obj.spec) == string(obj.metadata.name) + string(returned.status.size)",
        "obj.l.map(size, size == 1).size() > 0 && obj.l.all(x, string(x) in (['a']))",
        "inventory.name.startsWith('a') && obj.metadata.labels['a'].matches('^a{2}$')",
        "propagation.lastReportTime.getHours() == int('1') && {'a': 1}.a == 1",
    ],
)
def test_an_expression_within_bounds_is_admitted(text):
    CompiledExpression(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("returned.status.readyReplicas", 2),
        ("obj.metadata.labels.version", "v2"),
        ("inventory.name", "s-001"),
        ("obj.spec.replicas != returned.status.readyReplicas", True),
        ("returned.status.items.map(i, i.a)", [1, 2]),
        ("obj.metadata.labels", {"version": "v2"}),
        ("null", None),
        ("1.5", 1.5),
        ("timestamp('2026-01-02T03:04:05Z')", "2026-01-02T03:04:05Z"),
        ("duration('90s')", "90s"),
        ("propagation.reachable", True),
        ("propagation.lastReturnedUpdateTimestamp == propagation.lastReportTime", True),
        ("has(obj.status)", False),
    ],
)
def test_an_expression_gives_a_value_of_json_types(text, value):
    assert unpack_values(selected(text).columns) == [value]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("returned.status.missing", "no such key: missing"),
        ("returned.status.readyReplicas + 1.5", "No such overload"),
        ("9223372036854775807 + obj.spec.replicas", "overflow"),
        ("obj.spec.replicas / 0", "division by zero"),
        ("int(returned.status.phase)", "invalid digit"),
        ("b'abc'", "a bytes has no form"),
        ("obj.spec.ports.map(x, obj.spec.ports.map(y, obj.spec.ports))", "values out of 300 items"),
        ("string(obj.spec)", "a function was given what it does not take; there is string(nu"),
        ("obj.spec.ports.map(x, " + "+".join(["obj.spec.ports"] * 90) + ")", "too many values"),
        ("obj.spec.ports.map(x, 'x' + obj.long)", "it may join more than 16777216 bytes"),
    ],
)
def test_what_fails_at_one_row_says_which_column_and_why(text, why):
    said = selected(text)
    assert not said.kept
    ((column, error),) = said.failed
    assert column in ("x", FILTER)
    assert why in error


@pytest.mark.parametrize(
    "text",
    [
        "obj.few.all(x, obj.few.all(y, !obj.long.contains('aab')))",
        "obj.few.map(x, obj.long).all(y, y.contains('a') && y != 'b')",
        "obj.few.all(x, !obj.long.contains('a') || !obj.long.contains('b'))",
        "[1].all(obj, obj > 0) && obj.few.all(x, !obj.long.contains('a') || x > 1 || obj.b)",
        " || ".join(["obj.long == 'x'"] * 110),
    ],
)
def test_an_expression_that_would_read_much_fails_at_its_row(text):
    said = selected(text, obj={"few": list(range(50)), "long": "x" * 700_000})
    ((_, error),) = said.failed
    assert "it may read more than 20971520 bytes; name fewer and smaller fields, and in" in error


@pytest.mark.parametrize(
    "text",
    [
        "returned.status.results.filter(r, r.a == 'b' && r.c != '').map(r, r.c)",
        "returned.status.results.filter(r, r.a == inventory.name).size()",
    ],
)
def test_an_expression_that_reads_large_items_by_its_own_variable_is_evaluated(text):
    results = [{"a": "b", "c": "p", "message": "x" * 4_000} for _ in range(200)]
    said = selected(text, status={"results": results})
    assert said.kept, said.failed


def test_a_result_over_its_bound_is_an_error_of_its_row():
    (failed,) = selected("obj.big", obj={"big": "x" * 17_000}).failed
    assert failed == ("x", "a result of 17003 bytes, at most 16384 are allowed")


@pytest.mark.parametrize(
    ("text", "kept"), [("null", False), ("has(returned.status)", True), ("false", False)]
)
def test_a_filter_of_null_is_false(text, kept):
    said = outcome(Program("p", text, combined=(COUNT,)))
    assert said.kept is kept
    assert not said.failed


def test_a_filter_that_is_neither_true_nor_false_is_an_error():
    said = outcome(Program("p", "1", combined=(COUNT,)))
    assert said.failed == ((FILTER, "the filter gives 1, not true or false"),)


def test_of_what_comes_up_returned_is_the_object_and_there_is_no_obj():
    source = UpsyncClause("", ("configmaps",), ("*",), ("*",))
    columns = (Expression("x", "returned.spec.replicas"), Expression("y", "obj.kind"))
    program = Program("p", select=columns, source=source)
    [fault] = program_faults(program)
    assert (fault.path, fault.message) == (
        "spec.select[1].def",
        "nothing was sent of what comes up, so there is no obj",
    )
    said = CelEvaluator().bind(replace(program, select=columns[:1]), b"")
    assert said.outcome(CopyView("s", codec.canonical(WEB))).columns == pack_values(
        [WEB["spec"]["replicas"]]
    )


def test_a_blank_row_has_nothing_returned():
    assert not outcome(Program("p", "has(returned.status)", combined=(COUNT,)), status=None).kept
    assert selected("returned.status", status=None).failed == (("x", "no such key: status"),)


@pytest.mark.parametrize(
    ("text", "number", "fault"),
    [
        ("null", None, ""),
        ("2", 2.0, ""),
        ("'2.5'", 2.5, ""),
        ("returned.status.phase", 0.0, '"four" is not a number'),
        ("double('NaN')", 0.0, "NaN is not a finite number"),
        ("true", 0.0, "true is not a number"),
        ("9223372036854775808u", 2.0**63, ""),
        ("'1_000'", 0.0, '"1_000" is not a number'),
        ("'1e999'", 0.0, '"1e999" is not a finite number'),
    ],
)
def test_a_subject_is_a_number_or_counts_as_0_and_is_told(text, number, fault):
    said = outcome(Program("p", combined=(CombinedField("s", "SUM", text),)))
    (sample,) = said.samples
    assert said.kept
    assert sample.number == (None if number is None else in_units(number))
    assert said.faults == ((("s", fault),) if fault else ())


def test_columns_of_a_group_are_its_key_and_a_failing_one_leaves_the_row_out():
    groups = (Expression("v", "obj.metadata.labels.version"), Expression("r", "obj.spec.replicas"))
    said = outcome(Program("p", group_by=groups, combined=(COUNT,)))
    assert said.group == pack_values(["v2", 3])
    failing = (*groups, Expression("z", "obj.zone"))
    said = outcome(Program("p", group_by=failing, combined=(COUNT,)))
    assert (said.kept, said.failed) == (False, (("z", "no such key: zone"),))


def test_faults_of_a_program_name_their_fields():
    program = Program(
        "p",
        "1 +",
        (Expression("g", "what"),),
        (CombinedField("s", "SUM", "obj.a.b("),),
    )
    fields = [fault.path for fault in program_faults(program)]
    assert fields == ["spec.filter", "spec.groupBy[0].def", "spec.combinedFields[0].subject"]


def test_a_program_that_cannot_be_evaluated_fails_by_column():
    said = outcome(Program("p", "what", combined=(COUNT,)))
    assert not said.kept
    assert said.failed[0][0] == FILTER


@pytest.mark.parametrize(
    ("text", "inventory", "reachable"),
    [
        ("inventory.name", True, False),
        ("propagation.reachable", False, True),
        ("propagation.lastReportTime", False, False),
        ("propagation", False, True),
        ("obj.spec", False, False),
    ],
)
def test_it_is_told_what_a_program_depends_on(text, inventory, reachable):
    bound = CelEvaluator().bind(Program("p", select=(Expression("x", text),)), codec.canonical(WEB))
    assert bound.traits[:2] == (inventory, reachable)


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("", True),
        ("has(returned.status)", False),
        ("!has(returned.status)", True),
        ("has(returned.status) || obj.spec.replicas > 1", True),
        ("has(returned.status) || inventory.name == 'a'", True),
        ("returned.status.n > 1", False),
        ("1 +", False),
    ],
)
def test_a_row_without_the_object_is_said_only_where_the_filter_settles_it(text, lacks):
    by_version = (Expression("v", "obj.metadata.labels.version"),)
    program = Program("p", filter=text, group_by=by_version, combined=(COUNT,))
    evaluator, blank = CelEvaluator(), CopyView("s-001")
    opened, closed = evaluator.bind(program, codec.canonical(WEB)), evaluator.bind(program, ())
    assert closed.lacks_object(blank) is lacks
    assert not opened.lacks_object(blank)
    if not lacks:
        assert closed.outcome(blank) == opened.outcome(blank)
        assert not closed.outcome(blank).kept


@pytest.mark.parametrize(
    "text",
    [
        "returned",
        "returned.status",
        "has(returned.status)",
        "has(returned.gone)",
        "has(returned.status.phase)",
        "has(returned.status.gone)",
        "size(returned.status)",
        "returned.status.size()",
        "'phase' in returned.status",
        "returned.status['phase']",
        "returned['status'].phase",
        "returned.status.deep.er.est",
        "has(returned.status.deep.er.gone)",
        "returned.status.items.exists(status, status.a == 2)",
        "returned.status.phase.startsWith('f')",
        "returned.status.gone",
        "[returned].map(returned, returned.status.phase)",
        "has(returned.status) && returned == {'status': returned.status}",
        "has(returned.status) ? returned.status.readyReplicas + size(returned.status.items) : 0",
    ],
)
@pytest.mark.parametrize(
    "status", [None, STATUS, {}, "text", {**STATUS, "deep": {"er": {"est": 1}}}]
)
def test_what_an_expression_does_not_name_makes_no_difference(text, status):
    expression, whole, less = CompiledExpression(text), ExpressionValues(), ExpressionValues()
    returned = {} if status is None else {"status": status}
    whole.put("returned", returned)
    less.put("returned", narrowed(returned, expression.shape.paths["returned"]))
    assert value_or_error(expression, less) == value_or_error(expression, whole)


def value_or_error(expression, values):
    try:
        return expression.value(values)
    except EvaluationFailed as error:
        return str(error)


def test_only_the_fields_that_are_named_are_converted():
    shape = CompiledExpression("has(returned.status) && returned.status.phase == 'four'").shape
    assert narrowed({"status": STATUS}, shape.paths["returned"]) == {"status": {"phase": "four"}}


def test_what_one_object_returned_is_not_said_of_another():
    program = Program("p", group_by=(Expression("g", "returned.status.phase"),), combined=(COUNT,))
    evaluator = CelEvaluator()
    said = []
    for phase in ("on", "off", "on", 1, True):
        bound = evaluator.bind(program, codec.canonical(WEB))
        status = codec.canonical({"phase": phase, "beside": len(said)})
        said += unpack_values(bound.outcome(CopyView("s-001", status)).group)
    assert said == ["on", "off", "on", 1, True]
    assert [type(each) for each in said[3:]] == [int, bool]


@pytest.mark.parametrize("text", ["inventory.name", "obj.kind", "propagation.reachable"])
def test_what_is_not_of_the_status_alone_is_evaluated_for_each(text):
    program = Program("p", group_by=(Expression("g", text),), combined=(COUNT,))
    evaluator, groups = CelEvaluator(), set()
    for at, kind in enumerate(("A", "B")):
        bound = evaluator.bind(program, codec.canonical({**WEB, "kind": kind}))
        seen = CopyView(f"s-{at}", codec.canonical(STATUS), reachable=bool(at))
        groups.add(bound.outcome(seen).group)
    assert len(groups) == 2


def test_what_grew_is_refused_also_after_less_was_admitted():
    said = Expression("n", "returned.status.items.map(i, returned.status.items).size()")
    bound = CelEvaluator().bind(Program("p", select=(said,)), codec.canonical(WEB))

    def tried(items):
        return bound.outcome(CopyView("s", codec.canonical({"items": list(range(items))})))

    few, many = tried(3), tried(5_000)
    assert few.kept
    assert [why for _, why in many.failed if why.startswith("too costly")]
    assert tried(2).kept
