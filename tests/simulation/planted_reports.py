"""Faults planted where a node reports, and where what was reported is counted."""

from __future__ import annotations

import dataclasses
from typing import Any

from relay.core import effects as fx
from relay.core.effects import Effect
from relay.core.events import Event, HelloArrived, ObjectObserved, ReportArrived
from schemas.reports.link import Hello, Progress
from schemas.reports.reports import CELL_FORMER, Report, Summary, decode_report
from schemas.values.identity import MailKey
from schemas.values.wire import decode, encode, replace
from tests.simulation.host import Host
from tests.simulation.ports import Ports

PROGRESS = "_progress"


def _without_progress(hello: bytes) -> bytes:
    return encode(replace(decode(Hello, hello), reports=b""))


class NoProgress(Ports):
    """A child never says how far its reports reach."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.SendHello):
            return [fx.SendHello(_without_progress(effect.data))]
        return [] if isinstance(effect, fx.SendReport) and effect.key == PROGRESS else [effect]


class ProgressEarly(Ports):
    """A child says that its reports reflect all its mailbox, whatever of it was read."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        parent = host.world.hosts.get(host.path.parent) if not host.path.is_root else None
        if isinstance(effect, fx.SendReport) and effect.key == PROGRESS and parent is not None:
            mail = parent.streams.mail.items()
            written = [kept.sequence for (child, _), kept in mail if child == host.path.name]
            progress = decode(Progress, effect.data)
            through = max(written, default=progress.through)
            early = replace(progress, through=through, mail=b"")
            effect = fx.SendReport(effect.key, encode(early))
        return [effect]


class ProgressUnheard(Ports):
    """A parent below the centre takes no progress."""

    def heard(self, host: Host, event: Event) -> list[Event]:
        if host.path.is_root:
            return [event]
        if isinstance(event, HelloArrived):
            return [HelloArrived(event.child, _without_progress(event.data))]
        return [] if isinstance(event, ReportArrived) and event.key == PROGRESS else [event]


class AlwaysExact(Ports):
    """The centre takes every count for exact: nothing is waited for, no sum is compared."""

    def count(self, _host: Host, _key: MailKey, honest: Any) -> Any:
        return dataclasses.replace(honest, exact=True)


class SumUncompared(Ports):
    """The centre takes a count for exact once nothing is waited for, whatever its states sum to."""

    def count(self, _host: Host, _key: MailKey, honest: Any) -> Any:
        former = CELL_FORMER in honest.summary.cells
        return dataclasses.replace(honest, exact=not honest.waiting_for and not former)


class NeverExact(Ports):
    """No count is ever exact."""

    def count(self, _host: Host, _key: MailKey, honest: Any) -> Any:
        return dataclasses.replace(honest, exact=False)


class Retold(Ports):
    """A report says something else of its states."""

    def states(self, states: dict[str, int]) -> dict[str, int]:
        raise NotImplementedError

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        if isinstance(effect, fx.SendReport) and effect.key[0] != "_" and effect.data:
            report = decode_report(effect.data)
            if isinstance(report, Report):
                states = self.states(dict(report.summary.states))
                summary: Summary = replace(report.summary, states=states)
                effect = fx.SendReport(effect.key, encode(replace(report, summary=summary)))
        return [effect]


class SyncedEarly(Retold):
    """What is pending is reported as synced."""

    def states(self, states: dict[str, int]) -> dict[str, int]:
        pending = states.pop("pending", 0)
        return {**states, "synced": states.get("synced", 0) + pending} if pending else states


class CountTwice(Retold):
    """Each destination is counted twice."""

    def states(self, states: dict[str, int]) -> dict[str, int]:
        return {state: 2 * count for state, count in states.items()}


class FailuresUntold(Retold):
    """What fails is reported as synced."""

    def states(self, states: dict[str, int]) -> dict[str, int]:
        failing = states.pop("failing", 0)
        return {**states, "synced": states.get("synced", 0) + failing} if failing else states


class ReasonsUntold(Ports):
    """Why an object was refused is told nobody."""

    def heard(self, _host: Host, event: Event) -> list[Event]:
        if isinstance(event, ObjectObserved) and event.error:
            event = replace(event, error="", status=None)
        return [event]


class NoReports(Ports):
    """A child reports nothing of placements."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        return [] if isinstance(effect, fx.SendReport) and effect.key[0] != "_" else [effect]
