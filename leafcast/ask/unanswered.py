"""What a command says that no member of the centre answered: what became of what it asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from leafcast.ask.failures import CallFailed

CUT = "the connection to the centre's server was lost"
CHANGE_NOTHING = frozenset(
    {
        "apply-judge",
        "backups",
        "carried",
        "changes-read",
        "delete-judge",
        "destinations",
        "doctor",
        "events",
        "held",
        "keys",
        "keys-authority-state",
        "keys-placement",
        "label-judge",
        "level",
        "metrics",
        "node-list",
        "node-requests",
        "node-tokens",
        "orphans",
        "places",
        "plan-make",
        "plan-objects",
        "plan-rows",
        "plan-rows-at",
        "plan-weigh",
        "restore-judge",
        "space",
        "status",
        "trace",
        "tree",
        "upgrades",
        "why",
    }
)
"""Verbs by which nothing is accepted, whether they were carried out or not."""
_SAID = {"changes-write": "the change"}
"""What those are called that no command is called as."""
NOTHING = "accepted: nothing"
AGAIN = "ask again: every command may be repeated"
_SEE = "see: leafcast tree --members"
_TWO = f"see that two members of the centre run and reach each other, then ask again; {_SEE}"


def none_active(verb: str, seconds: float, *, is_taken: bool) -> CallFailed:
    """No member of the centre is active; `is_taken` if one was when it was asked."""
    became = accepted(verb) if is_taken else NOTHING
    message = f"no member is active since {seconds:.0f} s; {became}"
    return CallFailed(verb, "NotServed", message, _TWO)


def none_says(verb: str, seconds: float) -> CallFailed:
    """It was not even asked, as nobody said that a member is active."""
    message = f"no member of the centre said within {seconds:g} s that it is active"
    return CallFailed(verb, "NotServed", f"{message}; {NOTHING}", _TWO)


def cut_before(verb: str) -> CallFailed:
    """The connection was lost before it was asked."""
    remedy = "ask again: its server may have been started anew"
    return CallFailed(verb, "NotServed", f"{CUT}; {NOTHING}", remedy)


def stuck(verb: str, streams: Mapping[str, str]) -> CallFailed:
    """Streams take no writes, of which these servers say that all is well."""
    said = " and ".join(
        f"stream {name}, led by {it}, takes no writes" for name, it in streams.items()
    )
    remedy = "start the process of that member anew, and its server with it; then ask again"
    return CallFailed(verb, "Stuck", f"{said}; {accepted(verb)}", remedy)


def lost(verb: str, why: str, *, has_members: bool = True) -> CallFailed:
    """Who had the question, or its answer, is there no more."""
    remedy = f"{AGAIN}; {_SEE}" if has_members else AGAIN
    return CallFailed(verb, "Lost", f"{why}; {accepted(verb)}", remedy)


def not_yet(verb: str, log: Path) -> CallFailed:
    """Nobody hears questions."""
    remedy = f"wait a moment; if it stays so, see {log}"
    return CallFailed(verb, "NotServed", f"the tree is not up yet; {NOTHING}", remedy)


def late(verb: str, seconds: float, log: Path) -> CallFailed:
    """It was heard, and time was up."""
    message = f"the tree did not answer {verb} within {seconds:g} s; {accepted(verb)}"
    return CallFailed(verb, "Timeout", message, f"{AGAIN}; see {log}")


def accepted(verb: str) -> str:
    """What became of what a verb was asked to do, which was not answered."""
    if verb in CHANGE_NOTHING:
        return NOTHING
    return f"whether {_SAID.get(verb, verb)} was carried out is not known"


def is_unanswered(error: Exception) -> bool:
    """Whether it is what comes of a nats-server that does not answer: no defect."""
    return isinstance(error, TimeoutError) or type(error).__module__.partition(".")[0] == "nats"
