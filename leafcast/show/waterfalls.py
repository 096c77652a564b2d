"""The way of one change as a waterfall: each stage, when it was, how long it took, and a bar."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.show.durations import span_text
from schemas.values.wording import many

Form = Mapping[str, Any]

WIDTH = 80
_WORD, _FIGURE = 20, 9
_BAR_MIN = 10
_BAR = "█"
_CHOSEN = {
    "named": "the way that was asked for",
    "late": "the slowest way: where it goes the change is missing",
    "last": "the slowest way: what lies on it was counted last",
    "any": "one of its ways: no node knows which was the slowest",
}


def waterfall_lines(form: Form, width: int | None) -> Iterator[str]:
    """The lines of the answer of the verb `trace`."""
    width = width or WIDTH
    spans = [span for node in form["nodes"] for span in node["spans"]]
    began = min((span["startMs"] for span in spans), default=0)
    whole = max((span["endMs"] for span in spans), default=0) - began
    yield f"{form['placement']} on its way to {form['path']}, in {took_text(whole)} so far as noted"
    yield f"generation {form['generation']}, trace {form['traceId']}"
    yield from _wrapped(_why(form), width, "")
    yield f"{'':{_WORD + 2}}{'at':>{_FIGURE}}{'took':>{_FIGURE}}"
    room = max(width - _WORD - 2 * _FIGURE - 4, _BAR_MIN)
    for node in form["nodes"]:
        yield f"{node['path']}{_clock(node)}"
        for span in node["spans"]:
            at, took = span["startMs"] - began, span["endMs"] - span["startMs"]
            figures = f"+{took_text(span['endMs'] - began)}", took_text(took)
            words = f"  {span['stage']:<{_WORD}}" + "".join(f"{it:>{_FIGURE}}" for it in figures)
            yield f"{words}  {_bar(at, took, whole, room)}"
        if node["gap"]:
            yield from _wrapped(node["gap"], width, "  ")
        if node["waits"]:
            last = max((span["endMs"] for span in node["spans"]), default=None)
            so_far = f" ({took_text(max(form['nowMs'] - last, 0))} so far)" if last else ""
            yield f"  not yet {node['waits']}{so_far}"


def took_text(ms: int) -> str:
    """A span of time, as finely as its size is worth: `12ms`, `1.25s`, `5m10s`."""
    if ms < 1000:
        return f"{ms}ms"
    return f"{ms / 1000:.2f}s" if ms < 60_000 else span_text(ms / 1000)


def _why(form: Form) -> str:
    said = _CHOSEN[form["chosen"]]
    if form["chosen"] == "late":
        said += f"; {many(form['late'], 'child', 'children')} of the centre wait for it"
    if form["held"] > form["generation"]:
        said += f"; generation {form['held']} took its place since"
    return said


def _clock(node: Form) -> str:
    """How the node's clock goes: the centre's own needs no word."""
    if node["correctedMs"]:
        ahead = "ahead" if node["correctedMs"] > 0 else "behind"
        return f"   clock {took_text(abs(node['correctedMs']))} {ahead}, corrected"
    if node["path"] == "/" or not node["spans"]:
        return ""
    return f"   clock right within {took_text(node['unsureMs'])}"


def _bar(at: int, took: int, whole: int, room: int) -> str:
    """Where in the whole it lies; a moment is as wide as what can be seen."""
    if whole <= 0:
        return _BAR
    first = min(at * room // whole, room - 1)
    last = min((at + took) * room // whole, room - 1)
    return " " * first + _BAR * (last - first + 1)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
