"""A Rollout as tables that fit 80 columns: its waves, and its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.bar import Bar
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from leafcast.show.durations import age_text, span_text

Form = Mapping[str, Any]

BAR_WIDTH = 8
CAUSE_WIDTH_MAX = 32
UNBOUNDED_WIDTH = 10_000
_COUNTS = ("members", "healthy", "failing", "waiting", "unreachable")
_PHASES = {
    "Waiting": "waiting",
    "AwaitingApproval": "needs approval",
    "Paused": "paused",
    "Held": "held",
    "Aborted": "aborted",
    "Complete": "complete",
    "Partial": "partial",
}
_STYLES = {"Complete": "green", "Aborted": "red", "Held": "red", "Paused": "yellow"}
_OPEN = frozenset({"Pending", "AwaitingApproval", "Progressing", "Soaking"})
_ENDED = frozenset({"Complete", "Partial", "Aborted"})


def rollout_view(obj: Form, _now_ms: int) -> RenderableType:
    """How far a Rollout is: a line, a row for each wave, what it waits for, and what to do."""
    status: Form = obj.get("status") or {}
    name = str(obj["metadata"]["name"])
    if not status.get("revision"):
        return Text.assemble((name, "bold"), "  ", status.get("message") or "waits for the centre")
    parts: list[RenderableType] = [Text.assemble((name, "bold"), "  ", _headline(status))]
    if waves := status.get("waves", ()):
        parts.append(_Waves(status, waves))
    parts += [Text(line, overflow="fold") for line in _notes(status)]
    if status.get("next"):
        parts.append(Text.assemble("Next: ", (str(status["next"]), "bold"), overflow="fold"))
    return Group(*parts)


def history_view(obj: Form, now_ms: int) -> RenderableType:
    """The revisions whose content is kept, the newest first."""
    status: Form = obj.get("status") or {}
    history: Sequence[Form] = status.get("history", ())
    if not history:
        return Text("No revision yet.")
    table = _table("revision", "age", "user", "change-cause", "outcome")
    for revision in sorted(history, key=lambda it: -int(it["number"])):
        number = int(revision["number"])
        current = number == status.get("revision") and status.get("phase") not in _ENDED
        outcome = revision.get("outcome") or ("under way" if current else "")
        cause = Text(revision.get("cause") or "-", overflow="ellipsis", no_wrap=True)
        cause.truncate(CAUSE_WIDTH_MAX, overflow="ellipsis")
        age, user = age_text(revision.get("time"), now_ms), revision.get("user") or "-"
        table.add_row(str(number), age, user, cause, outcome)
    return table


def _headline(status: Form) -> Text:
    phase = str(status.get("phase", "Waiting"))
    said = [f"revision {status['revision']}"]
    if status.get("overRevision"):
        said[0] += f" over {status['overRevision']}"
    wave = _wave_in_hand(status)
    if wave is not None and phase not in _ENDED:
        waves: Sequence[Form] = status["waves"]
        said.append(f"wave {waves.index(wave) + 1} of {len(waves)}, {wave['name']}: {_doing(wave)}")
    word = _PHASES.get(phase)
    if word is not None and (wave is None or phase != "AwaitingApproval"):
        said.append(word)
    return Text("  ".join(said), style=_STYLES.get(phase, ""))


def _wave_in_hand(status: Form) -> Form | None:
    waves: Sequence[Form] = status.get("waves", ())
    at = int(status.get("wave", 0))
    return waves[at - 1] if 0 < at <= len(waves) else None


def _doing(wave: Form) -> str:
    """What the wave is at, with how long, or how far."""
    phase = wave.get("phase", "Pending")
    if phase == "Soaking":
        whole = wave["definition"]["soak"]
        return f"soaking {span_text(wave.get('soaked', 0))} of {whole}"
    if phase == "AwaitingApproval":
        return "needs approval"
    steps: Sequence[Form] = wave.get("steps", ())
    if phase == "Progressing" and len(steps) > 1:
        return f"step {min(int(wave.get('step', 0)) + 1, len(steps))} of {len(steps)}"
    return str(phase).lower()


class _Waves:
    """A row for each wave; by number, with names and gates below, where these take up a line."""

    def __init__(self, status: Form, waves: Sequence[Form]) -> None:
        self._status = status
        self._waves = waves

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        named = [(str(wave["name"]), str(wave["gate"])) for wave in self._waves]
        table = self._table(("wave", "gate"), named)
        wide = console.measure(table, options=options.update(width=UNBOUNDED_WIDTH)).maximum
        if wide <= options.max_width:
            yield table
            return
        numbers = [(str(at),) for at in range(1, len(named) + 1)]
        yield self._table(("wave",), numbers)
        for (number,), (name, gate) in zip(numbers, named, strict=True):
            yield Text(f"{number}  {name}  {gate}", overflow="fold")

    def _table(self, titles: Sequence[str], firsts: Sequence[Sequence[str]]) -> Table:
        table = _table(*titles)
        for title in _COUNTS:
            table.add_column(title.upper(), justify="right", no_wrap=True, min_width=len(title))
        table.add_column("", no_wrap=True, min_width=len(_PHASES["AwaitingApproval"]))
        for first, wave in zip(firsts, self._waves, strict=True):
            counts = [_count(wave.get(title)) for title in _COUNTS]
            table.add_row(*map(Text, first), *counts, _far(self._status, wave))
        return table


def _far(status: Form, wave: Form) -> RenderableType:
    phase = wave.get("phase", "Pending")
    if status.get("phase") == "Aborted" and phase in _OPEN:
        return Text("aborted", style="red") if wave.get("step") else Text("not begun")
    if phase == "AwaitingApproval" or _asks_before(wave):
        return Text("needs approval", style="yellow")
    if phase in {"Progressing", "Soaking"}:
        members, good = wave.get("members") or 0, wave.get("healthy") or 0
        return Bar(members, 0, good, width=BAR_WIDTH) if members else Text("nobody yet")
    if phase == "Pending":
        return Text("")
    return Text(str(phase).lower(), style="red" if phase == "Failed" else "green")


def _asks_before(wave: Form) -> bool:
    """Whether a person is to let it begin, and has not."""
    asks = wave["definition"].get("approval") == "before" and not wave.get("approvedBefore")
    return asks and wave.get("phase", "Pending") == "Pending"


def _notes(status: Form) -> Iterator[str]:
    if status.get("complete") is False:
        yield "Not all have answered yet: counts are at least."
    if status.get("late"):
        yield f"Late: {status['late']} failing since the rollout ended."
    for pin in status.get("pins", ()):
        yield f"Pinned: {pin['path']} to revision {pin['revision']}"
    for freeze in status.get("freezes", ()):
        yield f"Frozen: {freeze['path']}"
    if status.get("message"):
        yield str(status["message"])


def _count(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else "-"


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(title.upper(), overflow="fold")
    return table
