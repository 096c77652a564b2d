"""Which word was meant by one that is none: of those there are, the most alike."""

from __future__ import annotations

from collections.abc import Iterable


def most_alike(word: str, known: Iterable[str], least: float = 0.6) -> str:
    """The known word that is most alike, if one is at least so much (0 to 1); "" if none is."""
    # Here, as it takes 0.2 MB of each node, and is asked of what people write only.
    from difflib import get_close_matches  # noqa: PLC0415

    return next(iter(get_close_matches(word, list(known), 1, least)), "")
