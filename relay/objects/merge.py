"""One manager's wish applied to an object: what it says is set, what it says no more is taken out.

Lists are atomic, associative ones included: a wish replaces a list whole. A null in a mapping says
nothing, as in Kubernetes. `status` is never touched, nor are the fields that a space itself writes
into `metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.values.fields import is_mapping

Object = dict[str, Any]

SERVER_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_NOTHING: Mapping[str, Any] = {}
_SCALARS = frozenset({str, int, float, bool, type(None)})


def merge_applied(
    live: Mapping[str, Any], previous: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Object:
    """The object after a manager whose last wish was `previous` now wishes `wanted`.

    A field in `previous` and not in `wanted` is removed, and a section that this empties with it;
    what others put into the section stays. Nothing that is handed in is changed or shared.
    """
    merged: Object = _merge(live, _said(previous), wish_of(wanted))
    return merged


def subsumes(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether the object holds all that the wish says; it may hold more.

    In a list, item by item: a server may add defaults to items, but not items.
    """
    return _holds(live, _said(wanted))


def wish_of(obj: Mapping[str, Any]) -> Object:
    """What an object says as a wish: without `status`, a space's own metadata, and nulls."""
    wish = without_nulls(_said(obj))
    assert isinstance(wish, dict)
    return wish


def fields_said(wish: Mapping[str, Any]) -> Object:
    """The fields of a wish without their values: all that `previous` needs, and much smaller."""
    return _names_of(_said(wish))


def changed_fields(
    live: Mapping[str, Any], wanted: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Fields of a wish that the object holds otherwise, as text and as a path of names."""
    for name, value in wanted.items():
        path = (*above, name)
        held = live.get(name)
        if is_mapping(value) and is_mapping(held):
            yield from changed_fields(held, value, path)
        elif name in live and not same(held, value):
            yield ".".join(path), path


def says(said: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a manager whose fields are `said` said the field at this path."""
    section: Any = said
    for name in path:
        if not isinstance(section, Mapping) or name not in section:
            return False
        section = section[name]
    return True


def withdrawn(said: Mapping[str, Any], path: tuple[str, ...]) -> Object:
    """What a manager said, less the field at this path, and less sections that this empties."""
    name, *below = path
    left = dict(said)
    section = left.pop(name)
    if below and isinstance(section, Mapping) and (rest := withdrawn(section, tuple(below))):
        left[name] = rest
    return left


def copied(value: Any) -> Any:
    """A JSON value of its own: mappings as dicts, sequences as lists."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if is_mapping(value):
        return {
            name: item if type(item) in _SCALARS else copied(item) for name, item in value.items()
        }
    if kind is list or kind is tuple:
        return [item if type(item) in _SCALARS else copied(item) for item in value]
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1, and a tuple is as good as a list."""
    if one is other:
        return True
    if type(one) is type(other) and type(one) in _SCALARS:
        return bool(one == other)
    if is_mapping(one) and is_mapping(other):
        return one.keys() == other.keys() and all(map(same, one.values(), map(other.get, one)))
    if _is_list(one) and _is_list(other):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _said(obj: Mapping[str, Any]) -> Object:
    """The object without `status` and a space's own metadata; what is below is shared."""
    said = {name: value for name, value in obj.items() if name != "status"}
    metadata = said.get("metadata")
    if is_mapping(metadata):
        said["metadata"] = {
            name: value for name, value in metadata.items() if name not in SERVER_METADATA
        }
    return said


def _names_of(wish: Mapping[str, Any]) -> Object:
    return {
        name: _names_of(value) if is_mapping(value) else 0
        for name, value in wish.items()
        if value is not None
    }


def _merge(live: Any, previous: Any, wanted: Any) -> Any:
    if not is_mapping(wanted) or not is_mapping(live):
        return copied(wanted)
    said = previous if is_mapping(previous) else _NOTHING
    others = {name: value for name, value in live.items() if name not in wanted}
    merged = _withdraw(others, said)
    for name, value in wanted.items():
        scalar = type(value) in _SCALARS
        merged[name] = value if scalar else _merge(live.get(name), said.get(name), value)
    return merged


def _withdraw(live: Mapping[str, Any], previous: Mapping[str, Any]) -> Object:
    """What is left of `live` without the fields of `previous`."""
    left = {}
    for name, value in live.items():
        section = previous.get(name)
        if section is None:
            left[name] = copied(value)
        elif is_mapping(value) and is_mapping(section):
            remaining = _withdraw(value, section)
            if remaining:
                left[name] = remaining
    return left


def _holds(live: Any, wanted: Any) -> bool:
    if is_mapping(wanted):
        if not is_mapping(live):
            return False
        return all(
            name in live and _holds(live[name], value)
            for name, value in wanted.items()
            if value is not None
        )
    if _is_list(wanted):
        return _is_list(live) and len(live) == len(wanted) and all(map(_holds, live, wanted))
    return same(live, wanted)


def without_nulls(value: Any) -> Any:
    """A copy; a null within a list is an item, and stays."""
    if is_mapping(value):
        return {
            name: item if type(item) in _SCALARS else without_nulls(item)
            for name, item in value.items()
            if item is not None
        }
    return copied(value)


def _is_list(value: Any) -> bool:
    return type(value) is list or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    )
