"""What a command says that no member of the centre answered: what became of what it asked."""

from __future__ import annotations

from collections.abc import Mapping

from leafcast.ask.failures import CallFailed

CUT = "the connection to the centre's server was lost"
CHANGE_NOTHING = frozenset(
    {
        "apply-judge",
        "changes-read",
        "delete-judge",
        "destinations",
        "doctor",
        "events",
        "label-judge",
        "plan-make",
        "restore-judge",
        "space",
        "status",
        "trace",
        "tree",
        "why",
    }
)
"""Verbs by which nothing is accepted, whether they were carried out or not."""
_SAID = {"changes-write": "the change"}
"""What those are called that no command is called as."""
_NOTHING = "accepted: nothing"
_TWO = "see that two members of the centre run and reach each other, then ask again"


def none_active(verb: str, seconds: float, *, is_taken: bool) -> CallFailed:
    """No member of the centre is active; `is_taken` if one was when it was asked."""
    accepted = _accepted(verb) if is_taken else _NOTHING
    message = f"no member is active since {seconds:.0f} s; {accepted}"
    return CallFailed(verb, "NotServed", message, _TWO)


def none_says(verb: str, seconds: float) -> CallFailed:
    """It was not even asked, as nobody said that a member is active."""
    message = f"no member of the centre said within {seconds:g} s that it is active"
    return CallFailed(verb, "NotServed", f"{message}; {_NOTHING}", _TWO)


def cut_before(verb: str) -> CallFailed:
    """The connection was lost before it was asked."""
    remedy = "ask again: its server may have been started anew"
    return CallFailed(verb, "NotServed", f"{CUT}; {_NOTHING}", remedy)


def stuck(verb: str, streams: Mapping[str, str]) -> CallFailed:
    """Streams take no writes, of which these servers say that all is well."""
    said = " and ".join(
        f"stream {name}, led by {it}, takes no writes" for name, it in streams.items()
    )
    remedy = "start the process of that member anew, and its server with it; then ask again"
    return CallFailed(verb, "Stuck", f"{said}; {_accepted(verb)}", remedy)


def lost(verb: str, why: str) -> CallFailed:
    """Who had the question, or its answer, is there no more."""
    message = f"{why}; {_accepted(verb)}"
    return CallFailed(verb, "Lost", message, "ask again: every command may be repeated")


def _accepted(verb: str) -> str:
    if verb in CHANGE_NOTHING:
        return _NOTHING
    return f"whether {_SAID.get(verb, verb)} was carried out is not known"
