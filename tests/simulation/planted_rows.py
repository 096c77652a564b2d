"""Faults planted in what relays say of collectors: rows that are too many, too few, or altered."""

from __future__ import annotations

from dataclasses import replace

from relay.core import effects as fx
from relay.core.collectors.cells import from_units, in_units
from relay.core.collectors.tables import CollectedRow, CollectedTable, TableAlgebra
from relay.core.effects import Effect
from schemas.reports.collectors import Collected, Program
from schemas.reports.reports import Report, ReportPart, decode_report
from schemas.values.identity import MailKey, NodePath
from schemas.values.ordered_values import pack_values
from schemas.values.wire import encode
from schemas.values.wire import replace as said_anew
from tests.simulation.collectors import GROUPED, PROGRAMS
from tests.simulation.host import Host
from tests.simulation.ports import Ports

BY_ID = {program.id: program for program in PROGRAMS}


class RetoldRows(Ports):
    """A report says something else of its rows."""

    def table(self, host: Host, key: MailKey, said: Collected, program: Program) -> CollectedTable:
        raise NotImplementedError

    def gone(self, host: Host, key: MailKey) -> None:
        """A node says that nothing of a placement is left there."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, fx.SendReport) or effect.key[0] == "_" or not effect.data:
            return [effect]
        report: Report | ReportPart = decode_report(effect.data)
        if isinstance(report, Report) and report.gone:
            self.gone(host, report.key)
        retold = []
        for each in report.collected:
            program = BY_ID[each.program]
            table = self.table(host, report.key, each, program)
            retold.append(said_anew(each, rows=TableAlgebra(program).write(table)))
        if retold:
            report = said_anew(report, collected=tuple(retold))
        return [fx.SendReport(effect.key, encode(report))]

    @staticmethod
    def read(said: Collected, program: Program) -> CollectedTable:
        return TableAlgebra(program).read(said.rows)


class _KeepsRows(RetoldRows):
    """A relay adds what an edge below it said once."""

    def __init__(self) -> None:
        self._once: dict[tuple[NodePath, MailKey, object, str], CollectedTable] = {}
        self.left: set[tuple[NodePath, MailKey]] = set()

    def is_added(self, host: Host, edge: NodePath, key: MailKey) -> bool:
        raise NotImplementedError

    def gone(self, host: Host, key: MailKey) -> None:
        self.left.add((host.path, key))

    def table(self, host: Host, key: MailKey, said: Collected, program: Program) -> CollectedTable:
        table = self.read(said, program)
        if host.attached:
            self._once[host.path, key, said.key, program.id] = table
            return table
        added = [
            once
            for (edge, placement, obj, ident), once in self._once.items()
            if (placement, obj, ident) == (key, said.key, program.id)
            and not edge.is_root
            and edge.parent == host.path
            and self.is_added(host, edge, key)
        ]
        return TableAlgebra(program).merge([table, *added])


class MovedRowTwice(_KeepsRows):
    """A relay goes on counting the row of an edge that hangs elsewhere now."""

    def is_added(self, host: Host, edge: NodePath, key: MailKey) -> bool:
        del key
        return edge.name not in host.streams.children


class LeavingRowKept(_KeepsRows):
    """A relay goes on counting the row of an edge that the placement is not meant for any more."""

    def is_added(self, host: Host, edge: NodePath, key: MailKey) -> bool:
        del host
        return (edge, key) in self.left


class NoBlankRow(RetoldRows):
    """A relay leaves out those of whom nothing is reported."""

    def table(self, host: Host, key: MailKey, said: Collected, program: Program) -> CollectedTable:
        del host, key
        table, blank = self.read(said, program), pack_values(["blank"])
        if program != GROUPED:
            return table
        rows = {group: row for group, row in table.rows.items() if group != blank}
        return replace(table, rows=rows)


class CutBeforeMerging(RetoldRows):
    """Each tier keeps the first row that it has, and forgets the rest."""

    def table(self, host: Host, key: MailKey, said: Collected, program: Program) -> CollectedTable:
        del host, key
        table = self.read(said, program)
        return replace(table, rows=dict(list(table.rows.items())[:1]), rest=None, cut=None)


class SumsRounded(RetoldRows):
    """Each tier rounds the sums that it passes on."""

    def table(self, host: Host, key: MailKey, said: Collected, program: Program) -> CollectedTable:
        del host, key
        table = self.read(said, program)
        if program != GROUPED:
            return table
        rows = {group: self._rounded(row) for group, row in table.rows.items()}
        return replace(table, rows=rows, rest=table.rest and self._rounded(table.rest))

    @staticmethod
    def _rounded(row: CollectedRow) -> CollectedRow:
        count, total, top = row.cells
        return CollectedRow(row.count, (count, in_units(float(round(from_units(total)))), top))
