"""Which fields of two forms of one object differ, by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from relay.objects.customization import path_text
from schemas.values.fields import Steps

FIELDS_MAX = 50


def differing_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that differ, as `spec.ports[0].port`; FIELDS_MAX of them at most.

    What is a mapping or a list of the same length on both sides is looked into.
    """
    found: list[str] = []
    for steps in _differing(before, after, ()):
        found.append(path_text(steps))
        if len(found) >= FIELDS_MAX:
            break
    return tuple(found)


def _differing(before: Any, after: Any, steps: Steps) -> Iterator[Steps]:
    if before == after and type(before) is type(after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            if name not in before or name not in after:
                yield (*steps, name)
            else:
                yield from _differing(before[name], after[name], (*steps, name))
    elif _are_lists(before, after) and len(before) == len(after):
        for at, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differing(old, new, (*steps, at))
    else:
        yield steps


def _are_lists(*values: Any) -> bool:
    return all(isinstance(value, (list, tuple)) for value in values)
