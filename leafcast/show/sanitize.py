"""What came from elsewhere, made harmless: it can neither steer a terminal nor reverse its text."""

from __future__ import annotations

import unicodedata

from schemas.values.wording import visible

_KEPT = frozenset("\n\t")
_REORDERING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def sanitize(line: str) -> str:
    """One line, which it stays: without control characters, and with its breaks shown.

    Some kinds have names with line breaks in them, which would fake a line of our own.
    """
    return line if line.isascii() and line.isprintable() else sanitize_lines(visible(line))


def sanitize_lines(text: str) -> str:
    """The text without control characters, newline and tabulator aside, and without reordering."""
    return text if text.isascii() and text.isprintable() else "".join(filter(_shown, text))


def _shown(character: str) -> bool:
    if character in _KEPT:
        return True
    return unicodedata.category(character) != "Cc" and character not in _REORDERING
