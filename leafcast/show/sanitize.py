"""What came from elsewhere, made harmless: it can neither steer a terminal nor reverse its text."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")
_REORDERING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def sanitize(text: str) -> str:
    """The text without control characters, newline and tabulator aside, and without reordering."""
    return text if text.isascii() and text.isprintable() else "".join(filter(_shown, text))


def _shown(character: str) -> bool:
    if character in _KEPT:
        return True
    return unicodedata.category(character) != "Cc" and character not in _REORDERING
