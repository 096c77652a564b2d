"""Faults planted in what gates say, in who obeys them, and in what waves count."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from relay.core import effects as fx
from relay.core.effects import Effect
from schemas.records.records import BUCKETS, DeltaHead, Gate
from schemas.records.signed_records import EncodedBody
from schemas.reports.reports import CELL_FORMER, Cell, Count, Report, Summary, cell, decode_report
from schemas.values.identity import MailKey
from schemas.values.subjects import TAKEN_KEY
from schemas.values.wire import encode, replace
from tests.simulation.host import Host
from tests.simulation.ports import Ports

# What the centre signs.


class Gates(Ports):
    """The gates of placements under a rollout are signed otherwise than decided."""

    def issued(self, draft: Any) -> Any:
        if not isinstance(draft.record, DeltaHead) or not draft.record.is_gated:
            return draft
        body = draft.body.value
        changed = tuple(self.gates(draft.record.source.name, body.gates))
        data = EncodedBody.of(replace(body, gates=changed))
        head = replace(draft.record, body_hash=hashlib.sha256(data.data).digest())
        return dataclasses.replace(draft, record=head, body=data)

    def gates(self, _name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        """The gates that are signed."""
        return gates


class AllOpened(Gates):
    """A percentage opens to all at once."""

    def gates(self, _name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        return tuple(replace(gate, below=BUCKETS) for gate in gates)


class SaltOfWave(Gates):
    """Each wave draws lots anew: who was in is out."""

    def gates(self, _name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        return tuple(replace(gate, salt=f"{gate.salt}{gate.below}") for gate in gates)


class AbortLeavesGate(Gates):
    """Gates by label stay when the revision that they were opened for is gone."""

    def __init__(self) -> None:
        self._labelled: dict[str, dict[str, Gate]] = {}

    def gates(self, name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        kept = self._labelled.setdefault(name, {})
        kept |= {gate.name: gate for gate in gates if gate.selector is not None}
        return (*kept.values(), *gates)


class WindowOfCentre(Gates):
    """A window without zone opens by the clock of the centre."""

    def gates(self, _name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        return tuple(
            replace(gate, windows=tuple(replace(each, zone="UTC") for each in gate.windows))
            for gate in gates
        )


class PathsIgnored(Gates):
    """A gate that is bound to a path admits whoever else it matches, too."""

    def gates(self, _name: str, gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
        return tuple(replace(gate, path=Gate(None).path) for gate in gates)


class SharedPastGate(Ports):
    """What another placement has newer goes past the gates; nor is a step steady."""

    def issued(self, draft: Any) -> Any:
        if not isinstance(draft.record, DeltaHead):
            return draft
        return dataclasses.replace(draft, record=replace(draft.record, rollout_since=0))


class HistorySwept(Ports):
    """Contents that nobody gets are swept, whatever the history names."""

    def history(self, _honest: Sequence[Any]) -> Sequence[Any]:
        return ()


# Who obeys.


class TakenForgotten(Ports):
    """What an edge took through a window that closed meanwhile it does not remember."""

    def said(self, _host: Host, effect: Effect) -> list[Effect]:
        note = isinstance(effect, fx.StoreOwn) and effect.key == TAKEN_KEY
        return [] if note else [effect]


# What is counted.


class Cells(Ports):
    """Cells are said otherwise than they are."""

    def said(self, host: Host, effect: Effect) -> list[Effect]:
        if not isinstance(effect, fx.SendReport) or not effect.data:
            return [effect]
        if effect.key.startswith("_"):
            return [effect]
        report = decode_report(effect.data)
        if not isinstance(report, Report) or not report.summary.cells:
            return [effect]
        changed = replace(report, summary=self.summary(host, report.key, report.summary))
        return [replace(effect, data=encode(changed))]

    def summary(self, _host: Host, _key: MailKey, honest: Summary) -> Summary:
        """What is reported."""
        return honest


class WaveMixed(Cells):
    """An edge counts in the wave in which it was first."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, MailKey], str] = {}

    def summary(self, host: Host, key: MailKey, honest: Summary) -> Summary:
        parsed = [Cell.parse(text) for text in honest.cells]
        if not host.attached or len(parsed) != 1 or parsed[0] is None:
            return honest
        first = self._first.setdefault((host.incarnation, key), parsed[0].gate)
        return replace(honest, cells={cell(first, *parsed[0][1:]): 1})


class WaitingSynced(Cells):
    """Who waits for a window counts as synced."""

    def summary(self, _host: Host, _key: MailKey, honest: Summary) -> Summary:
        cells = {text.replace("/waiting/", "/synced/"): n for text, n in honest.cells.items()}
        states = {"synced" if s == "waiting" else s: n for s, n in honest.states.items()}
        return replace(honest, cells=cells, states=states)


class FormerStepCounted(Cells):
    """A relay says of a former step that it is the present one."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, MailKey], Mapping[str, int]] = {}

    def summary(self, host: Host, key: MailKey, honest: Summary) -> Summary:
        at = (host.incarnation, key)
        if CELL_FORMER in honest.cells:
            return replace(honest, cells=self._last.get(at, {}))
        self._last[at] = honest.cells
        return honest


class UnreachableSynced(Ports):
    """Members that are away count as well as those that are there."""

    def count(self, _host: Host, _key: MailKey, honest: Count) -> Count:
        cells = dict(honest.summary.cells)
        for text in [text for text in cells if "/unreachable/" in text]:
            wave = text.partition("/")[0]
            healthy = cell(wave, "synced", "healthy")
            cells[healthy] = cells.get(healthy, 0) + cells.pop(text)
        return dataclasses.replace(honest, summary=replace(honest.summary, cells=cells))


class CellLost(Ports):
    """One cell of several is lost on the way."""

    def count(self, _host: Host, _key: MailKey, honest: Count) -> Count:
        kept = dict(sorted(honest.summary.cells.items())[:1])
        return dataclasses.replace(honest, summary=replace(honest.summary, cells=kept))
