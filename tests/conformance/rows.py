"""Vectors of collectors: the rows of one destination, their merges, and merged statuses."""

from __future__ import annotations

from functools import cache

from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.core.collectors.ports import CopyView, RowOwner
from relay.core.collectors.tables import TableAlgebra
from relay.shell.evaluator import CelEvaluator
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import CombinedField, Expression, Program
from schemas.values import codec
from schemas.values.identity import DestinationId
from schemas.values.ordered_values import pack_values
from schemas.values.refusals import RecordRefused
from schemas.values.wire import convert
from tests.conformance.forms import Case, Json, as_json, fields_of, from_json

ABOUT = (
    "A Program, an object as it was sent and the status of its copy at one destination: its table "
    "(`row`). Tables that merge (`merge`), or are refused. Values packed in their order "
    "(`packed`). Statuses of copies as one (`statuses`)."
)
KEY = {"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"}
SENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"tier": "front"}},
    "spec": {"replicas": 3},
}
GIVEN: dict[str, Json] = {
    "object": SENT,
    "name": "s1",
    "destination": "inv-mb-u1",
    "reachable": True,
    "returned_ms": 1_600_000_000_000,
    "reported_ms": 1_700_000_000_000,
}
SELECT = Program(
    "selected",
    select=(
        Expression("ready", "returned.status.readyReplicas"),
        Expression("wanted", "obj.spec.replicas"),
    ),
    limit=3,
)
TYPES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT")
GROUP = Program(
    "grouped",
    "has(returned.status)",
    (Expression("tier", "obj.metadata.labels.tier"),),
    tuple(
        CombinedField(kind.lower(), kind, "returned.status.readyReplicas", "0.5", 2)
        for kind in TYPES
    ),
    limit=3,
)
STATUSES = [{"readyReplicas": n} for n in (3, 1, 2, -4, 0.1)]


def row(name: str, program: Program, status: Json, **given: Json) -> Case:
    return Case(name, "L1", {"program": fields_of(program), "row": True, "status": status, **given})


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_rows(), *_merges(), *_packed(), *_statuses()]


def _rows() -> list[Case]:
    failing = Program("f", "returned.status.readyReplicas > 2", select=(Expression("n", "1"),))
    odd = Program("odd", select=(Expression("n", "returned.status.missing"),))
    number = Program("n", filter="obj.spec.replicas", select=(Expression("n", "1"),))
    text = Program(
        "t", combined=(CombinedField("sum", "SUM", "'12.5'"), CombinedField("no", "SUM", "'x'"))
    )
    edges = Program(
        "e",
        combined=(
            CombinedField("wide", "SUM", "'18446744073709551617'"),
            CombinedField("vast", "SUM", "'1e999'"),
            CombinedField("not", "MAX", "[1]"),
            CombinedField("third", "QUANTILE", "0.1", "0.5"),
            CombinedField("least", "QUANTILE", "'2.2250738585072014e-308'", "0.5"),
            CombinedField("below", "QUANTILE", "-9223372036854775807", "0.5"),
        ),
    )
    whole = Program("all", combined=(CombinedField("n", "COUNT", ""),))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "k"},
        "data": {"key": "c2VjcmV0"},
    }
    reading = Program("s", select=(Expression("key", "obj.data.key"),), reads_secrets=True)
    hidden = Program("s", select=(Expression("key", "obj.data.key"),))
    times = Program(
        "p",
        select=(
            Expression("at", "propagation.lastReportTime"),
            Expression("r", "propagation.reachable"),
            Expression("who", "inventory.name"),
        ),
    )
    return [
        row("a selected row", SELECT, {"readyReplicas": 2}),
        row("a row of a group", GROUP, {"readyReplicas": 2}),
        row("a filter that keeps", failing, {"readyReplicas": 3}),
        row("a filter that leaves out", failing, {"readyReplicas": 2}),
        row("a filter that fails", failing, None),
        row("a filter that gives a number", number, None),
        row("a column that fails", odd, {"readyReplicas": 3}),
        row("a text that is a number, and one that is none", text, None),
        row("numbers at their edges, and errors of two columns", edges, None),
        row("a count of all", whole, None),
        row("values of a Secret are empty texts", hidden, None, object=secret),
        row("values of a Secret, where they may be read", reading, None, object=secret),
        row("who, when and whether it can be reached", times, {"a": 1}),
        row("who, when, and that it cannot be reached", times, None, reachable=False),
        row(
            "an expression that is refused",
            Program("x", select=(Expression("n", "nothing.here"),)),
            None,
        ),
    ]


