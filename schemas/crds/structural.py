"""Objects held to the structural schema of their CustomResourceDefinition, as an API server does.

What a schema does not know is pruned, its defaults are filled in, and the rest is checked, in the
API server's words. Formats and rules in CEL are not looked at.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import NoneType
from typing import Any

from schemas.values.faults import Fault

FAULTS_MAX = 10
PATTERN_TEXT_MAX = 4_096
"""Longer texts are not held to a pattern: nobody knows what that would cost."""

Schema = Mapping[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
_NO_SCHEMA: Schema = {_PRESERVE: True}


def field_of(schema: Schema, name: str) -> Schema | None:
    """What the schema says of a field; None if it does not know it."""
    others = schema.get("additionalProperties")
    known = _properties(schema).get(name)
    return known if known is not None or not isinstance(others, Mapping) else others


def items_of(schema: Schema) -> Schema | None:
    """What the schema says of the items of a list."""
    items = schema.get("items")
    return items if isinstance(items, Mapping) else None


def pruned(obj: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The object without the fields that its schema does not know."""
    return _pruned_object(obj, schema, whole=True)


def with_defaults(obj: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """The object with the schema's defaults where it says nothing."""
    made = dict(obj)
    for name, field in _properties(schema).items():
        lacks = name not in made or (made[name] is None and not field.get("nullable"))
        if lacks and "default" in field:
            made[name] = copy.deepcopy(field["default"])
        if name in made:
            made[name] = _with_defaults(made[name], field)
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        known = _properties(schema)
        made |= {name: _with_defaults(made[name], others) for name in made.keys() - known.keys()}
    return made


def defaults_in(
    value: Any, schema: Schema, above: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Where a value holds just what its schema fills in: the way to each such field."""
    if isinstance(value, Mapping):
        known, others = _properties(schema), schema.get("additionalProperties")
        for name, item in value.items():
            field = known.get(name, others)
            if not isinstance(field, Mapping):
                continue
            filled = with_defaults({}, {"properties": {name: field}})
            if name in filled and filled[name] == item:
                yield (*above, name)
            else:
                yield from defaults_in(item, field, (*above, name))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for at, item in enumerate(value):
            yield from defaults_in(item, items_of(schema) or {}, (*above, at))


def schema_faults(obj: Mapping[str, Any], schema: Schema) -> list[Fault]:
    """What of an object its schema does not allow, some of it; empty if it is valid."""
    return list(islice(_faults(obj, schema, ""), FAULTS_MAX))


def _with_defaults(value: Any, schema: Schema) -> Any:
    if isinstance(value, Mapping):
        return with_defaults(value, schema)
    items = items_of(schema)
    if isinstance(value, (list, tuple)) and items is not None:
        return [_with_defaults(item, items) for item in value]
    return value


def _pruned(value: Any, schema: Schema) -> Any:
    if isinstance(value, Mapping):
        return _pruned_object(value, schema, whole=bool(schema.get(_EMBEDDED)))
    items = items_of(schema)
    if isinstance(value, (list, tuple)) and items is not None:
        return [_pruned(item, items) for item in value]
    return value


def _pruned_object(value: Mapping[str, Any], schema: Schema, *, whole: bool) -> dict[str, Any]:
    """`whole` objects have a type and metadata, whatever the schema says of these."""
    known, others = _properties(schema), schema.get("additionalProperties")
    made: dict[str, Any] = {}
    for name, item in value.items():
        if whole and name in _OF_EVERY_OBJECT:
            made[name] = item
        elif name in known:
            made[name] = _pruned(item, known[name])
        elif isinstance(others, Mapping):
            made[name] = _pruned(item, others)
        elif others is True or schema.get(_PRESERVE):
            made[name] = item
    return made


def _properties(schema: Schema) -> Mapping[str, Schema]:
    known = schema.get("properties")
    if not isinstance(known, Mapping):
        return {}
    return {
        name: field if isinstance(field, Mapping) else _NO_SCHEMA for name, field in known.items()
    }


def _faults(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    if value is None and schema.get("nullable"):
        return
    expected = schema.get("type")
    if schema.get(_INT_OR_STRING):
        if _type_of(value) not in ("integer", "string"):
            yield _mistyped(value, "integer,string", path)
            return
    elif isinstance(expected, str) and not _is(value, expected):
        yield _mistyped(value, expected, path)
        return
    allowed = schema.get("enum")
    if isinstance(allowed, (list, tuple)) and value not in allowed:
        listed = ", ".join(json.dumps(one) for one in allowed)
        yield Fault(path, f"Unsupported value: {_shown(value)}: supported values: {listed}")
    for keyword, holds, words in _LIMITS:
        if keyword in schema and not holds(value, schema[keyword]):
            told = f"{path} in body {words.format_map(schema)}"
            yield Fault(path, f"Invalid value: {_shown(value)}: {told}")
    yield from _inner_faults(value, schema, path)
    yield from _logical_faults(value, schema, path)


def _inner_faults(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        known, others = _properties(schema), schema.get("additionalProperties")
        for name in schema.get("required") or ():
            if name not in value:
                yield Fault(_below(path, name), "Required value")
        for name, item in value.items():
            field = known.get(name, others)
            if isinstance(field, Mapping) and not (not path and name in _OF_EVERY_OBJECT):
                yield from _faults(item, field, _below(path, name))
    elif isinstance(value, (list, tuple)) and isinstance(schema.get("items"), Mapping):
        for at, item in enumerate(value):
            yield from _faults(item, schema["items"], f"{path}[{at}]")


def _logical_faults(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    """What holds of several schemas together."""
    for word, enough in _LOGIC.items():
        among = schema.get(word)
        if isinstance(among, (list, tuple)) and among:
            right = sum(not any(_faults(value, one, path)) for one in among)
            if not enough(right, len(among)):
                told = f'"{path}" must validate {_LOGIC_WORDS[word]} ({word})'
                yield Fault(path, f"Invalid value: {_shown(value)}: {told}")
    denied = schema.get("not")
    if isinstance(denied, Mapping) and not any(_faults(value, denied, path)):
        told = f'"{path}" must not validate the schema (not)'
        yield Fault(path, f"Invalid value: {_shown(value)}: {told}")


_LOGIC: Mapping[str, Callable[[int, int], bool]] = {
    "allOf": lambda right, whole: right == whole,
    "anyOf": lambda right, _: right >= 1,
    "oneOf": lambda right, _: right == 1,
}
_LOGIC_WORDS = {
    "allOf": "all the schemas",
    "anyOf": "at least one schema",
    "oneOf": "one and only one schema",
}


_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (NoneType,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "object": (Mapping,),
    "array": (list, tuple),
}


def _is(value: Any, expected: str) -> bool:
    if expected == "integer" and isinstance(value, float):
        return value.is_integer()
    if expected not in _TYPES or isinstance(value, bool):
        return expected not in _TYPES or expected == "boolean"
    return isinstance(value, _TYPES[expected])


def _number(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, limit: Any) -> bool:
        return not (_is(value, "number") and _is(limit, "number")) or compare(value, limit)

    return holds


def _size(of: Sequence[type], compare: Callable[[int, int], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, limit: Any) -> bool:
        sized = isinstance(value, tuple(of)) and _is(limit, "integer")
        return not sized or compare(len(value), limit)

    return holds


def _matches(value: Any, pattern: Any) -> bool:
    if not isinstance(value, str) or len(value) > PATTERN_TEXT_MAX or not isinstance(pattern, str):
        return True
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(value) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """A pattern of Go's; None if Python does not know its form."""
    try:
        return re.compile(pattern)
    except re.error:
        return None


_TEXT, _LIST, _MAP = (str,), (list, tuple), (Mapping,)
_LIMITS: Sequence[tuple[str, Callable[[Any, Any], bool], str]] = (
    ("minimum", _number(lambda a, b: a >= b), "should be greater than or equal to {minimum}"),
    ("maximum", _number(lambda a, b: a <= b), "should be less than or equal to {maximum}"),
    ("minLength", _size(_TEXT, lambda a, b: a >= b), "should be at least {minLength} chars long"),
    ("maxLength", _size(_TEXT, lambda a, b: a <= b), "should be at most {maxLength} chars long"),
    ("pattern", _matches, "should match '{pattern}'"),
    ("minItems", _size(_LIST, lambda a, b: a >= b), "should have at least {minItems} items"),
    ("maxItems", _size(_LIST, lambda a, b: a <= b), "should have at most {maxItems} items"),
    (
        "minProperties",
        _size(_MAP, lambda a, b: a >= b),
        "should have at least {minProperties} properties",
    ),
    (
        "maxProperties",
        _size(_MAP, lambda a, b: a <= b),
        "should have at most {maxProperties} properties",
    ),
)


def _mistyped(value: Any, expected: str, path: str) -> Fault:
    named = f'"{_type_of(value)}"'
    return Fault(
        path, f"Invalid value: {named}: {path} in body must be of type {expected}: {named}"
    )


def _type_of(value: Any) -> str:
    found = (name for name, types in _TYPES.items() if isinstance(value, types))
    return next(found, "array")


def _shown(value: Any) -> str:
    """A value in a message, short; what has parts is told by its type."""
    if isinstance(value, (Mapping, list, tuple)):
        return f'"{_type_of(value)}"'
    said = json.dumps(value, ensure_ascii=False)
    return said if len(said) <= 80 else f"{said[:77]}..."


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)
