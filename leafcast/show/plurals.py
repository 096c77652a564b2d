"""Counts as people say them."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {what}{'' if count == 1 else 's'}"
