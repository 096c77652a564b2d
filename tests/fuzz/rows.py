"""What collectors are asked, and what comes back: programs, expressions, rows, aggregates."""

from __future__ import annotations

import json
from contextlib import suppress

from controllers.core.status.aggregated import aggregated
from controllers.core.status.combined import combined_status
from controllers.core.status.generations import HubContent, of_all_copies
from controllers.core.status.job_statuses import storable
from leafcast.ask.combined import read_combined
from leafcast.ask.decode import BadAnswer
from leafcast.node.answers import read_filter
from relay.core.asks.answers import BadAskArguments
from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.core.collectors.collected_results import Result
from relay.core.collectors.ports import CopyView, RowOwner
from relay.core.collectors.tables import CollectedTable, TableAlgebra
from relay.objects.expressions.cel import CompiledExpression, ExpressionRefused
from relay.objects.expressions.filters import DESTINATION
from relay.shell.evaluator import CelEvaluator
from schemas.content.blobs import open_stored
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import (
    CombinedField,
    Expression,
    Program,
    program_set,
    read_program_set,
)
from schemas.values import codec
from schemas.values.identity import DestinationId
from schemas.values.ordered_values import pack_values, unpack_values
from schemas.values.refusals import CodecError, RecordRefused
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target

WEB = ObjectKey("apps", "deployments", "shop", "web")
TYPES = ("COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT")
NUMBER = "returned.status.n"
GROUPED = Program(
    "grouped",
    group_by=(Expression("v", "obj.v"),),
    combined=tuple(
        CombinedField(t, t, "" if t == "COUNT" else NUMBER, "0.5" if t == "QUANTILE" else "")
        for t in TYPES
    ),
)
SELECTED = Program("selected", "returned.status.n > 0", select=(Expression("n", NUMBER),))
PROGRAMS = (GROUPED, SELECTED)
STATUSES = (
    {"replicas": 3, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]},
    {"ok": True, "phase": "a", "conditions": [{"type": "Ready", "status": "True"}], "in": {"n": 1}},
    {"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]},
)
SUBJECT = WEB, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"uid": "u"}}
JOB = ObjectKey("batch", "jobs", "shop", "job")
ENDED = {
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": name, "status": "True"} for name in ("Complete", "Failed")],
}
DONE = dict(zip(DESTINATION, ("/a", "synced", "healthy", "2.0", True, "", ""), strict=True))
FILTERS = ('health != "healthy" && path.startsWith("/a")', "complete ? object.size() > 3 : true")
TEXTS = (
    "1 +",
    "obj.v == 'a'",
    "returned.status.items.map(x, x.a + 1)",
    "size(inventory.name) > 3 ? 1 : 2",
)


def rows(data: bytes) -> None:
    for program in PROGRAMS:
        algebra = TableAlgebra(program)
        try:
            table = algebra.read(data)
        except RecordRefused:
            continue
        both = algebra.merge([table, table])
        assert algebra.write(algebra.read(algebra.write(both)))
        said = combined_status(
            SUBJECT, SUBJECT, [Result(WEB, program, both)], title="epl/a", complete=True
        )
        json.dumps(said, allow_nan=False)


def row_seeds() -> list[bytes]:
    evaluator, seeds = CelEvaluator(), []
    plain = codec.canonical({"v": "a"})
    for program in PROGRAMS:
        algebra, tables = TableAlgebra(program), list[CollectedTable]()
        for at in range(3):
            seen = CopyView("s", codec.canonical({"n": at + 0.5}))
            outcome = evaluator.bind(program, plain).outcome(seen)
            member = RowOwner(f"s{at}", DestinationId(f"i-mb-{at}"))
            tables.append(algebra.leaf(outcome, member.who))
        seeds += [algebra.write(tables[0]), algebra.write(algebra.merge(tables))]
    return seeds


def aggregate(data: bytes) -> None:
    algebra = AggregateAlgebra()
    try:
        read = algebra.read(data)
    except RecordRefused:
        return
    for merged in (read, algebra.merge([read, read])):
        hub = HubContent(2, frozenset({b"content"}))
        for key in (WEB, JOB, ObjectKey("apps", "daemonsets", "shop", "agent")):
            for told in (aggregated(key, [merged]), of_all_copies(key, [merged], hub, 2, None)):
                json.dumps([told, storable(key, ENDED, told)], allow_nan=False)
        assert algebra.read(algebra.write(merged)).count == merged.count


def aggregate_seeds() -> list[bytes]:
    algebra, seeds = AggregateAlgebra(), []
    for status in (*STATUSES, ENDED):
        plain = codec.canonical(status)
        for resource in ("apps/deployments", "apps/daemonsets", "batch/jobs"):
            group, name = resource.split("/")
            key = ObjectKey(group, name, "shop", "web")
            leaf = Aggregate(1, *(CelEvaluator().merging(key, plain, b"content", 3) or ()))
            seeds += [algebra.write(leaf), algebra.write(algebra.merge([leaf, leaf]))]
    return seeds


def programs(data: bytes) -> None:
    try:
        found = read_program_set(data)
    except RecordRefused:
        return
    for program in found.programs[:4]:
        CelEvaluator().bind(program, codec.canonical({"v": 1})).outcome(CopyView("s", b"\x80"))
    for each in found.objects[:4]:
        for at, blanks in list(zip(each.programs, each.blanks, strict=False))[:4]:
            bound = CelEvaluator().bind(found.programs[at], blanks)
            if not bound.lacks_object(CopyView("s")):
                bound.outcome(CopyView("s"))


def program_seeds() -> list[bytes]:
    plain = codec.canonical({"v": 1, "metadata": {"labels": {"v": "2"}}})
    blanks = {WEB: {program: CelEvaluator().blanks(program, plain) for program in PROGRAMS}}
    sets = (program_set({WEB: PROGRAMS}), program_set({WEB: PROGRAMS}, blanks))
    return [open_stored(stored) for stored in sets]


def values(data: bytes) -> None:
    with suppress(CodecError):
        pack_values(unpack_values(data))


def expression(data: bytes) -> None:
    with suppress(ExpressionRefused):
        CompiledExpression(text_of(data))


def filtered(data: bytes) -> None:
    """What a user asks of destinations, in any words."""
    with suppress(BadAskArguments):
        wanted = read_filter(text_of(data), DESTINATION)
        assert wanted is None or wanted.matches(DONE) in {True, False}


def read_back(data: bytes) -> None:
    """A CombinedStatus as it lies in a space where others write."""
    with suppress(BadAnswer, CodecError):
        read_combined({"metadata": {}, "results": codec.from_json(data)})


def read_back_seeds() -> list[bytes]:
    results = [Result(WEB, program, CollectedTable()) for program in PROGRAMS]
    said = combined_status(SUBJECT, SUBJECT, results, title="epl/a", complete=True)
    return [json.dumps(said["results"]).encode()]


TARGETS = {
    "filtered": Target(filtered, lambda: [it.encode() for it in FILTERS], bytes_max=4096),
    "combined": Target(read_back, read_back_seeds, Form.JSON),
    "rows": Target(rows, row_seeds, Form.MSGPACK),
    "aggregate": Target(aggregate, aggregate_seeds, Form.MSGPACK),
    "programs": Target(programs, program_seeds, Form.MSGPACK),
    "values": Target(values, lambda: [pack_values([None, True, 1.5, "a", [1], {"a": 1}])]),
    "expression": Target(expression, lambda: [it.encode() for it in TEXTS], bytes_max=4096),
}
