"""Who said which field of an object, as its managedFields tell it.

A server credits to a manager what it applied; what it wrote by an update, with all defaults that
were filled in meanwhile. What the server allocates or adds later, it credits to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

MANAGED = "managedFields"
CONTROL_PLANE = frozenset(
    {
        "before-first-apply",
        "cloud-controller-manager",
        "k3s",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    }
)
"""Managers that are no person's: a cluster's own, and what stands for all that nobody knows of."""
_ITSELF = "."

Fields = Mapping[str, Any]
"""A set of fields, as servers write it: `{"f:spec": {"f:replicas": {}}}`; empty is all below."""
Steps = tuple[str | int, ...]
"""The way to a value: names of fields, and places in lists."""


def owned_fields(obj: Mapping[str, Any], but: Collection[str] = ()) -> Fields | None:
    """What all managers `but` these own of an object; None if it does not tell of any manager."""
    metadata = obj.get("metadata")
    listed = metadata.get(MANAGED) if isinstance(metadata, Mapping) else None
    if not isinstance(listed, list | tuple) or not listed:
        return None
    owned: dict[str, Any] = {_ITSELF: {}}
    for entry in listed:
        if isinstance(entry, Mapping) and entry.get("manager") not in but:
            fields = entry.get("fieldsV1")
            if isinstance(fields, Mapping):
                _add(owned, fields)
    return owned


def fields_below(fields: Fields | None, name: str) -> Fields | None:
    """What is owned of a field of an object; None is nothing."""
    return fields.get(f"f:{name}") if fields else fields


def fields_of_item(fields: Fields | None, at: int, item: Any) -> Fields | None:
    """What is owned of an item of a list; None is nothing."""
    return _of_item(fields, at, item)[0] if fields else fields


def unowned(fields: Fields | None, value: Any, above: Steps = ()) -> Iterator[Steps]:
    """The parts of a value of which `fields` owns nothing; of a whole part, only the way to it."""
    if fields is None:
        yield above
        return
    if not fields:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from unowned(fields_below(fields, name), item, (*above, name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for at, item in enumerate(value):
            owned, keys = _of_item(fields, at, item)
            for steps in unowned(owned, item, (*above, at)):
                if steps[-1] not in keys or len(steps) != len(above) + 2:
                    yield steps


def _add(owned: dict[str, Any], fields: Fields) -> None:
    """Add what another manager owns. Who owns a part whole owns all below, whoever names less."""
    for name, below in fields.items():
        if name == _ITSELF or not isinstance(below, Mapping):
            continue
        if not below or (name in owned and not owned[name]):
            owned[name] = {}
        elif set(below) == {_ITSELF}:
            # The part is there by it, empty; what is in it is of others.
            owned.setdefault(name, {_ITSELF: {}})
        else:
            _add(owned.setdefault(name, {_ITSELF: {}}), below)


def _of_item(fields: Fields, at: int, item: Any) -> tuple[Fields | None, Collection[str]]:
    """What is owned of an item of a list, and the names by which that is known there."""
    for name, below in fields.items():
        form, _, text = name.partition(":")
        sought = _parsed(text) if form in ("k", "v", "i") else None
        if form == "k" and isinstance(sought, Mapping) and isinstance(item, Mapping):
            if sought.items() <= item.items():
                return below, sought.keys()
        elif (form == "v" and item == sought) or (form == "i" and at == sought):
            return below, ()
    return None, ()


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
