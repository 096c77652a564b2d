"""A child that says rows of a collector which no merge could take, or nobody asked for."""

import yaml

from relay.core.collectors.tables import CollectedRow, CollectedTable, TableAlgebra
from relay.core.effects import Noted
from relay.core.events import ReportArrived
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Program
from schemas.reports.reports import Report, decode_report
from schemas.values.identity import NodePath
from schemas.values.ordered_values import pack_values
from schemas.values.wire import encode, replace
from tests.doubles.memory.bus import MemoryBus
from tests.memory_tree import memory_tree
from tests.unit.test_collecting_tree import PLACEMENT, WEB

EACH = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: each}
spec: {limit: 2, select: [{name: who, def: inventory.name}]}
"""
REGION = NodePath.parse("/emea")


def table_of(*keys):
    return CollectedTable(
        len(keys), {pack_values([key]): CollectedRow(1, (pack_values([key]),)) for key in keys}
    )


def many(each):
    """More rows than the collector's limit, written as one that has another limit."""
    wide = Program("each", select=each.select, limit=9)
    return TableAlgebra(wide).write(table_of("a", "b", "c"))


WRONG = {
    "3 rows, at most 2": lambda said, each: replace(said, rows=many(each)),
    "rows": lambda said, _: replace(said, rows=b"\x93junk"),
    "which nothing collects by": lambda said, _: replace(said, program="f" * 16),
    "nothing collects": lambda said, _: replace(said, key=ObjectKey("", "secrets", "shop", "x")),
}


async def test_rows_that_nobody_asked_for_are_refused_and_change_nothing(tmp_path):
    heard = {}

    class Overheard(MemoryBus):
        async def send_report(self, reports):
            if len(self.path.names) == 2:
                heard.update(reports)
            return await super().send_report(reports)

    async with memory_tree(tmp_path, ["/emea", "/emea/s1"], make_bus=Overheard) as tree:
        await tree.apply(*map(yaml.safe_load, (EACH, WEB, PLACEMENT)))
        await tree.until("shop", lambda c: c.exact and c.summary.health == {"healthy": 1})
        key = await tree.placement_key("shop")
        driver = tree.drivers[REGION]
        report = decode_report(heard[str(key)])
        assert isinstance(report, Report)
        [result] = driver.node.collected(key)
        (row,), before = report.collected, result.rows
        for said, altered in WRONG.items():
            rows = (altered(row, result.program),)
            wrong = replace(report, revision=report.revision + 1, collected=rows)
            # Each is noted as the first one is.
            driver._machine._children.by_name["s1"].refused = 0
            arrived = ReportArrived("s1", str(key), encode(wrong))
            effects = driver._machine.handle((arrived,), tree.clock.now())
            [noted] = [effect for effect in effects if isinstance(effect, Noted)]
            assert (noted.reason, noted.subject) == ("BadReport", "s1")
            assert said in noted.detail
            [result] = driver.node.collected(key)
            assert result.rows == before
