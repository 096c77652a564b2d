"""What came from elsewhere, made harmless: it can neither steer a terminal nor reverse its text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_KEPT = frozenset("\n\t")
_REORDERING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def sanitize(text: str) -> str:
    """The text without control characters, newline and tabulator aside, and without reordering."""
    return text if text.isascii() and text.isprintable() else "".join(filter(_shown, text))


class Sanitized:
    """A view whose texts cannot steer the terminal; its styles are its own."""

    def __init__(self, view: RenderableType) -> None:
        self._view = view

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._view, options):
            clean = segment.text if segment.control else sanitize(segment.text)
            yield Segment(clean, segment.style, segment.control)


def _shown(character: str) -> bool:
    if character in _KEPT:
        return True
    return unicodedata.category(character) != "Cc" and character not in _REORDERING
