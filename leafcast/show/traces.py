"""What was put right at edges, and what is kept there, as lines below a placement's counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.show.durations import span_text
from schemas.values.wording import many, namespace_first

Form = Mapping[str, Any]

NAMED_MAX = 3


def trace_lines(form: Form, now_ms: int) -> Iterator[str]:
    """The lines of a placement's form; none if there is nothing to tell."""
    at_least = "" if form.get("complete", True) else "at least "
    if form.get("kept"):
        yield f"kept:      {at_least}{many(form['kept'], 'copy', 'copies')} that nothing wants"
        copies = form["kept_copies"][:NAMED_MAX]
        yield from (f"           {_kept(copy)}" for copy in copies)
        yield from (f"  see: {_look(copy)}" for copy in copies[:1])
    if form.get("repaired"):
        times = many(form["repaired"], "time")
        yield f"repaired:  {at_least}{times}{_last(form['repairs'], now_ms)}"


def repair_text(repair: Form) -> str:
    """`shop/deployments.apps/web .spec.replicas by kubectl`, or that it was deleted."""
    what = namespace_first(repair["object"])
    if not repair["field"]:
        return f"{what}, which was deleted (by whom is not known)"
    return f"{what} {repair['field']} by {repair['manager'] or 'someone who is not known'}"


def _last(repairs: Sequence[Form], now_ms: int) -> str:
    if not repairs:
        return ""
    last = repairs[0]
    ago = span_text(max(now_ms - last["at_ms"], 0) / 1000)
    return f", last: {last['path']} {repair_text(last)} {ago} ago"


def _kept(copy: Form) -> str:
    where = str(copy["path"])
    if copy["count"] > 1:
        where = f"{where} and {copy['count'] - 1} more"
    return f"{namespace_first(copy['object'])} at {where}"


def _look(copy: Form) -> str:
    """The command that shows what is kept there."""
    kind, _, place = copy["object"].partition("/")
    namespace = f" -n {place.partition('/')[0]}" if "/" in place else ""
    return f"leafcast get {kind}{namespace} --kept --at {copy['path']}"
