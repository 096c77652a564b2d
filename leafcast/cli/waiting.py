"""Waiting for placements: asked again and again, through restarts of the tree, until it is so."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from leafcast.ask.destinations import destinations_where
from leafcast.ask.session import Session
from leafcast.ask.wait_goals import COUNTED, HEALTHY, SYNCED, UNMET, Reached, without
from leafcast.ask.waits import SLICE_SECONDS, Wait, asked_to_wait
from leafcast.cli.session_calls import look_until
from leafcast.show.holds import milliseconds
from leafcast.show.sanitize import sanitize
from leafcast.show.wait_states import live_line
from relay.adapters.clock import SystemClock

LIVE_SECONDS = 1.0
FIRST_SECONDS = 1.0
"""So long the tree is asked at once, and so long where a line shows how far it is."""
LISTED_MAX = 10_000
"""At most so many destinations for which it is not so are looked up, whether they are excepted."""
MET, NOT_YET, IN_VAIN = "met", "not yet", "in vain"
_CLEAR = "\r\x1b[K"

WaitState = dict[str, Any]


class Answer(NamedTuple):
    """Which placements are as they should, and how all stand."""

    met: set[str]
    states: list[WaitState]
    # Whether others cannot be so without a person, or not in time.
    in_vain: bool = False


async def wait_for(data_dir: Path | None, asked: Wait) -> Answer:
    """Ask until the placements meet the conditions, or cannot, or time is up.

    A tree that does not answer the first question is not waited for.
    """
    clock = SystemClock()
    began = clock.now().seconds
    until = began + asked.seconds
    line = Line(began)

    async def look(session: Session) -> Answer | None:
        left = max(0.0, until - clock.now().seconds)
        # That it would be in vain is told soon.
        most = line.slice_seconds if clock.now().seconds - began > FIRST_SECONDS else FIRST_SECONDS
        answer = await asked_to_wait(session, asked, min(left, most))
        states = answer["placements"]
        may_be = [state for state in states if state["name"] in answer["met"]]
        judged = {state["name"]: await _judged(session, asked, state) for state in may_be}
        met = {name for name, verdict in judged.items() if verdict == MET}
        left = until - clock.now().seconds
        in_vain = IN_VAIN in judged.values() or _opens_too_late(states, met, left)
        if len(met) == len(states) or left <= 0 or in_vain:
            return Answer(met, states, left > 0 and in_vain)
        line.show(states, met, clock.now().seconds)
        if len(met) < len(answer["met"]):
            # Only who is excepted could keep it from being so, and others do.
            await clock.sleep(min(LIVE_SECONDS, left))
        return None

    try:
        return await look_until(data_dir, look, line.tell, lambda: clock.now().seconds >= until)
    finally:
        line.clear()


class Line:
    """A line at a terminal that says how far it is; nothing of it in a pipe."""

    def __init__(self, began: float) -> None:
        self._is_seen = sys.stderr.isatty()
        self._began = began

    @property
    def slice_seconds(self) -> float:
        return LIVE_SECONDS if self._is_seen else SLICE_SECONDS

    def show(self, states: Sequence[WaitState], met: set[str], now: float) -> None:
        if self._is_seen:
            width = shutil.get_terminal_size().columns - 1
            text = live_line(states, sorted(met), now - self._began, width)
            click.echo(f"{_CLEAR}{sanitize(text)}", nl=False, err=True)

    def clear(self) -> None:
        if self._is_seen:
            click.echo(_CLEAR, nl=False, err=True)

    def tell(self, text: str) -> None:
        self.clear()
        click.echo(f"leafcast: {sanitize(text)}", err=True)


async def _judged(session: Session, asked: Wait, state: WaitState) -> str:
    """Whether those for which it is not so are the excepted ones, of one that may be met."""
    excepted = state.get("excepted", ())
    counted = [each for each in asked.conditions if each in COUNTED]
    if not excepted or not counted:
        return MET
    condition = HEALTHY if HEALTHY in counted else SYNCED
    found = await session.call("destinations", placement=state["name"], seconds=60)
    unmet, silent, more = await destinations_where(
        session, found["key"], UNMET[condition], LISTED_MAX
    )
    reached = min(state["states"].get(SYNCED, 0), _healthy(state, condition))
    away, lacking = state["states"].get("unreachable", 0), state.get("lacking")
    whole = state["destinations"] - state.get("maintained", 0)
    counts = Reached(whole, reached, away, lacking or 0)
    if not more and asked.goal.is_met(without(counts, unmet, excepted, silent)):
        return MET
    # Some are frozen until a person does something: is it enough if all others come?
    frozen = [row for row in unmet if row["state"] == "frozen"]
    best = counts._replace(reached=counts.whole - len(frozen))
    return NOT_YET if asked.goal.is_met(without(best, frozen, excepted, [])) else IN_VAIN


def _healthy(state: WaitState, condition: str) -> int:
    return int(state["health"].get(HEALTHY, 0)) if condition == HEALTHY else state["destinations"]


def _opens_too_late(states: Sequence[Mapping[str, Any]], met: set[str], seconds: float) -> bool:
    """Whether something holds a placement that ends only after so many seconds."""
    end_ms = SystemClock().now().wall_ms + seconds * 1000
    unmet = (state for state in states if state["name"] not in met)
    untils = (hold.get("until") for state in unmet for hold in state.get("held", ()))
    return any(until and (milliseconds(until) or 0) > end_ms for until in untils)
