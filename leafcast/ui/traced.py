"""Where the time of a change went, as the page shows it: down the tree, and back up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.show.waterfalls import BACK_UP, clock_text, took_text, why_text
from schemas.records.placements import short_title

Form = Mapping[str, Any]
Json = dict[str, Any]


def trace_form(said: Form) -> Json:
    """The answer of the verb `trace`; each row has its place in the whole, in percent."""
    nodes = said["nodes"]
    spans = [span for node in nodes for span in node["spans"]]
    began = min((span["startMs"] for span in spans), default=0)
    ended = max((span["endMs"] for span in spans), default=0)
    so_far = " so far" if nodes[0]["waits"] else ""
    whole = said["nowMs"] - began if so_far and spans else ended - began
    return {
        "placement": short_title(said["placement"]),
        "path": said["path"],
        "tone": "busy" if any(it["waits"] for it in nodes) else "good",
        "headline": f"To {said['path']} and back: {took_text(max(whole, 0))}{so_far}",
        "chosen": why_text(said),
        "generation": said["generation"],
        "generations": list(said["generations"]),
        "traceId": said["traceId"],
        "clocks": [f"{it['path']}: {text.strip()}" for it in nodes if (text := clock_text(it))],
        "rows": [*_rows(nodes, said["nowMs"], began, max(ended - began, 1))],
    }


def _rows(nodes: list[Form], now_ms: int, began: int, whole: int) -> Iterator[Json]:
    """The stages on the way down, then those of the way back up, in their order."""
    for node in nodes:
        yield from _of_node(node, now_ms, began, whole, up=False)
    for node in reversed(nodes):
        yield from _of_node(node, now_ms, began, whole, up=True)


def _of_node(node: Form, now_ms: int, began: int, whole: int, *, up: bool) -> Iterator[Json]:
    path = node["path"]
    listed = [it for it in node["spans"] if (it["stage"] in BACK_UP) is up]
    for span in listed:
        took = span["endMs"] - span["startMs"]
        yield {
            "id": f"{path} {span['stage']}",
            "tone": "none",
            "path": path,
            "stage": span["stage"],
            "at": f"+{took_text(span['endMs'] - began)}",
            "took": took_text(took),
            "from": round(100 * (span["startMs"] - began) / whole, 2),
            "share": round(100 * took / whole, 2),
        }
    nothing = {"path": path, "at": "", "took": "", "from": None, "share": None}
    if node["gap"] and not up:
        yield {"id": f"{path} gap", "tone": "away", "stage": node["gap"], **nothing}
    if node["waits"] and (node["waits"] in BACK_UP) is up:
        last = max((span["endMs"] for span in node["spans"]), default=None)
        so_far = f"{took_text(max(now_ms - last, 0))} so far" if last is not None else ""
        stage = f"not yet {node['waits']}"
        yield {"id": f"{path} waits", "tone": "busy", "stage": stage, **nothing, "took": so_far}
