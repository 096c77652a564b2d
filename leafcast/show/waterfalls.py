"""The way of one change as a waterfall: each stage, when it was, how long it took, and a bar."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from leafcast.show.durations import span_text
from schemas.values.wording import many

Form = Mapping[str, Any]

WIDTH = 80
_WORD, _FIGURE = 20, 9
_BAR_MIN = 10
BACK_UP = frozenset(
    {"reported delivered", "reported working", "counted delivered", "counted working"}
)
"""The stages that tell what became of it, and go up the tree."""
_BAR = "█"
_CHOSEN = {
    "named": "the way that was asked for",
    "late": "the slowest way: the change is not done there yet",
    "last": "the slowest way: what lies on it was counted last",
    "any": "one of its ways: no node knows which was the slowest",
}


def waterfall_lines(form: Form, width: int | None) -> Iterator[str]:
    """The lines of the answer of the verb `trace`: down the tree, and what was told back up it."""
    width = width or WIDTH
    nodes = form["nodes"]
    spans = [span for node in nodes for span in node["spans"]]
    scale = _Scale(
        min((span["startMs"] for span in spans), default=0),
        max((span["endMs"] for span in spans), default=0),
        max(width - _WORD - 2 * _FIGURE - 4, _BAR_MIN),
    )
    so_far = " so far" if nodes[0]["waits"] else ""
    yield f"{form['placement']} to {form['path']} and back: {took_text(scale.whole)}{so_far}"
    yield f"generation {form['generation']}, trace {form['traceId']}"
    yield from _wrapped(why_text(form), width, "")
    yield f"{'':{_WORD + 2}}{'at':>{_FIGURE}}{'took':>{_FIGURE}}"
    for node in nodes:
        yield f"{node['path']}{clock_text(node)}"
        yield from (scale.line(it) for it in node["spans"] if it["stage"] not in BACK_UP)
        if node["gap"]:
            yield from _wrapped(node["gap"], width, "  ")
        if node["waits"] and node["waits"] not in BACK_UP:
            yield _waits(node, form["nowMs"])
    for node in reversed(nodes):
        told = [it for it in node["spans"] if it["stage"] in BACK_UP]
        if not told and node["waits"] not in BACK_UP:
            continue
        if node is not nodes[-1]:
            yield node["path"]
        yield from map(scale.line, told)
        if node["waits"] in BACK_UP:
            yield _waits(node, form["nowMs"])


class _Scale(NamedTuple):
    """Where in the whole a span lies, in a room of so many characters."""

    began: int
    ended: int
    room: int

    @property
    def whole(self) -> int:
        return self.ended - self.began

    def line(self, span: Form) -> str:
        """A span: its stage, when it was, how long it took, and a bar."""
        at, took = span["startMs"] - self.began, span["endMs"] - span["startMs"]
        figures = f"+{took_text(at + took)}", took_text(took)
        words = f"  {span['stage']:<{_WORD}}" + "".join(f"{it:>{_FIGURE}}" for it in figures)
        return f"{words}  {self._bar(at, took)}"

    def _bar(self, at: int, took: int) -> str:
        """A moment is as wide as what can be seen."""
        first, last = (
            min(it * self.room // max(self.whole, 1), self.room - 1) for it in (at, at + took)
        )
        return " " * first + _BAR * (last - first + 1)


def _waits(node: Form, now_ms: int) -> str:
    last = max((span["endMs"] for span in node["spans"]), default=None)
    so_far = f" ({took_text(max(now_ms - last, 0))} so far)" if last is not None else ""
    return f"  not yet {node['waits']}{so_far}"


def took_text(ms: int) -> str:
    """A span of time, as finely as its size is worth: `12ms`, `1.25s`, `5m10s`."""
    if ms < 1000:
        return f"{ms}ms"
    return f"{ms / 1000:.2f}s" if ms < 60_000 else span_text(ms / 1000)


def why_text(form: Form) -> str:
    said = _CHOSEN[form["chosen"]]
    if form["chosen"] == "late":
        said += f" ({many(form['late'], 'child', 'children')} of the centre not done)"
    if form["held"] > form["generation"]:
        said += f"; generation {form['held']} took its place since"
    return said


def clock_text(node: Form) -> str:
    """How the node's clock goes: the centre's own needs no word."""
    if node["correctedMs"]:
        ahead = "ahead" if node["correctedMs"] > 0 else "behind"
        return f"   clock {took_text(abs(node['correctedMs']))} {ahead}, corrected"
    if node["path"] == "/" or not node["spans"]:
        return ""
    return f"   clock right within {took_text(node['unsureMs'])}"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
