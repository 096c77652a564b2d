"""Fields of what others wrote, which may have any form: what is there, and else nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeGuard

Steps = tuple[str | int, ...]
"""The way to a value: names of fields, and places in lists."""


def mapping_at(form: Any, *names: str) -> Mapping[str, Any]:
    """The mapping at these fields, each below the one before; empty if there is none."""
    for name in names:
        form = form.get(name) if is_mapping(form) else None
    return form if is_mapping(form) else {}


def list_at(form: Any, *names: str) -> Sequence[Any]:
    """The list at these fields; empty if there is none."""
    *above, last = names
    listed = mapping_at(form, *above).get(last)
    return listed if isinstance(listed, list | tuple) else ()


def mappings_at(form: Any, *names: str) -> list[Mapping[str, Any]]:
    """What of the list at these fields has fields."""
    return [item for item in list_at(form, *names) if is_mapping(item)]


def conditions_of(status: Any) -> dict[str, Mapping[str, Any]]:
    """The conditions of a status by type; of several of one type the last."""
    return {str(item.get("type")): item for item in mappings_at(status, "conditions")}


def is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether it has fields; to ask whether something is a Mapping is slow."""
    return type(value) is dict or isinstance(value, Mapping)


def holds(status: Any, type_: str) -> bool:
    """Whether a status says that a condition is True."""
    return conditions_of(status).get(type_, {}).get("status") == "True"


def walk(form: Any, above: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """All fields and items of a form, each before what is in it, and fields by their names."""
    parts: Iterable[tuple[str | int, Any]] = ()
    if is_mapping(form):
        parts = sorted(form.items(), key=itemgetter(0))
    elif isinstance(form, Sequence) and not isinstance(form, str | bytes):
        parts = enumerate(form)
    for step, item in parts:
        yield (*above, step), item
        yield from walk(item, (*above, step))


def value_at(form: Any, steps: Steps) -> Any:
    """The value to which the steps lead; raises LookupError or TypeError if there is none."""
    for step in steps:
        form = form[step]
    return form


def by_place(steps: Steps) -> tuple[tuple[int, int, str], ...]:
    """Sorts ways to values of one form: in a list by place."""
    return tuple((1, step, "") if isinstance(step, int) else (0, 0, step) for step in steps)
