"""What nodes answer, read with care: who gives an answer may be anyone.

What is not as it should be counts as not said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.explain.facts import CopySaid, NodeOnTheWay
from leafcast.show.faults import FaultSample
from relay.core.link.session import ChildStatus
from schemas.records.answer_bounds import TEXT_MAX_CHARACTERS
from schemas.values.wire import INT_MAX

NAMED_MAX = 8
SAMPLES_MAX = 20
Form = Mapping[str, Any]


def form_of(value: object) -> Form:
    """A mapping; an empty one of what is none."""
    return value if isinstance(value, Mapping) else {}


def node_on_the_way(
    path: str, answer: Form, above: NodeOnTheWay | None, middle_ms: int
) -> NodeOnTheWay:
    """What a node says of itself, after what its parent says of it; `middle_ms` is our time."""
    here, known = form_of(answer.get("here")), answer.get("known") is True
    now_ms = _count(here, "nowMs")
    return NodeOnTheWay(
        path=path,
        state=above.state if above is not None else "up",
        since_ms=above.since_ms if above is not None else None,
        lag=above.lag if above is not None else 0,
        generation=_count(answer, "generation") if known else None,
        stale=here.get("stale") is True,
        outdated=here.get("outdated") is True,
        orphaned=here.get("orphaned") is True,
        head_only=here.get("headOnly") is True,
        missing=tuple(_texts(here, "missing")),
        missing_count=_count(here, "missingCount") or 0,
        refused_ms=_count(here, "refusedMs"),
        clock_ms=now_ms - middle_ms if now_ms is not None else 0,
        unclaimed=_text(here, "unclaimed"),
    )


def child_on_the_way(path: str, answer: Form) -> NodeOnTheWay:
    """What a node says of its child: its session, and its mail."""
    child = form_of(form_of(answer.get("here")).get("child"))
    standing = ChildStatus(
        _count(child, "silentSinceMs"),
        child.get("left") is True,
        child.get("inSession") is not False,
        child.get("joined") is not False,
        child.get("inStep") is not False,
    )
    since = standing.silent_since_ms
    return NodeOnTheWay(path, state=standing.word, since_ms=since, lag=_count(child, "lag") or 0)


def copy_said(answer: Form) -> CopySaid | None:
    """What an edge says of one copy; None of who says nothing of it."""
    it = form_of(answer.get("here")).get("copy")
    if not isinstance(it, Mapping):
        return None
    return CopySaid(
        wanted=it.get("wanted") is True,
        claimed=it.get("claimed") is True,
        known=it.get("known") is True,
        present=it.get("present") is True,
        kept=it.get("kept") is True,
        state=_text(it, "state"),
        health=_text(it, "health"),
        reason=_text(it, "reason"),
        error=_text(it, "error"),
        waits=_text(it, "waits"),
        stays_as=_text(it, "staysAs"),
        claimers=tuple(_texts(it, "claimers")),
    )


def words_said(form: Form) -> tuple[str, str]:
    """The state and the health that one destination reports, "" if it does not say."""
    return _first(form, "states"), _first(form, "health")


def samples_said(placement: str, path: str, form: Form) -> Iterator[FaultSample]:
    """What is wrong, by what a destination reports."""
    listed = form.get("exceptions")
    for item in listed[:SAMPLES_MAX] if isinstance(listed, list) else ():
        it = form_of(item)
        severity = _count(it, "severity") or 0
        yield FaultSample(placement, severity, _text(it, "object"), _text(it, "reason"), 1, path)


def _first(form: Form, name: str) -> str:
    word = str(next(iter(form_of(form.get(name))), ""))
    return word if len(word) <= TEXT_MAX_CHARACTERS else ""


def _text(form: Form, name: str) -> str:
    text = form.get(name)
    return text if isinstance(text, str) and len(text) <= TEXT_MAX_CHARACTERS else ""


def _texts(form: Form, name: str) -> list[str]:
    listed = form.get(name)
    found = listed[:NAMED_MAX] if isinstance(listed, list) else []
    return [it for it in found if isinstance(it, str) and len(it) <= TEXT_MAX_CHARACTERS]


def _count(form: Form, name: str) -> int | None:
    value = form.get(name)
    return value if type(value) is int and 0 <= value <= INT_MAX else None
