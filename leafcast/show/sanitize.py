"""What came from elsewhere, made harmless: it can neither steer a terminal nor reverse its text."""

from __future__ import annotations

from schemas.values.wording import visible

_KEPT = frozenset("\n\t")
_CONTROL = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
"""Category Cc: Unicode adds none to it."""
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
    return character not in _CONTROL and character not in _REORDERING
