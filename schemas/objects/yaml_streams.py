"""Where a stream of documents has seams that YAML does not know, as tools put streams together.

JSON values follow each other without a mark (`jq -c .items[]`), and files that begin with a byte
order mark are joined by `cat`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

BYTE_ORDER_MARK = "\ufeff"
# Where JSON may begin; no text of another document can hold the marks.
_BEGIN = re.compile(r"\A\ufeff?|^\ufeff|^---(?=[ \t\r\n])", re.MULTILINE)
# What may stand before and between JSON values: also the mark of records of a JSON sequence.
_BETWEEN = re.compile(r"(?:[\s\ufeff\x1e]++|#[^\n]*+(?:\n|\Z))*+")
_NEXT = re.compile(r"[{\[]|---(?=[ \t\r\n]|\Z)|\Z")
_OPENING = ("{", "[")
# Only where a value ends is asked: numbers of any size are as good as text.
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


@dataclass(frozen=True, slots=True)
class YamlPart:
    """A part of a text that holds whole documents: how many lines and columns are before it."""

    text: str
    lines: int = 0
    columns: int = 0


def parts_of(text: str) -> Iterator[YamlPart]:
    """The text in parts, each of which is YAML; a text without seams is one part."""
    lines = line_begin = counted = begin = 0
    for end, following in (*_seams(text), (len(text), len(text))):
        if text[begin:end].strip():
            lines += text.count("\n", counted, begin)
            line_begin = max(line_begin, text.rfind("\n", counted, begin) + 1)
            counted = begin
            yield YamlPart(text[begin:end], lines, begin - line_begin)
        begin = following


def _seams(text: str) -> Iterator[tuple[int, int]]:
    """Where a part ends, and where the next one begins."""
    read = 0
    for found in _BEGIN.finditer(text):
        if found.start() < read:
            continue
        if found.group() == BYTE_ORDER_MARK:
            yield found.start(), found.end()
        at = _behind(text, found.end())
        while text.startswith(_OPENING, at) and (end := _json_end(text, at)):
            read = _behind(text, end)
            if not _NEXT.match(text, read):
                # What follows makes it something else, which a reader of YAML can tell.
                break
            yield at, at
            yield end, read
            at = read


def _behind(text: str, at: int) -> int:
    """Where what may stand between values ends."""
    found = _BETWEEN.match(text, at)
    return at if found is None else found.end()


def _json_end(text: str, at: int) -> int:
    """Where the JSON value that begins there ends; 0 if it is none."""
    try:
        return _JSON.raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return 0
