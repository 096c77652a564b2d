"""Who keeps a wave of a release waiting, in words. Pure."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence

from controllers.core.rollout.release_opening import ReleaseMembers
from controllers.core.rollout.release_steps import ReleaseStep, tally
from schemas.records.release_body import ReleaseWave
from schemas.reports.running import SETTLED, Running
from schemas.values.wording import some_of

NAMED_MAX = 3


def with_holders(
    step: ReleaseStep,
    version: str,
    members: Sequence[ReleaseMembers],
    running: Running,
    below: Mapping[str, Running],
    silent: Mapping[str, int],
) -> str:
    """The message of a step, with whom it waits for.

    `below` is what is said at each child, `silent` when those were heard last (ms since 1970) that
    are not there now.
    """
    if step.phase != "Progressing" or not step.waves or step.due_seconds is not None:
        return step.message
    said = [
        f"/{name} ({states}{_last_heard(silent.get(name))})"
        for name, said in sorted(below.items())
        if (states := _under_way(said, version, step.waves))
    ]
    unheard = sum(_unheard(wave, members, running, version) for wave in step.waves)
    parts = [f"under way: {some_of(said, NAMED_MAX)}"] if said else []
    parts += [f"{unheard} said nothing of it yet"] if unheard else []
    return "; ".join([step.message, *parts])


def _under_way(said: Running, version: str, waves: Sequence[ReleaseWave]) -> str:
    numbers = {wave.number for wave in waves}
    states = Counter[str]()
    for each in said.counts:
        if each.wanted == version and each.wave in numbers and each.state not in SETTLED:
            states[each.state] += each.count
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


def _last_heard(moment_ms: int | None) -> str:
    if moment_ms is None:
        return ""
    at = dt.datetime.fromtimestamp(moment_ms // 1000, dt.UTC)
    return f"; last heard {at:%Y-%m-%d %H:%M:%S} UTC"


def _unheard(
    wave: ReleaseWave, members: Sequence[ReleaseMembers], running: Running, version: str
) -> int:
    return max(members[wave.number - 1].of(wave) - tally(running, version, wave.number).heard, 0)
