"""The waves of a revision: which there are, whom each admits, and in which steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from controllers.core.rollout.state import changed
from schemas.api.rollout_spec import (
    STEPS_MAX,
    WAVES_MAX,
    Rate,
    RolloutSpec,
    Wave,
)
from schemas.api.rollout_status import LayerGate, RolloutStep, StatusWindow, WaveStatus
from schemas.objects.selectors import EXISTS, IN, LabelSelector, Requirement
from schemas.records.records import BUCKETS, OVER_LOCATION, OVER_SYNC_TARGET, Over
from schemas.records.shares import share_of
from schemas.records.windows import Window
from schemas.values.names import LABEL_MAX

LabelValues = Callable[[str], Sequence[str]]
"""The values that a label has among the SyncTargets, sorted."""
MINUTE_SECONDS = 60
EVERYONE = Wave(name="all", percent=100)
"""The one wave of what goes to everyone at once."""
_RAMP_MINUTES_MAX = 100_000


def expanded(spec: RolloutSpec, values: LabelValues) -> tuple[tuple[Wave, ...], int]:
    """The waves with one for each value of a group; how many values found no wave of their own.

    Over WAVES_MAX in all the last ones of a group go together.
    """
    grouped = [wave for wave in spec.waves if wave.per_group is not None]
    room = WAVES_MAX - (len(spec.waves) - len(grouped))
    found: list[Wave] = []
    together = 0
    for wave in spec.waves:
        if wave.per_group is None:
            found.append(wave)
            continue
        grouped.remove(wave)
        label = wave.per_group.label
        most = max(room - len(grouped), 1)
        sets = _grouped(values(label), most)
        together += sum(max(len(each) - 1, 0) for each in sets)
        room -= len(sets)
        found += [_of_group(wave, label, each) for each in sets]
    return tuple(_told_apart(found)), together


def _told_apart(waves: Iterable[Wave]) -> Iterator[Wave]:
    """Values that differ in what no name may have make names that are equal."""
    known: set[str] = set()
    for wave in waves:
        name, number = wave.name, 2
        while name in known:
            name, number = f"{wave.name[: LABEL_MAX - 3]}-{number}", number + 1
        known.add(name)
        yield wave if name == wave.name else changed(wave, name=name)


def _grouped(values: Sequence[str], most: int) -> list[Sequence[str]]:
    """Each value alone, but for the last ones, which share one place if there are too many.

    A label that nobody has makes one group, of nobody.
    """
    alone = values if len(values) <= most else values[: most - 1]
    rest = values[len(alone) :]
    return [*([value] for value in alone), *([rest] if rest or not values else ())]


def by_label(wave: Wave) -> Wave:
    """The wave as of all who have the label of its groups, if it has groups."""
    return wave if wave.per_group is None else _of_group(wave, wave.per_group.label, ())


def _of_group(wave: Wave, label: str, values: Sequence[str]) -> Wave:
    requirement = Requirement(label, IN if values else EXISTS, tuple(values))
    selector = LabelSelector((*(wave.selector or ()), requirement))
    # A value that only others' destinations have is no slip.
    may_be_empty = wave.allow_empty or bool(values)
    word = values[0].lower().replace("_", "-").replace(".", "-") or "none" if values else ""
    name = f"{wave.name}-{word}"[:LABEL_MAX].rstrip("-")
    return changed(wave, name=name, selector=selector, per_group=None, allow_empty=may_be_empty)


def wave_statuses(waves: Iterable[Wave]) -> tuple[WaveStatus, ...]:
    """The waves of a revision that has not begun."""
    return tuple(
        WaveStatus(name=wave.name, gate=gate_text(wave), definition=wave) for wave in waves
    )


def gate_text(wave: Wave) -> str:
    """Whom a wave admits, for people: `ring=canary`, `10%`, `10% of region=eu`."""
    selector = wave.selector if wave.location_selector is None else wave.location_selector
    whom = labels_text(selector)
    if whom and wave.location_selector is not None:
        whom = f"locations {whom}"
    if wave.percent is None:
        return whom or "all"
    return f"{wave.percent}% of {whom}" if whom else f"{wave.percent}%"


def labels_text(selector: LabelSelector | None) -> str:
    """A selector for people: `ring=canary,!old`; "" for one that takes all."""
    return ",".join(map(_requirement_text, selector or ()))


def _requirement_text(item: Requirement) -> str:
    alone = item.operator == IN and len(item.values) == 1
    return f"{item.key}={item.values[0]}" if alone else str(item)


def gate_name(revision: int, wave: int) -> str:
    """What the gate of a wave, counted from 0, goes by on its way and in counts."""
    return f"{revision}.{wave}"


def gate_of(
    spec: RolloutSpec, waves: Sequence[WaveStatus], at: int, revision: int, salt: str
) -> LayerGate:
    """The gate of a wave, opened as far as the wave is."""
    status = waves[at]
    wave = status.definition
    over, selector = labels_of(wave)
    below = status.steps[status.step - 1].below if status.step else 0
    return LayerGate(
        name=gate_name(revision, at),
        below=below,
        salt=salt if 0 < below < BUCKETS else "",
        over=over,
        selector=selector,
        windows=tuple(status_window(it.window) for it in wave.windows or spec.windows),
    )


def labels_of(wave: Wave) -> tuple[Over, LabelSelector | None]:
    """Whose labels a wave goes by, and by which; None takes any."""
    if wave.location_selector is not None:
        return OVER_LOCATION, wave.location_selector
    # One that requires nothing is for everyone, as none is.
    return OVER_SYNC_TARGET, wave.selector if len(wave.selector or ()) else None


def status_window(window: Window) -> StatusWindow:
    """A window as a status has it."""
    return StatusWindow(cron=window.cron, duration=window.duration, zone=window.zone)


def steps_of(
    waves: Sequence[Wave], at: int, members: Callable[[Wave], int]
) -> tuple[RolloutStep, ...]:
    """How the gate of a wave is opened; `members` estimates how many a wave admits.

    It begins where an earlier wave of the same selector ended: who was admitted stays admitted.
    """
    wave = waves[at]
    end, labels = end_of(wave), labels_of(wave)
    begin = max((end_of(each) for each in waves[:at] if labels_of(each) == labels), default=0)
    if wave.max_concurrent is None and wave.rate is None:
        return (RolloutStep(below=end),)
    # A share of the members needs no number of them.
    by_share = isinstance(wave.max_concurrent, str) and wave.rate is None
    count = 0 if by_share else members(wave)
    times = _times(wave.rate, count)
    number = max(_by_number(wave.max_concurrent, count), len(times))
    shares = [Decimal(step) / number for step in range(1, number + 1)]
    if times and wave.max_concurrent is None:
        shares = [share for share, _ in times]
    after = [_at(times, share) for share in shares]
    return tuple(
        RolloutStep(below=begin + math.ceil((end - begin) * share), after=seconds)
        for share, seconds in zip(shares, after, strict=True)
    )


def end_of(wave: Wave) -> int:
    """The bucket below which a wave admits, once it is open."""
    return BUCKETS if wave.percent is None else wave.percent * BUCKETS // 100


def _by_number(amount: int | str | None, members: int) -> int:
    """How many steps let at most so many begin at a time."""
    if amount is None:
        return 1
    if isinstance(amount, str):
        return min(math.ceil(1 / share_of(amount)), STEPS_MAX)
    return min(max(math.ceil(members / amount), 1), STEPS_MAX)


def _times(rate: Rate | None, members: int) -> list[tuple[Decimal, int]]:
    """The share of the members to go up to, and after how many seconds, step by step."""
    if rate is None or members == 0:
        return []
    minutes = _minutes(rate, members)
    every = math.ceil(len(minutes) / STEPS_MAX)
    found = []
    for at in range(0, len(minutes), every):
        reached = minutes[min(at + every, len(minutes)) - 1]
        found.append((min(Decimal(reached) / members, Decimal(1)), at * MINUTE_SECONDS))
    return found


def _minutes(rate: Rate, members: int) -> list[int]:
    """How many have begun by the end of each minute, until all have."""
    each = float(rate.per_minute or rate.base or 1)
    most = float(rate.max or math.inf)
    reached, found = 0.0, list[int]()
    while reached < members and len(found) < _RAMP_MINUTES_MAX:
        reached += min(each, most)
        each *= rate.factor or 1
        found.append(min(math.floor(reached), members))
    found[-1] = members
    return found


def _at(times: Sequence[tuple[Decimal, int]], share: Decimal) -> int:
    """When a share may be reached at the earliest."""
    return next((seconds for reached, seconds in times if reached >= share), 0)
