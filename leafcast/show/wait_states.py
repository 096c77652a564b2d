"""How far placements are that someone waits for: when time is up, and meanwhile at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.ask.wait_goals import DELETE, HEALTHY, READY, ROLLED_OUT, SYNCED
from leafcast.show.durations import span_text
from leafcast.show.holds import going_out, hold_text
from schemas.records.placements import BINDING_POLICIES, kind_of, long_title, short_title
from schemas.reports.causes import causes_first, said_in_form
from schemas.reports.states import IN_MAINTENANCE
from schemas.values.wording import all_but, many, namespace_first

ERRORS_MAX = 5
WORST_MIN = 12
"""With fewer characters nobody would read what is worst."""

WaitState = Mapping[str, Any]


def last_state(state: WaitState, conditions: Sequence[str], seconds: float | None) -> Iterator[str]:
    """Where a placement stood when time was up, the worst of it, and what to do.

    Without seconds: when it was seen that it does not come, or not in time.
    """
    wanted = " and ".join("gone" if each == DELETE else each for each in conditions)
    waited = f"waiting for {long_title(placement_of(state))} to be {wanted}"
    ended = (
        f"timed out after {seconds:g}s {waited}" if seconds is not None else f"{waited} is in vain"
    )
    yield f"{ended}: {figures(state)}"
    if state.get("ready"):
        yield f"  {state['ready']}"
    if state.get("problem"):
        yield f"  {state['problem']}"
    for hold in state.get("held", ()):
        yield f"  held: {hold_text(hold)}"
        if hold.get("remedy"):
            yield f"  next: {hold['remedy']}"
    if ROLLED_OUT in conditions and state.get("rollout"):
        yield f"  {state['rollout']}"
    for one in _worst_first(state)[:ERRORS_MAX]:
        yield f"  {_what(one)} (at {one['count']}, e.g. {one['path']})"
    look = "rollout status" if ROLLED_OUT in conditions else "status"
    yield f"  see: leafcast {look} {short_name(state['name'])}"


def met_text(state: WaitState, conditions: Sequence[str]) -> str:
    """That a placement is as it should, and whom nobody waited for."""
    left = []
    whole, counted = (
        state["destinations"] - state.get("maintained", 0),
        {SYNCED, HEALTHY, READY} & set(conditions),
    )
    good = state["health" if HEALTHY in counted or READY in counted else "states"]
    reached = good.get(HEALTHY, 0) if good is state["health"] else good.get(SYNCED, 0)
    if counted and reached < whole:
        left.append(f"{reached} of {many(whole, 'destination')}")
    if state["states"].get("unreachable") and reached < whole:
        left.append(f"{state['states']['unreachable']} unreachable")
    if state.get("excepted"):
        left.append(f"{len(state['excepted'])} excepted")
    if state["never_joined"]:
        left.append(f"{state['never_joined']} never joined")
    if state.get("maintained"):
        left.append(f"{state['maintained']} {IN_MAINTENANCE}")
    named = long_title(placement_of(state))
    if DELETE in conditions and "/" not in state["name"]:
        # What is gone cannot tell which of two kinds the name meant: none of either is there.
        named = state["name"]
    said = f"{named} condition met"
    return f"{said} ({', '.join(left)})" if left else said


def live_line(states: Sequence[WaitState], met: Sequence[str], seconds: float, width: int) -> str:
    """One line of how far those are that lack something, the first of them with its worst."""
    late = [state for state in states if state["name"] not in met]
    if not late:
        return ""
    first = late[0]
    line = f"{span_text(seconds)} {short_name(first['name'])}: {_short_figures(first)}"
    more = f" · {len(late) - 1} more to wait for" if len(late) > 1 else ""
    worst = next(iter(_worst_first(first)), None)
    room = width - len(line) - len(more) - 3
    if worst is not None and room >= WORST_MIN:
        line += f" · {_fit(_what(worst), room)}"
    return _fit(line + more, width)


def _short_figures(state: WaitState) -> str:
    """`1200 of 2000 synced, 900 healthy, 4 unreachable`."""
    states, health = state["states"], state["health"]
    least = "" if state["complete"] else "at least "
    said = [f"{least}{states.get(SYNCED, 0)} of {state['destinations']} synced"]
    said.append(f"{health.get(HEALTHY, 0)} healthy")
    said += [f"{states[word]} {word}" for word in ("failing", "unreachable") if states.get(word)]
    return ", ".join(said)


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def _worst_first(state: WaitState) -> list[WaitState]:
    return causes_first(state["exceptions"], said_in_form)


def _what(one: WaitState) -> str:
    return ": ".join(filter(None, (namespace_first(one["object"]), one["reason"])))


def short_name(name: str) -> str:
    """A name as commands take it."""
    return short_title(name) if "/" in name else name


def placement_of(state: WaitState) -> str:
    """Which one was meant by the name."""
    return str(state.get("placement", state["name"]))


def nowhere_text(placement: str) -> str:
    """Why a placement selects no destination."""
    kind = kind_of(placement)
    where = "SyncTarget" if kind is BINDING_POLICIES else "Location that has a SyncTarget"
    return f"its {kind.selectors} match no {where}"


def figures(state: WaitState) -> str:
    """How many of its destinations are synced and healthy, and what the others are."""
    whole = state["destinations"]
    least = "" if state["complete"] else "at least "
    if not whole and state["never_joined"]:
        return f"none of its {many(state['never_joined'], 'destination')} has joined yet"
    if not whole and state["complete"]:
        return f"0 of 0 destinations; {nowhere_text(placement_of(state))}"
    states, health = state["states"], state["health"]
    synced, healthy = states.get("synced", 0), health.get("healthy", 0)
    said = [
        f"{least}{synced} of {many(whole, 'destination')} synced{all_but(states, 'synced')}",
        f"{healthy} healthy{all_but(health, 'healthy')}",
    ]
    if going := going_out(state):
        said.append(going)
    if state["blocking"]:
        said.append(f"no answer yet from {', '.join(state['blocking'])}")
    return ", ".join(said)
