"""Waves of nobody: nobody tries what they let out, and the next one would give it to all the same.

Mostly a label is misspelt, there or here. A wave that says `allowEmpty: true` means it, and one of
which all were admitted before has nothing to prove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controllers.core.conditions import condition
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.state import changed
from controllers.core.rollout.waves import EVERYONE, by_label, gate_text, labels_of
from schemas.api.rollout_spec import RolloutSpec, Wave
from schemas.api.rollout_status import RolloutStatus, WaveStatus
from schemas.api.shared import Condition
from schemas.records.records import OVER_LOCATION
from schemas.values.wording import some_of

EMPTY = "EmptyWaves"
PLACES_MAX = 3
REMEDY = "correct the labels, or write allowEmpty: true on the wave"

Matches = Callable[[Wave], bool]
"""Whether a wave's labels match any destination of the placement, whatever its share."""
Members = Callable[[Wave], int]
"""About how many of these a wave admits, whatever waves are before it."""


def unmatched(wave: Wave, matches: Matches) -> str:
    """Why a wave's labels match no destination of the placement; "" if it may be so, or is not.

    A placement of nobody says so itself.
    """
    wave = by_label(wave)
    over, selector = labels_of(wave)
    if wave.allow_empty or selector is None:
        return ""
    if matches(wave) or not matches(EVERYONE):
        return ""
    labels = changed(wave, percent=None)
    if over == OVER_LOCATION:
        labels = changed(labels, selector=labels.location_selector, location_selector=None)
        return f"no destination of the placement is at a Location with {gate_text(labels)}"
    return f"no destination of the placement has {gate_text(labels)}"


def of_nobody(
    spec: RolloutSpec, wave: Wave, matches: Matches, members: Members, *, is_proved: bool
) -> str:
    """Why a wave without members is to be looked at by a person; "" if it may go on.

    What `is_proved` by a wave before, or cannot be, needs nobody that a share draws.
    """
    if any(each.name == wave.name and each.allow_empty for each in spec.waves):
        return ""
    if said := unmatched(wave, matches):
        return said
    labels = changed(wave, percent=None)
    among = 0 if wave.allow_empty or is_proved else members(labels)
    if not among:
        return ""
    if wave.percent not in (None, 100):
        return f"{gate_text(wave)} draws none of {among} who could try it"
    if labels_of(wave)[1] is None:
        return ""
    return f"of {among} with {gate_text(labels)} nobody has joined and is out of maintenance"


def approval_text(wave: WaveStatus) -> str:
    """What a person is to approve of a wave, and why."""
    if wave.step and wave.reason:
        return f'wave "{wave.name}" admits nobody: {wave.reason}; {REMEDY}, or approve it'
    when = "end" if wave.step else "begin"
    return f'wave "{wave.name}" needs approval to {when}'


def empty_waves(spec: RolloutSpec, matches: Matches) -> str:
    """Which ones have labels that match nobody now, with why and the remedy; "" if none has."""
    found = ((wave.name, unmatched(wave, matches)) for wave in spec.waves)
    said = [f'wave "{name}" admits nobody: {why}' for name, why in found if why]
    return f"{'; '.join(said)}; {REMEDY}" if said else ""


def empty_condition(
    spec: RolloutSpec, state: RolloutStatus, facts: RolloutFacts
) -> Iterator[Condition]:
    """That there are such waves, before anything is to go out by them; or places of nobody."""
    said = list(filter(None, [empty_waves(spec, facts.matches)]))
    for word, places in (("pinned", state.pins), ("frozen", state.freezes)):
        left = [place.path for place in places if not facts.is_place(place.path)]
        if left:
            said.append(f"{some_of(left, PLACES_MAX)} {word}, and no node is there")
    if said:
        yield condition(EMPTY, "True", "MatchNobody", "; ".join(said))
