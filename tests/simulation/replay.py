"""A seed or a written life again, with the story of what happened in it."""

from __future__ import annotations

from tests.simulation.faults import Faults
from tests.simulation.lives import is_life, play
from tests.simulation.lives_members import is_of_members, play_trio
from tests.simulation.run import Outcome, run
from tests.simulation.sizes import SIZES, number_of, seed_of

LINES_TOLD = 40
"""How much of its story is told of a seed that failed."""


def again(name: str, chosen: Faults | None = None) -> Outcome:
    """Run `small:17`, or play `withheld:0`, with its whole story; raises as `check`."""
    check(name)
    if is_of_members(name):
        return play_trio(name, story=True)
    if is_life(name):
        return play(name, story=True)
    size, number = seed_of(name)
    return run(number, chosen, size=size, story=True)


def check(name: str) -> None:
    """Raise ValueError if this names neither a seed nor a life."""
    if is_life(name) or is_of_members(name):
        number_of(name.partition(":")[2])
    else:
        seed_of(name)


def end_of(failed: Outcome, chosen: Faults | None = None) -> str:
    """What happened last in a seed that failed, and how to see all of it."""
    known = failed.size in SIZES or is_life(failed.name) or is_of_members(failed.name)
    story = again(failed.name, chosen).story if known else []
    told = [f"the last of {len(story)} steps:", *story[-LINES_TOLD:]] if story else []
    return "\n".join([*told, str(failed)])
