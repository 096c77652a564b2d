"""What a child may report: bounded at the first hop, so that no child speaks for another.

A merge of what is taken here is taken at the next hop too: sums, arms, exceptions and texts stop at
the bounds that hold there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from relay.core.gates import GateNames
from relay.core.reports.parts import PARTS_MAX
from relay.core.reports.reduce import fit_arms, fit_cells
from schemas.reports.link import Progress
from schemas.reports.reports import (
    ARM_OTHER,
    ARM_WORDS,
    ARMS_MAX,
    CELL_FORMER,
    CELL_OTHER,
    CELLS_MAX,
    COUNT_MAX,
    EXCEPTIONS_MAX,
    KEPT_COPIES_MAX,
    PART_MAX_BYTES,
    REPAIRS_MAX,
    TEXT_MAX_BYTES,
    Cell,
    ExceptionSample,
    Health,
    RepairSample,
    Report,
    ReportPart,
    State,
    Summary,
    decode_report,
    part_key,
)
from schemas.values.identity import MailKey, NodePath
from schemas.values.refusals import BadIdentity, RecordRefused
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import decode, encode, replace

SEVERITY_MAX = 9
RUN_MAX_BYTES = 64
DIGEST_BYTES = 16
SUMMARY_MAX_BYTES = PART_MAX_BYTES - 5 * 1024
"""The rest is the report's own fields, and what collectors collected beside it."""
_STATES, _HEALTH = frozenset(get_args(State)), frozenset(get_args(Health))
_ADDRESS = re.compile(r"[0-9a-f]{64}\Z")

SlotContent = Report | ReportPart | Progress


class ReportIntake:
    """Reads the report slots of one node's children."""

    def __init__(
        self,
        owner: NodePath,
        sent: Callable[[str, MailKey], int | None],
        named: Callable[[MailKey], GateNames | None],
    ) -> None:
        """`sent` is the highest generation of a placement that was written to a child.

        None of what it was not sent: a report on that counts for nothing. `named` are the names in
        the delta in force; None if they are not known here.
        """
        self._owner = owner
        self._sent = sent
        self._named = named

    def read(self, child: str, slot: str, data: bytes) -> SlotContent | None:
        """What a slot says, None if it was emptied; raises RecordRefused, whatever the bytes are.

        Each thing has one slot where it may be said, so a child has only so many.
        """
        if not data:
            return None
        if slot == PROGRESS_KEY:
            return _read_progress(data)
        report = decode_report(data)
        if report.part > PARTS_MAX or part_key(report.key, report.part) != slot:
            raise RecordRefused(f"part {report.part} of {report.key} under {slot}")
        check_run(report.run)
        sent = self._sent(child, report.key)
        if sent is not None and report.generation > sent:
            raise RecordRefused(f"generation {report.generation}, and {sent} was sent")
        if isinstance(report, ReportPart):
            _check_results(report)
            return report
        if report.parts > PARTS_MAX:
            raise RecordRefused(f"{report.parts} parts, at most {PARTS_MAX}")
        _check_counts((report.unsaid,))
        _check_summary(report.summary, self._owner.child(child))
        names = self._named(report.key)
        arms = own_arms(report.summary.arms, names.arms if names is not None else None)
        cells = own_cells(report.summary.cells, names.waves if names is not None else frozenset())
        return replace(report, summary=replace(report.summary, arms=arms, cells=cells))


def bounded(summary: Summary) -> Summary:
    """The summary with texts as long as a parent takes them, and no longer than it takes it."""
    texts = [s.object + s.reason for s in (*summary.exceptions, *summary.kept_copies)]
    texts += [s.object + s.field + s.manager for s in summary.repairs]
    if not all(map(_fits, texts)):
        summary = replace(
            summary,
            exceptions=tuple(map(_cut_sample, summary.exceptions)),
            kept_copies=tuple(map(_cut_sample, summary.kept_copies)),
            repairs=tuple(map(_cut_repair, summary.repairs)),
        )
    # Only cells, traces and the longest exceptions of all find no room beside each other.
    while (part := _spare(summary)) and len(encode(summary)) > SUMMARY_MAX_BYTES:
        summary = replace(summary, **{part: getattr(summary, part)[:-1]})
    return summary


def _spare(summary: Summary) -> str:
    """What of a summary is left out first if it is too long; "" if nothing needs to be."""
    if summary.repairs:
        return "repairs"
    if summary.kept_copies:
        return "kept_copies"
    return "exceptions" if summary.cells and summary.exceptions else ""


def _cut_sample(sample: ExceptionSample) -> ExceptionSample:
    return replace(sample, object=_cut(sample.object), reason=_cut(sample.reason))


def _cut_repair(repair: RepairSample) -> RepairSample:
    cut = {name: _cut(getattr(repair, name)) for name in ("object", "field", "manager")}
    return replace(repair, **cut)


def own_arms(arms: Mapping[str, int], known: frozenset[str] | None) -> dict[str, int]:
    """The arms that a placement has, or may have if none are known; the rest are `other`."""
    own: dict[str, int] = {}
    for arm, count in arms.items():
        is_own = arm in known if known is not None else _ADDRESS.match(arm) is not None
        named = arm if is_own or arm in ARM_WORDS else ARM_OTHER
        own[named] = min(own.get(named, 0) + count, COUNT_MAX)
    return fit_arms(own)


