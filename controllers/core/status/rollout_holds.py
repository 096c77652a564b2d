"""What a Rollout, or one that was deleted, keeps of a placement's newest content from destinations.

That its waves go on is no hold; that one of them waits for a person is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from controllers.core.conditions import held
from controllers.core.rollout import kept_back
from controllers.core.rollout.empty_waves import approval_text
from controllers.core.rollout.rejection import told
from controllers.core.rollout.state import is_under_way, present, target_of
from schemas.api.placement_details import Hold
from schemas.api.rollout_status import RejectedObjects, RolloutStatus
from schemas.content.blobs import Reference
from schemas.objects.annotations import RELEASE_ROLLOUT
from schemas.records.hold_reasons import (
    AWAITING_APPROVAL,
    PINNED,
    PLACE_FROZEN,
    ROLLOUT_ABORTED,
    ROLLOUT_BLOCKED,
    ROLLOUT_DELETED,
    ROLLOUT_HELD,
    ROLLOUT_INVALID,
    ROLLOUT_PARTIAL,
    ROLLOUT_PAUSED,
    UNDONE,
    WAVE_FAILED,
    WINDOW,
)
from schemas.records.placements import short_title
from schemas.records.records import Gate
from schemas.reports.reports import Cell, Count
from schemas.values.identity import NodePath
from schemas.values.wording import some_of

PLACES_NAMED_MAX = 4
_COMMAND = "leafcast rollout"


@dataclass(frozen=True, slots=True)
class Steered:
    """A placement that a Rollout steers, or steered: who gets what, and what everyone should."""

    placement: str
    gates: tuple[Gate, ...]
    # The content that its space wants, once the centre keeps it.
    newest: Reference | None
    # The Rollout; "" if it was deleted.
    rollout: str = ""
    # What of the newest content is to go out, if some of it is rejected.
    target: Reference | None = None
    rejected: RejectedObjects | None = None
    # Whether it stays as it is, as its Rollout was deleted, though some of it is rejected.
    is_stranded: bool = False
    # Whether the annotation that lets it go counted for a Rollout before that one.
    release_counted: bool = False
    state: RolloutStatus | None = None
    # Why nothing opens: the Rollout cannot be read.
    invalid: str = ""
    # What it would send to whom if it were let go.
    news: str = ""
    # How many destinations each place has that keeps a content of its own.
    places: Mapping[NodePath, int] = field(default_factory=dict)
    # When the next window opens for someone, and which one.
    opens: str = ""

    @property
    def is_everywhere(self) -> bool:
        """Whether the gates give everyone the newest content, or nobody knows that yet."""
        return self.newest is None or kept_back.is_for_all(self.gates, self.newest)


def kept(steered: Steered, count: Count) -> int | None:
    """How many destinations the Rollout's waves keep from the newest content; None if unknown."""
    if steered.is_everywhere:
        return 0
    at_places = sum(steered.places.values())
    exact = not at_places or not count.summary.never_joined
    return kept_back.kept_in_waves(
        steered.gates, steered.newest, count, at_places if exact else None
    )


def lacking(steered: Steered, count: Count) -> int | None:
    """How many destinations lack the newest content, by waves or at a place of their own."""
    number = kept(steered, count)
    places = kept_back.places_kept(steered.gates, steered.newest)
    if number is None or not count.exact or (places and count.summary.never_joined):
        return None
    return number + sum(steered.places.get(path, 0) for path in places) + _waiting(steered, count)


def rollout_holds(steered: Steered, count: Count) -> Iterator[Hold]:
    """The holds of one placement; those that need a person first."""
    if steered.rejected is not None:
        yield _rejected(steered, steered.rejected, lacking(steered, count))
        # The rest is of what is to go out.
        steered = replace(steered, newest=steered.target)
    if not steered.rollout:
        if steered.is_stranded or steered.rejected is None:
            yield _deleted(steered, lacking(steered, count))
        return
    if steered.is_everywhere:
        return
    number = kept(steered, count)
    if number != 0 and (stands := why_waves_stand(steered)) is not None:
        yield held(*stands, number)
    yield from _of_places(steered, count)
    if hold := _of_windows(steered, count):
        yield hold


def _rejected(steered: Steered, rejected: RejectedObjects, number: int | None) -> Hold:
    """That a revision was taken back, and is still what the centre says."""
    reason = ROLLOUT_ABORTED if rejected.reason == "Aborted" else UNDONE
    return held(reason, told(rejected), remedy_of_rejected(steered), number)


def remedy_of_rejected(steered: Steered) -> str:
    """The command by which the centre says what goes out, or lets out what it says."""
    if not steered.rollout:
        return f"{_COMMAND} release {short_title(steered.placement)}"
    return f"{_COMMAND} restore {steered.rollout}, or {_COMMAND} retry {steered.rollout}"


