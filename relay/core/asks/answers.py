"""Answers as pages and rows; what a node says of itself is in `relay.core.node_answers`.

Lists come page by page: `after` names the last entry of the page before, and an answer's `next`
what to name for the one that follows ("" at the end). Data of Secrets is never in an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from relay.objects.merge import copied
from schemas.objects.secret_values import without_secret_values
from schemas.records.asks import REDACTED
from schemas.reports.reports import Cell, Summary
from schemas.values import codec

PAGE_MAX = 1000
PAGE_DIGITS = len(str(PAGE_MAX))
PAGE_BYTES_MAX = 512 * 1024

T = TypeVar("T")
Json = dict[str, Any]


class BadAskArguments(ValueError):
    """The arguments of an ask do not fit its verb; says which one, and what it should be."""


def destination_row(path: str, told: Mapping[str, Any]) -> dict[str, object]:
    """What became of a placement at one destination; `object` and `reason` name the worst."""
    worst = told["exceptions"][0] if told["exceptions"] else {"object": "", "reason": ""}
    return {
        "path": path,
        "state": next(iter(told["states"]), ""),
        "health": next(iter(told["health"]), ""),
        "wave": told["wave"],
        "complete": told["complete"],
        "object": worst["object"],
        "reason": worst["reason"],
    }


def objects_answer(objects: Iterable[Mapping[str, Any]], arguments: Mapping[str, str]) -> Json:
    """Objects in the order of namespace and name, redacted; `after` is `namespace/name`.

    Objects of one resource only, or the places would not be unique.
    """
    after = tuple(arguments.get("after", "/").split("/", 1))
    ranked = sorted(objects, key=_place)
    rest = [obj for obj in ranked if _place(obj) > after]
    page, following = paged(rest, limit_of(arguments), lambda obj: "/".join(_place(obj)), redacted)
    return {"objects": page, "next": following}


def paged(
    entries: list[T], limit: int, name: Callable[[T], str], say: Callable[[T], Json]
) -> tuple[list[Json], str]:
    """As many entries as a page holds, one at least, and the name of the last if more follow."""
    page: list[Json] = []
    size = 0
    for at, entry in enumerate(entries):
        said = say(entry)
        size += len(codec.pack(said))
        if page and (size > PAGE_BYTES_MAX or len(page) >= limit):
            return page, name(entries[at - 1])
        page.append(said)
    return page, ""


def redacted(obj: Mapping[str, Any]) -> Json:
    """The object; of a Secret the keys of its data only."""
    shown: Json = without_secret_values(copied(obj), REDACTED)
    return shown


def wave_of(summary: Summary) -> str:
    """The wave of one destination, `<revision>.<place>`; "" in none, or if it is not said yet."""
    cell = Cell.parse(next(iter(summary.cells), "")) if len(summary.cells) == 1 else None
    return cell.gate if cell is not None else ""


def limit_of(arguments: Mapping[str, str]) -> int:
    """How many entries a page may have; raises BadAskArguments."""
    text = arguments.get("limit", str(PAGE_MAX))
    if not text.isdecimal() or len(text) > PAGE_DIGITS or not 0 < int(text) <= PAGE_MAX:
        raise BadAskArguments(f"limit: {text!r} is not a number from 1 to {PAGE_MAX}")
    return int(text)


def _place(obj: Mapping[str, Any]) -> tuple[str, str]:
    metadata = obj["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])