def own_cells(cells: Mapping[str, int], waves: frozenset[str]) -> dict[str, int]:
    """The cells of waves that a placement has; those of others were said of a former step.

    Without waves only who has not answered the present step is told of.
    """
    own: dict[str, int] = {}
    for text, count in cells.items():
        parsed = Cell.parse(text)
        is_own = parsed is not None and parsed.gate in waves
        named = text if is_own or text == CELL_OTHER else CELL_FORMER
        if waves or text == CELL_FORMER:
            own[named] = min(own.get(named, 0) + count, COUNT_MAX)
    return fit_cells(own)


def _read_progress(data: bytes) -> Progress:
    progress = decode(Progress, data, PART_MAX_BYTES)
    check_run(progress.run)
    check_run(progress.parent_run)
    if len(progress.digest) != DIGEST_BYTES:
        raise RecordRefused(f"progress: a digest of {len(progress.digest)} bytes")
    if len(progress.mail) not in (0, DIGEST_BYTES):
        raise RecordRefused(f"progress: a mail digest of {len(progress.mail)} bytes")
    return progress


def check_run(run: str) -> None:
    """Raises RecordRefused for what names no run: a parent remembers such names."""
    if not 0 < len(run.encode()) <= RUN_MAX_BYTES:
        raise RecordRefused(f"a run is named by at most {RUN_MAX_BYTES} bytes")


def _check_summary(summary: Summary, child: NodePath) -> None:
    """Refuse words that there are not, and what would outgrow a message; raises RecordRefused."""
    for what, counts, words in (
        ("state", summary.states, _STATES),
        ("health", summary.health, _HEALTH),
    ):
        for word in counts.keys() - words:
            raise RecordRefused(f"{what} {word[:40]!r}: there is no such word")
    for counts in (summary.states, summary.health, summary.arms, summary.cells):
        _check_counts(counts.values())
    told, whole = sum(summary.health.values()), summary.destinations
    if told > whole and whole < COUNT_MAX:
        # Who is well many times would hide others that are not.
        raise RecordRefused(f"health of {told}, and {whole} are there")
    if len(summary.exceptions) > EXCEPTIONS_MAX:
        raise RecordRefused(f"{len(summary.exceptions)} exceptions, at most {EXCEPTIONS_MAX}")
    if len(summary.arms) > ARMS_MAX:
        raise RecordRefused(f"{len(summary.arms)} arms, at most {ARMS_MAX}")
    for sample in (*summary.exceptions, *summary.kept_copies):
        _check_sample(sample, child)
    _check_traces(summary, child)
    _check_cells(summary)


def _check_traces(summary: Summary, child: NodePath) -> None:
    """Refuse more of what is kept or was repaired than is counted; raises RecordRefused."""
    _check_counts((summary.kept, summary.repaired))
    for what, told, most in (
        ("kept copies", summary.kept_copies, KEPT_COPIES_MAX),
        ("repairs", summary.repairs, REPAIRS_MAX),
    ):
        if len(told) > most:
            raise RecordRefused(f"{len(told)} {what}, at most {most}")
    if sum(sample.count for sample in summary.kept_copies) > summary.kept < COUNT_MAX:
        raise RecordRefused(f"kept copies of more than {summary.kept}")
    for repair in summary.repairs:
        _check_counts((repair.count,))
        if not all(map(_fits, (repair.object, repair.field, repair.manager))):
            raise RecordRefused(f"a text over {TEXT_MAX_BYTES} bytes")
        _check_inside(repair.path, child)


def _check_cells(summary: Summary) -> None:
    """Refuse cells that tell of more destinations than the other counts; raises RecordRefused."""
    if len(summary.cells) > CELLS_MAX:
        raise RecordRefused(f"{len(summary.cells)} cells, at most {CELLS_MAX}")
    states: dict[str, int] = {}
    health: dict[str, int] = {}
    for text, count in summary.cells.items():
        if text in (CELL_OTHER, CELL_FORMER):
            continue
        parsed = Cell.parse(text)
        if parsed is None:
            raise RecordRefused(f"cell {text[:60]!r}: it is none")
        states[parsed.state] = states.get(parsed.state, 0) + count
        health[parsed.health] = health.get(parsed.health, 0) + count
    for told, whole in ((states, summary.states), (health, summary.health)):
        for word, count in told.items():
            if min(count, COUNT_MAX) > whole.get(word, 0):
                raise RecordRefused(
                    f"cells of {count} {word[:40]}, and {whole.get(word, 0)} are so"
                )


def _check_sample(sample: ExceptionSample, child: NodePath) -> None:
    if sample.severity > SEVERITY_MAX:
        raise RecordRefused(f"severity {sample.severity}, at most {SEVERITY_MAX}")
    _check_counts((sample.count,))
    if not (_fits(sample.object) and _fits(sample.reason)):
        raise RecordRefused(f"a text over {TEXT_MAX_BYTES} bytes")
    _check_inside(sample.path, child)


def _check_inside(path: str, child: NodePath) -> None:
    try:
        inside = child.holds(NodePath.parse(path))
    except BadIdentity as error:
        raise RecordRefused(f"exception: {error}") from error
    if not inside:
        raise RecordRefused(f"an exception at {path}, which is not below {child}")


def _check_results(part: ReportPart) -> None:
    _check_counts([result.count for result in part.results])
    if not all(_fits(result.destination) for result in part.results):
        raise RecordRefused(f"a destination over {TEXT_MAX_BYTES} bytes")


def _check_counts(counts: Iterable[int]) -> None:
    if max(counts, default=0) > COUNT_MAX:
        raise RecordRefused(f"a count over {COUNT_MAX}")


def _fits(text: str) -> bool:
    return len(text) * 4 <= TEXT_MAX_BYTES or len(text.encode()) <= TEXT_MAX_BYTES


def _cut(text: str) -> str:
    return text.encode()[:TEXT_MAX_BYTES].decode(errors="ignore")
