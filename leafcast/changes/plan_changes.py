"""A change as it is handed over for a plan: `{changes: [[key, object or null]], named: [key]}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.ask.session import in_inventory
from leafcast.changes.forms import BadBatch, key_words, pack, read_key, unpack
from relay.space_port import Object
from schemas.objects.objects import ObjectKey

Written = Mapping[ObjectKey, Object | None]
"""What is written, by key; None is what is deleted."""


def pack_change(written: Written, named: Iterable[ObjectKey]) -> str:
    """The text of a change."""
    changes = [[key_words(key), obj] for key, obj in written.items()]
    return pack({"changes": changes, "named": [key_words(key) for key in named]})


def read_change(text: Any) -> tuple[Written, Written, list[ObjectKey]]:
    """What is written to the workload space, and to the inventory, and what is named.

    Raises BadBatch, TooLargeBatch.
    """
    match unpack(text):
        case {"changes": list(changes), "named": list(named)}:
            pass
        case _:
            raise BadBatch("no change and no names")
    written = dict(map(_written, changes))
    inventory = {key: obj for key, obj in written.items() if in_inventory(key)}
    workloads = {key: obj for key, obj in written.items() if key not in inventory}
    return workloads, inventory, list(map(read_key, named))


def _written(form: Any) -> tuple[ObjectKey, Object | None]:
    match form:
        case [key, None]:
            return read_key(key), None
        case [key, {"metadata": dict()} as obj]:
            return read_key(key), obj
        case _:
            raise BadBatch("what is written is no object")