def _merges() -> list[Case]:
    def tables(program: Program, count: int = 5) -> list[str]:
        given = [
            {
                **GIVEN,
                "program": fields_of(program),
                "status": STATUSES[at % 5],
                "name": f"s{at}",
                "destination": f"inv-mb-u{at}",
                "row": True,
            }
            for at in range(count)
        ]
        return [_row(it)["table"] for it in given]

    def merge(name: str, program: Program, listed: list[str], rule: str = "L2") -> Case:
        return Case(name, rule, {"program": fields_of(program), "merge": listed})

    selected, grouped = tables(SELECT), tables(GROUP)
    first = _merged({"program": fields_of(SELECT), "merge": selected[:4]})["table"]
    turned = codec.unpack(bytes.fromhex(first), lists=True)
    turned[1] = turned[1][::-1]
    long = codec.unpack(bytes.fromhex(first), lists=True)
    long[1] = [[pack_values([n]), 1, [b""]] for n in range(4)]
    cells = codec.unpack(bytes.fromhex(grouped[0]), lists=True)
    cells[1][0][2] = cells[1][0][2][:3]
    return [
        merge("no tables", SELECT, []),
        merge("two selected rows", SELECT, selected[:2]),
        merge("of more rows than the limit the least by key are kept", SELECT, selected, "L3"),
        merge("the same, two of them merged before", SELECT, [first, selected[4]], "L3"),
        merge("groups", GROUP, grouped),
        merge("rows that are not in order", SELECT, [codec.pack(turned).hex()], "L7"),
        merge("more rows than the limit", SELECT, [codec.pack(long).hex()], "L7"),
        merge("other columns than the program's", GROUP, [codec.pack(cells).hex()], "L7"),
    ]


def _packed() -> list[Case]:
    values: list[Json] = [
        [None],
        [False],
        [True],
        [0],
        [1],
        [-1],
        [0.5],
        [2**53 + 1],
        [2**63 - 1],
        [-(2**63)],
        [1e300],
        ["a"],
        ["a\0b"],
        ["é"],
        [[1, "a"]],
        [{"b": 1, "a": [None]}],
        ["s1", "inv-mb-u1"],
    ]
    return [Case(f"packed: {value!r}", "L2", {"packed": value}) for value in values]


def _statuses() -> list[Case]:
    def at(status: str, when: str, reason: str = "") -> Json:
        return {"type": "Ready", "status": status, "lastTransitionTime": when, "reason": reason}

    rolled = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
    widget = {**KEY, "group": "example.com", "resource": "widgets"}
    job = {**KEY, "group": "batch", "resource": "jobs"}
    listed: list[tuple[str, Json, list[Json]]] = [
        ("one copy", KEY, [{"replicas": 3, "odd": [1]}]),
        (
            "two Deployments",
            KEY,
            [
                {
                    "replicas": 3,
                    "readyReplicas": 3,
                    "unavailableReplicas": 1,
                    "conditions": [rolled],
                },
                {"replicas": 2, "readyReplicas": 1, "unavailableReplicas": 4, "other": 7},
            ],
        ),
        (
            "two custom resources",
            widget,
            [
                {
                    "count": 3,
                    "on": True,
                    "phase": "Up",
                    "conditions": [at("True", "2026-01-01T00:00:00Z", "a")],
                },
                {
                    "count": 2,
                    "on": False,
                    "phase": "Down",
                    "conditions": [at("False", "2026-01-02T00:00:00Z", "b")],
                },
            ],
        ),
        ("two that say the same", widget, [{"phase": "Up"}, {"phase": "Up"}]),
        ("a map and a text", widget, [{"a": {"b": 1}}, {"a": "b"}]),
        (
            "two Jobs",
            job,
            [
                {"startTime": "2026-01-02T00:00:00Z", "succeeded": 1},
                {"startTime": "2026-01-01T00:00:00Z"},
            ],
        ),
        ("none", widget, []),
    ]
    alone = [
        Case(f"statuses: {name}", "L2", {"key": key, "statuses": [_copy(each) for each in said]})
        for name, key, said in listed
    ]
    return [*alone, *_contents(widget)]


