"""Nulls that a wish says for fields of mappings: where they are, and the wish without some of them.

For a custom resource a server keeps a null only where its definition lets the field be null. Of
other fields it takes a null for none in what `kubectl apply` sends; in a server-side apply it
refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from schemas.crds.structural import Schema, field_of, items_of
from schemas.values.fields import Steps, walk

_OF_ANOTHER_TYPE = " in body must be of type "


def null_fields(value: Any, *, or_empty: bool = False) -> Iterator[Steps]:
    """The fields of all mappings in a value that are null; a null in a list is an item.

    With `or_empty` also those that hold nothing.
    """
    for steps, item in walk(value):
        is_field = isinstance(steps[-1], str)
        if is_field and (item is None or (or_empty and item in ({}, []))):
            yield steps


def not_nullable(value: Any, schema: Schema, steps: Steps = ()) -> Iterator[Steps]:
    """The fields that are null, and that the schema knows and does not let be null."""
    match value:
        case Mapping():
            for name, item in value.items():
                field = field_of(schema, name)
                if field is None or (not steps and name == "metadata"):
                    continue
                if item is not None:
                    yield from not_nullable(item, field, (*steps, name))
                elif not field.get("nullable"):
                    yield (*steps, name)
        case list() | tuple():
            inner = items_of(schema)
            for at, item in enumerate(value if inner is not None else ()):
                yield from not_nullable(item, inner or {}, (*steps, at))
        case _:
            return


def refused_nulls(obj: Mapping[str, Any], message: str) -> frozenset[Steps]:
    """The null fields that a server's refusal names.

    An apply that empties what it said before makes a null of it at the server, and is refused so.
    """
    if _OF_ANOTHER_TYPE not in message:
        return frozenset()
    fields = null_fields(obj, or_empty=True)
    said = {steps: f": {field_text(steps)}{_OF_ANOTHER_TYPE}" for steps in fields}
    return frozenset(steps for steps, text in said.items() if text in message)


def without_fields(value: Any, fields: Collection[Steps]) -> Any:
    """The value less these fields; what is on the way to none of them is shared."""
    if not fields:
        return value
    below: dict[str | int, list[Steps]] = {}
    for first, *rest in fields:
        below.setdefault(first, []).append(tuple(rest))
    if isinstance(value, Mapping):
        return {
            name: without_fields(item, below.get(name, ()))
            for name, item in value.items()
            if () not in below.get(name, ())
        }
    return [without_fields(item, below.get(at, ())) for at, item in enumerate(value)]


def said_by(value: Any) -> Any:
    """The value without any null of a mapping, also of those within lists: what it says."""
    return without_fields(value, list(null_fields(value)))


def with_nulls(made: Any, wish: Any) -> Any:
    """What was made of a wish, with the nulls that this says where nothing came of them."""
    if isinstance(made, Mapping) and isinstance(wish, Mapping):
        said = {name: None for name, item in wish.items() if item is None and name not in made}
        kept = {
            name: with_nulls(item, wish[name]) if wish.get(name) is not None else item
            for name, item in made.items()
        }
        return kept | said
    lists = isinstance(made, (list, tuple)) and isinstance(wish, (list, tuple))
    if lists and len(made) == len(wish):
        return [with_nulls(one, other) for one, other in zip(made, wish, strict=True)]
    return made


def field_text(steps: Steps) -> str:
    """A field as API servers name it: `spec.nodes[0].config`."""
    said = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return "".join(said).removeprefix(".")
