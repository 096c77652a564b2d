"""Counts as people say them."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def inventory_objects(count: int) -> str:
    """`1 SyncTarget or Location`, `2 SyncTargets and Locations`."""
    return f"{count} SyncTarget or Location" if count == 1 else f"{count} SyncTargets and Locations"