def _deleted(steered: Steered, number: int | None) -> Hold:
    """That its Rollout is gone; who is at a place of its own is counted as all others are."""
    news = f"let go, it would send {steered.news}" if steered.news else "nothing differs now"
    said = f"its Rollout was deleted, or has another placement now: all keep what they have; {news}"
    if steered.release_counted:
        said += (
            f"; {RELEASE_ROLLOUT} on it counted for a former Rollout: take it off, and set it again"
        )
    return held(
        ROLLOUT_DELETED, said, f"{_COMMAND} release {short_title(steered.placement)}", number
    )


def why_waves_stand(steered: Steered) -> tuple[str, str, str] | None:
    """The reason, what is so, and the next command; None if the waves go on."""
    state, name = steered.state, steered.rollout
    if steered.invalid:
        said = f'rollout "{name}" cannot be read, so no wave opens: {steered.invalid}'
        return ROLLOUT_INVALID, said, f"leafcast describe rollout {name}"
    if state is None:
        return None
    about = f'rollout "{name}": '
    if state.phase == "Held":
        return ROLLOUT_HELD, about + state.message, f"{_COMMAND} resume {name}"
    if is_under_way(state):
        return _under_way(steered, state, about)
    if state.waiting_for:
        return ROLLOUT_BLOCKED, about + state.waiting_for, f"{_COMMAND} status {name}"
    return _ended(steered, state, about)


def _under_way(steered: Steered, state: RolloutStatus, about: str) -> tuple[str, str, str] | None:
    wave, name = present(state), steered.rollout
    if state.paused:
        return ROLLOUT_PAUSED, about + "paused by a person", f"{_COMMAND} resume {name}"
    if wave is not None and wave.phase == "Failed":
        said = f'{about}wave "{wave.name}" failed: {wave.reason}'
        return WAVE_FAILED, said, f"{_COMMAND} abort {name}"
    if wave is not None and wave.phase == "AwaitingApproval":
        said = about + approval_text(wave)
        return AWAITING_APPROVAL, said, f"{_COMMAND} approve {name} {wave.name}"
    if state.waiting_for:
        return ROLLOUT_BLOCKED, about + state.waiting_for, f"{_COMMAND} status {name}"
    return None


def _ended(steered: Steered, state: RolloutStatus, about: str) -> tuple[str, str, str] | None:
    """Why what its space wants is not what goes out, though no wave is under way."""
    if steered.newest != target_of(state):
        # Its revision is about to begin.
        return None
    if state.phase == "Aborted":
        said = f"{about}revision {state.revision} was aborted; who has it already keeps it"
        return ROLLOUT_ABORTED, said, f"{_COMMAND} status {steered.rollout}"
    if state.phase == "Partial":
        said = about + "its waves leave destinations out; give it one with percent: 100"
        return ROLLOUT_PARTIAL, said, f"{_COMMAND} promote {steered.rollout} --all"
    return None


def places_of(state: RolloutStatus) -> dict[NodePath, str]:
    """The places that keep a content of their own, and by what: a pin goes before a freeze."""
    freezes = {NodePath.parse(freeze.path): PLACE_FROZEN for freeze in state.freezes}
    return {**freezes, **{NodePath.parse(pin.path): PINNED for pin in state.pins}}


def _of_places(steered: Steered, count: Count) -> Iterator[Hold]:
    if steered.state is None:
        return
    keeping, places = kept_back.places_kept(steered.gates, steered.newest), places_of(steered.state)
    for reason, verb in ((PINNED, "unpin"), (PLACE_FROZEN, "unfreeze")):
        # A place where nobody is keeps nothing from anyone.
        there = [
            path for path in keeping if places.get(path) == reason and steered.places.get(path) != 0
        ]
        if not there:
            continue
        numbers = [steered.places.get(path) for path in there]
        exact = not count.summary.never_joined and None not in numbers
        named = some_of(list(map(str, there)), PLACES_NAMED_MAX)
        word = "pinned to a former revision" if reason == PINNED else "frozen"
        yield held(
            reason,
            f'rollout "{steered.rollout}": {named}: {word}',
            f"{_COMMAND} {verb} {steered.rollout} --at {there[0]}",
            sum(number or 0 for number in numbers) if exact else None,
        )


def _of_windows(steered: Steered, count: Count) -> Hold | None:
    """Who may have the newest content, and waits until a window opens."""
    waiting = _waiting(steered, count)
    if not waiting:
        return None
    said = f'rollout "{steered.rollout}": its windows are closed'
    said += f"; the next one opens at {steered.opens}" if steered.opens else ""
    return held(
        WINDOW,
        said,
        f"{_COMMAND} status {steered.rollout}",
        waiting if count.exact else None,
        steered.opens or None,
    )


def _waiting(steered: Steered, count: Count) -> int:
    """How many destinations wait until a window opens."""
    windowed = {gate.name for gate in steered.gates if gate.windows and gate.name}
    parsed = [(Cell.parse(text), number) for text, number in count.summary.cells.items()]
    return sum(n for it, n in parsed if it and it.gate in windowed and it.state == "waiting")
