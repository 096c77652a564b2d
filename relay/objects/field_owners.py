"""Who said which field of an object, as its managedFields tell it.

A server credits to a manager what it applied; what it wrote by an update, with all defaults that
were filled in meanwhile. What the server allocates or adds later, it credits to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from schemas.objects.objects import LAST_APPLIED
from schemas.values.fields import Steps, mapping_at, mappings_at

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
_CLIENT_SIDE = "kubectl-client-side-apply"
_ITSELF = "."

Fields = Mapping[str, Any]
"""A set of fields, as servers write it: `{"f:spec": {"f:replicas": {}}}`; empty is all below."""


def owned_fields(obj: Mapping[str, Any], but: Collection[str] = ()) -> Fields | None:
    """What all managers `but` these own of an object; None if it does not tell of any manager."""
    owned: dict[str, Any] = {_ITSELF: {}}
    for entry, fields in entries(obj):
        if entry.get("manager") not in but:
            _add(owned, fields)
    return owned if tells_of_managers(obj) else None


def said_fields(obj: Mapping[str, Any], *, updates: bool = False) -> Fields | None:
    """What managers said, less than they own; None if the object does not tell of any manager.

    What was applied is said. So is of a client's own apply what the object notes of it. Of other
    `updates` nobody knows what of it are defaults.
    """
    said: dict[str, Any] = {_ITSELF: {}}
    noted = _last_applied(obj)
    for entry, fields in entries(obj):
        if noted is not None and entry.get("manager") == _CLIENT_SIDE:
            _add(said, _within(fields, noted))
        elif entry.get("operation") == "Apply" or updates:
            _add(said, fields)
    return said if tells_of_managers(obj) else None


def is_named(fields: Fields | None, value: Any, steps: Steps) -> bool:
    """Whether the part of a value that these steps lead to is owned, and not only with a whole.

    Who owns an atomic list owns what a server fills into its items.
    """
    for step in steps:
        if not fields:
            return False
        if isinstance(step, str):
            fields = fields_below(fields, step)
        else:
            fields = fields_of_item(fields, step, value[step])
        value = value[step]
    return fields is not None


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


def tells_of_managers(obj: Mapping[str, Any]) -> bool:
    """Whether an object says who owns what in it."""
    return next(entries(obj), None) is not None


def entries(obj: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Fields]]:
    """Each manager's entry, and the fields that it owns."""
    for entry in mappings_at(obj, "metadata", MANAGED):
        if isinstance(fields := entry.get("fieldsV1"), Mapping):
            yield entry, fields


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


def _last_applied(obj: Mapping[str, Any]) -> Any:
    text = mapping_at(obj, "metadata", "annotations").get(LAST_APPLIED)
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _within(fields: Fields, said: Any) -> Fields:
    """The fields of a set that a value has, too; a part of which it has none is there."""
    if not fields or not isinstance(fields, Mapping):
        return _all_of(said)
    found: dict[str, Any] = {_ITSELF: {}}
    for name, below in fields.items():
        form, _, text = name.partition(":")
        sought = parsed_key(text) if form == "k" else None
        if form == "f" and isinstance(said, Mapping) and text in said:
            found[name] = _within(below, said[text])
        elif isinstance(sought, Mapping) and isinstance(said, list):
            # A key that the item leaves out is one that the server fills in.
            items = (item for item in said if isinstance(item, Mapping))
            alike = (it for it in items if all(it.get(k, v) == v for k, v in sought.items()))
            if (item := next(alike, None)) is not None:
                found[name] = _within(below, item)
        elif form in ("v", "i"):
            found[name] = below
    return found


def _all_of(said: Any) -> Fields:
    """All that a value has, as a set of fields."""
    if isinstance(said, Mapping):
        return {_ITSELF: {}, **{f"f:{name}": _all_of(item) for name, item in said.items()}}
    if isinstance(said, list) and any(isinstance(item, Mapping) for item in said):
        return {_ITSELF: {}, **{f"i:{at}": _all_of(item) for at, item in enumerate(said)}}
    return {}


def _of_item(fields: Fields, at: int, item: Any) -> tuple[Fields | None, Collection[str]]:
    """What is owned of an item of a list, and the names by which that is known there."""
    for name, below in fields.items():
        form, _, text = name.partition(":")
        sought = parsed_key(text) if form in ("k", "v", "i") else None
        if form == "k" and isinstance(sought, Mapping) and isinstance(item, Mapping):
            if sought.items() <= item.items():
                return below, sought.keys()
        elif (form == "v" and item == sought) or (form == "i" and at == sought):
            return below, ()
    return None, ()


@lru_cache(maxsize=1024)
def parsed_key(text: str) -> Any:
    """What the key or value of an item says, as servers write it; None if it cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
