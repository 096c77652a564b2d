"""A Rollout as tables that fit 80 columns: its waves, its history, and all that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.show.durations import age_text, span_text
from leafcast.show.layout import Group, Table, Text, View
from schemas.records.placements import KINDS

Form = Mapping[str, Any]

CAUSE_WIDTH_MAX = 32
REJECTED_NAMED_MAX = 4
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
_WAVE_STYLES = {"Failed": "red", "Done": "green", "Promoted": "green"}
_OPEN = frozenset({"Pending", "AwaitingApproval", "Progressing", "Soaking"})
_ENDED = frozenset({"Complete", "Partial", "Aborted"})


def rollout_view(obj: Form, _now_ms: int) -> View:
    """How far a Rollout is: a line, a row for each wave, what it waits for, and what to do."""
    status: Form = obj.get("status") or {}
    name = str(obj["metadata"]["name"])
    if not status.get("revision"):
        return Text.assemble((name, "bold"), "  ", status.get("message") or "waits for the centre")
    parts: list[View | Text] = [Text.assemble((name, "bold"), "  ", rollout_headline(status))]
    if waves := status.get("waves", ()):
        parts.append(_waves(status, waves))
    parts += [Text(line, overflow="fold") for line in rollout_notes(status)]
    if status.get("next"):
        parts.append(Text.assemble("Next: ", (str(status["next"]), "bold"), overflow="fold"))
    return Group(*parts)


def history_view(obj: Form, now_ms: int) -> View:
    """The revisions whose content is kept, the newest first."""
    status: Form = obj.get("status") or {}
    history: Sequence[Form] = status.get("history", ())
    if not history:
        return Text("No revision yet.")
    table = _table("revision", "age", "user")
    table.add_column("CHANGE-CAUSE", max_width=CAUSE_WIDTH_MAX)
    table.add_column("OUTCOME")
    for revision in sorted(history, key=lambda it: -int(it["number"])):
        number = int(revision["number"])
        current = number == status.get("revision") and status.get("phase") not in _ENDED
        outcome = revision.get("outcome") or (_present(status) if current else "-")
        age, user = age_text(revision.get("time"), now_ms), revision.get("user") or "-"
        table.add_row(str(number), age, user, revision.get("cause") or "-", outcome)
    return table


_UNATTENDED = {
    "Waiting": "It goes on by itself once what it waits for is there.",
    "Progressing": "It goes on by itself once this step holds what its wave asks for.",
    "Soaking": "It goes on by itself when the wave has soaked, if nothing fails until then.",
    "AwaitingApproval": "It stays as it is until somebody approves.",
    "Paused": "It stays as it is until somebody resumes it.",
    "Held": "It stays as it is until what holds it is mended or decided.",
    "Aborted": "It stays aborted: the former content is in force where it went back.",
    "Complete": "Nothing: all waves are done.",
    "Partial": "Nothing: all waves are done, and not all destinations are in one of them.",
}


def unattended(status: Form) -> str:
    """What happens next if nobody acts."""
    wave = wave_in_hand(status)
    if wave is not None and wave.get("phase") == "Failed":
        return "It stays at this wave, which failed, until somebody mends the content or decides."
    return _UNATTENDED.get(str(status.get("phase", "Waiting")), "")


def _present(status: Form) -> str:
    """What the revision in hand is at: whether it goes on, or what keeps it."""
    wave = wave_in_hand(status)
    if wave is not None and wave.get("phase") == "Failed":
        return "failed"
    return _PHASES.get(str(status.get("phase")), "under way")


def rollouts_view(listed: Sequence[Form], now_ms: int) -> View:
    """All Rollouts, a row each: of which placement, how far, and what each waits for."""
    if not listed:
        return Text("No Rollout yet: apply one with `leafcast apply -f FILE`.", overflow="fold")
    table = _table("name", "placement", "revision", "state", "wave", "age", "message")
    for obj in listed:
        status: Form = obj.get("status") or {}
        phase = str(status.get("phase") or "Waiting")
        state = Text(_PHASES.get(phase, phase.lower()), style=_STYLES.get(phase, ""))
        wave = status.get("waveName") if phase not in _ENDED else ""
        table.add_row(
            str(obj["metadata"]["name"]),
            steered(obj),
            str(status.get("revision") or "-"),
            state,
            wave or "-",
            age_text(obj["metadata"].get("creationTimestamp"), now_ms),
            status.get("message") or "-",
        )
    return table


def steered(obj: Form) -> str:
    """The placement that a Rollout steers, as commands take it: `epl/shop`."""
    said = obj["spec"]["placement"]
    shorts = {kind.kind: kind.short for kind in KINDS}
    return f"{shorts.get(said.get('kind') or 'EdgePlacement', 'epl')}/{said['name']}"


def rollout_headline(status: Form) -> Text:
    """Which revision it is at, in which wave, and how that fares."""
    phase = str(status.get("phase", "Waiting"))
    said = [f"revision {status['revision']}"]
    if status.get("overRevision"):
        said[0] += f" over {status['overRevision']}"
    wave = wave_in_hand(status)
    if wave is not None and phase not in _ENDED:
        waves: Sequence[Form] = status["waves"]
        said.append(f"wave {waves.index(wave) + 1} of {len(waves)}, {wave['name']}: {_doing(wave)}")
    word = _PHASES.get(phase)
    if word is not None and (wave is None or phase != "AwaitingApproval"):
        said.append(word)
    return Text("  ".join(said), style=_STYLES.get(phase, ""))


def wave_in_hand(status: Form) -> Form | None:
    """The wave that it is at."""
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
        return _asked(wave)
    steps: Sequence[Form] = wave.get("steps", ())
    if phase == "Progressing" and len(steps) > 1:
        return f"step {min(int(wave.get('step', 0)) + 1, len(steps))} of {len(steps)}"
    return str(phase).lower()


def _waves(status: Form, waves: Sequence[Form]) -> Table:
    """A row for each wave, its name whole; whom it admits comes last, where it may be cut."""
    table = Table()
    table.add_column("WAVE", overflow="fold")
    table.add_column("STATE", no_wrap=True)
    for title in _COUNTS:
        table.add_column(title.upper(), justify="right", no_wrap=True)
    table.add_column("GATE")
    for wave in waves:
        counts = [_count(wave.get(title)) for title in _COUNTS]
        table.add_row(str(wave["name"]), wave_state(status, wave), *counts, str(wave["gate"]))
    return table


def wave_state(status: Form, wave: Form) -> Text:
    """How far a wave is."""
    phase = wave.get("phase", "Pending")
    if status.get("phase") == "Aborted" and phase in _OPEN:
        return Text("aborted", style="red") if wave.get("step") else Text("not begun")
    if phase == "AwaitingApproval" or _asks_before(wave):
        return Text(_asked(wave), style="yellow")
    if phase == "Pending":
        return Text("pending", style="dim")
    return Text(str(phase).lower(), style=_WAVE_STYLES.get(phase, ""))


def _asked(wave: Form) -> str:
    return "admits nobody" if wave.get("step") and wave.get("reason") else "needs approval"


def _asks_before(wave: Form) -> bool:
    """Whether a person is to let it begin, and has not."""
    asks = wave["definition"].get("approval") == "before" and not wave.get("approvedBefore")
    return asks and wave.get("phase", "Pending") == "Pending"


def rollout_notes(status: Form) -> Iterator[str]:
    """What else there is to know: pins, what is frozen or rejected, what it waits for."""
    if status.get("complete") is False:
        yield "Not all have answered yet: counts are at least."
    if status.get("late"):
        yield f"Late: {status['late']} failing since the rollout ended."
    for pin in status.get("pins", ()):
        yield f"Pinned: {pin['path']} to revision {pin['revision']}"
    for freeze in status.get("freezes", ()):
        yield f"Frozen: {freeze['path']}"
    if rejected := status.get("rejected"):
        yield _rejected(rejected)
    if status.get("message"):
        yield str(status["message"])


def _rejected(said: Form) -> str:
    """What does not go out, as it was taken back, though the centre says it."""
    names, count = list(said.get("names") or ())[:REJECTED_NAMED_MAX], said.get("objects") or 0
    more = f" and {count - len(names)} more" if count > len(names) else ""
    of = f"revision {said['revision']}" if said.get("revision") else "a revision"
    taken_back = f"{of} was {str(said['reason']).lower()}"
    return f"Rejected: {taken_back}, and the centre still says it: {', '.join(names)}{more}"


def _count(count: object) -> str:
    return f"{count:,}" if isinstance(count, int) else "-"


def _table(*titles: str) -> Table:
    table = Table()
    for title in titles:
        table.add_column(title.upper(), overflow="fold")
    return table