def _copy(status: Json, content: str = "", generation: int = 0) -> Json:
    return {"status": status, "content": content, "generation": generation}


def _contents(widget: Json) -> list[Case]:
    content = bytes(range(16)).hex()
    seen = {
        "observedGeneration": 7,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 6}],
    }
    listed = [
        ("a copy that holds what was sent", widget, [_copy(seen, content, 7)]),
        ("a copy that holds something else", widget, [_copy(seen, "", 7)]),
        ("a copy that was not observed", widget, [_copy(seen, content, 8)]),
        ("two copies of one content", widget, [_copy(seen, content, 7), _copy(seen, content, 8)]),
        (
            "a Deployment without status",
            KEY,
            [_copy(None), _copy({"replicas": 3, "updatedReplicas": 1})],
        ),
        ("a Pod without status", {**KEY, "group": "", "resource": "pods"}, [_copy(None)]),
        (
            "a Deployment that tells no generation, of generation 0 and 3",
            KEY,
            [_copy({"replicas": 3}, content, 0), _copy({"replicas": 3}, content, 3)],
        ),
        (
            "a generation in digits, and one that is no number",
            widget,
            [
                _copy({"observedGeneration": "7"}, content, 7),
                _copy({"observedGeneration": "all"}, content, 0),
            ],
        ),
        ("a custom resource without status", widget, [_copy(None), _copy({"a": 1})]),
        (
            "a ReplicaSet that fails",
            {**KEY, "resource": "replicasets"},
            [_copy({"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "é"}]})],
        ),
        (
            "a DaemonSet",
            {**KEY, "resource": "daemonsets"},
            [
                _copy(
                    {
                        "desiredNumberScheduled": 3,
                        "numberReady": 1,
                        "numberMisscheduled": 2,
                        "odd": 1,
                    }
                )
            ],
        ),
    ]
    return [
        Case(f"statuses: {name}", "L2", {"key": key, "statuses": said})
        for name, key, said in listed
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    if "packed" in given:
        return {"hex": pack_values(given["packed"]).hex()}
    if "statuses" in given:
        return _aggregated(given)
    return _row(given) if "row" in given else _merged(given)


@cache
def _evaluator() -> CelEvaluator:
    return CelEvaluator()


def _program(given: Json) -> Program:
    return convert(Program, from_json(given["program"]), "program")


def _row(given: Json) -> Json:
    program = _program(given)
    bound = _evaluator().bind(program, codec.canonical(given["object"]))
    status = given["status"]
    said = None if status is None else codec.canonical(status)
    moments = (0 if said is None else given["returned_ms"], given["reported_ms"])
    outcome = bound.outcome(CopyView(given["name"], said, *moments, given["reachable"]))
    member = RowOwner(given["name"], DestinationId(given["destination"]))
    algebra = TableAlgebra(program)
    table = algebra.write(algebra.leaf(outcome, member.who))
    return {"id": program.id, **_shown(table)}


def _merged(given: Json) -> Json:
    algebra = TableAlgebra(_program(given))
    try:
        tables = [algebra.read(bytes.fromhex(each)) for each in given["merge"]]
    except RecordRefused:
        return {"verdict": "refused"}
    table = algebra.write(algebra.merge(tables))
    return {"verdict": "merged", **_shown(table)}


def _shown(table: bytes) -> Json:
    """A table's bytes and fields. Texts of errors are each program's own, and so are bytes then."""
    *fields, errors = codec.unpack(table)
    bare = [[column, of_row, who, "", count] for column, of_row, who, _text, count in errors]
    shown = {"shown": as_json([*fields, bare])}
    return shown if errors else {**shown, "table": table.hex()}


def _aggregated(given: Json) -> Json:
    key, algebra = ObjectKey(**given["key"]), AggregateAlgebra()
    copies = []
    for said in given["statuses"]:
        status = None if said["status"] is None else codec.canonical(said["status"])
        content = bytes.fromhex(said["content"])
        merging = _evaluator().merging(key, status, content, said["generation"])
        if merging is not None:
            copies.append(Aggregate(1, *merging))
    merged = algebra.write(algebra.merge(copies))
    _, _, node = codec.unpack(merged)
    return {
        "each": [algebra.write(copy).hex() for copy in copies],
        "merged": merged.hex(),
        "merge": as_json(codec.unpack(node)),
    }
