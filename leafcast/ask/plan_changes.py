"""A change as it is handed to the centre for a plan: compressed JSON, as text in parts.

It is `{"changes": [[key, object or null], …], "named": [key, …]}`; a key is a list of group,
resource, namespace and name.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.ask.session import in_inventory
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.values.codec import from_json

CHANGE_BYTES_MAX = 32 * 1024 * 1024

Written = Mapping[ObjectKey, Object | None]
"""What is written, by key; None is what is deleted."""


class BadChange(ValueError):
    """A text that is no change; says why."""


def pack_change(written: Written, named: Iterable[ObjectKey]) -> str:
    """The text of a change."""
    form = {
        "changes": [[words_of(key), obj] for key, obj in written.items()],
        "named": [words_of(key) for key in named],
    }
    return base64.b64encode(zlib.compress(json.dumps(form).encode())).decode()


def read_change(text: str) -> tuple[Written, Written, list[ObjectKey]]:
    """What is written to the workload space, and to the inventory, and what is named.

    Raises BadChange.
    """
    try:
        opener = zlib.decompressobj()
        plain = opener.decompress(base64.b64decode(text, validate=True), CHANGE_BYTES_MAX)
        if opener.unconsumed_tail:
            raise BadChange(f"more than {CHANGE_BYTES_MAX} bytes")
        said = from_json(plain, CHANGE_BYTES_MAX)
    except (binascii.Error, zlib.error, RecursionError, ValueError) as error:
        raise BadChange(str(error)) from error
    match said:
        case {"changes": list(changes), "named": list(named)}:
            pass
        case _:
            raise BadChange("no change and no names")
    written = dict(map(_written, changes))
    inventory = {key: obj for key, obj in written.items() if in_inventory(key)}
    workloads = {key: obj for key, obj in written.items() if key not in inventory}
    return workloads, inventory, [_key(words) for words in named]


def words_of(key: ObjectKey) -> list[str]:
    return [key.group, key.resource, key.namespace, key.name]


def _written(form: Any) -> tuple[ObjectKey, Object | None]:
    match form:
        case [words, None]:
            return _key(words), None
        case [words, {"metadata": dict()} as obj]:
            return _key(words), obj
        case _:
            raise BadChange("what is written is no object")


def _key(words: Any) -> ObjectKey:
    match words:
        case [str(group), str(resource), str(namespace), str(name)]:
            return ObjectKey(group, resource, namespace, name)
        case _:
            raise BadChange("no key of an object")
