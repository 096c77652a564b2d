"""Why copies are not as they are meant, as lines: what stops them, since when, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.show.durations import span_text
from leafcast.show.stages import LEADS, CopyStage
from schemas.values.wording import many, namespace_first

Form = Mapping[str, Any]

WIDTH = 80
_INDENT = "  "
_DO = "do: "
_MARKS: Mapping[str, str] = {CopyStage.AS_MEANT: "✓", CopyStage.UNKNOWN: "?"}


def explanation_lines(form: Form, now_ms: int, width: int | None) -> Iterator[str]:
    """The lines of an answer; what to do stands behind what is so, where there is room for both."""
    listed = form["explanations"]
    for each in listed:
        if len(listed) > 1:
            yield f"{each['placement']}:"
        said = f"{_INDENT}{_mark(each)} {_said(each, now_ms)}"
        if not each["remedy"]:
            yield said
            continue
        remedy = f"{_DO}{each['remedy']}"
        if width is None or len(said) + len(remedy) + 3 <= width:
            yield f"{said}   {remedy}"
        else:
            yield said
            yield f"{_INDENT * 2}{remedy}"
    if more := form.get("more", 0):
        yield f"{many(more, 'placement')} more were not looked at; name one: leafcast why PLACEMENT"


def exit_code(form: Form) -> int:
    """0 if all is as it is meant, 1 if something blocks, 2 if that cannot be told."""
    told = {each["stage"] for each in form["explanations"]}
    if told - {CopyStage.AS_MEANT, CopyStage.UNKNOWN}:
        return 1
    return 2 if CopyStage.UNKNOWN in told else 0


def title_line(form: Form) -> str:
    """What is asked about, and where."""
    listed = form["explanations"]
    what = namespace_first(form["object"]) if form["object"] else listed[0]["placement"]
    by = listed[0]["placement"] if form["object"] and len(listed) == 1 else ""
    return f"{what} at {form['path']}" + (f", by {by}" if by else "")


def stop_text(each: Form) -> str:
    """What stops a copy, with the words for the stage in front."""
    return ": ".join(filter(None, (LEADS[CopyStage(each["stage"])], each["said"])))


def _said(each: Form, now_ms: int) -> str:
    said = stop_text(each)
    if each["sinceMs"]:
        span = span_text(max(now_ms - each["sinceMs"], 0) / 1000)
        # A window says itself when it opens: that is another time.
        opens = each["stage"] == CopyStage.WINDOW
        said += f"; it has waited for {span}" if opens else f" since {span}"
    return said


def _mark(each: Form) -> str:
    return _MARKS.get(each["stage"], "✗")
