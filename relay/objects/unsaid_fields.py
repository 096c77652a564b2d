"""Fields of an object that nobody said: a server filled them in, and may know more than the next.

They travel by numbers, as a manifest entry has little room: all fields and items of the object are
counted, each before what is in it, fields by their names. Where a space does not know such a field
the object is applied without it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from relay.objects.merge import Object, copied
from schemas.content.manifest import UNSAID_MAX
from schemas.values.fields import Steps, by_place, value_at, walk

_NEVER = frozenset({"apiVersion", "kind", "metadata", "status"})
_UNKNOWN = re.compile(r'(\.(?:[^\s"]|"(?:[^"\\]|\\.)*")+): field not declared in schema')
_DECODER = json.JSONDecoder()


def numbers_of(obj: Mapping[str, Any], unsaid: Collection[Steps]) -> tuple[int, ...]:
    """The numbers of these fields of an object, at most so many as may travel."""
    if not unsaid:
        return ()
    found = (number for number, steps in enumerate(_counted(obj)) if steps in unsaid)
    return tuple(number for number, _ in zip(found, range(UNSAID_MAX), strict=False))


def fields_of(obj: Mapping[str, Any], numbers: Iterable[int]) -> frozenset[Steps]:
    """The fields of these numbers."""
    wanted = frozenset(numbers)
    return frozenset(steps for number, steps in enumerate(_counted(obj)) if number in wanted)


def without_unknown(wish: Object, unsaid: Collection[Steps], message: str) -> Object | None:
    """The wish without what a space refused by this message as unknown to it, if nobody said it.

    None if there is no such field.
    """
    refused = {steps for text in _UNKNOWN.findall(message) if (steps := _way(text, wish))}
    gone = [s for s in refused if any(s[:end] in unsaid for end in range(1, len(s) + 1))]
    if not gone:
        return None
    lesser: Object = copied(wish)
    # The last items of a list first, so that the others stay where they are.
    for steps in sorted(gone, key=by_place, reverse=True):
        del value_at(lesser, steps[:-1])[steps[-1]]
    return lesser


def _counted(obj: Mapping[str, Any]) -> Iterator[Steps]:
    said = {name: value for name, value in obj.items() if name not in _NEVER}
    return (steps for steps, _ in walk(said))


def _way(text: str, value: Any) -> Steps:
    """Where a path as servers write it leads to in an object; empty if nowhere."""
    steps: list[str | int] = []
    while text:
        step, text = _step(text, value)
        if step is None:
            return ()
        steps.append(step)
        value = value[step]
    return tuple(steps)


def _step(text: str, value: Any) -> tuple[str | int | None, str]:
    """The first step of a path, None if there is none such, and the rest of it."""
    if text[0] == "." and isinstance(value, Mapping):
        names = [
            n for n in value if text.startswith(n, 1) and text[len(n) + 1 :][:1] in ("", *".[")
        ]
        name = max(names, key=len, default=None)
        return name, text[len(name or "") + 1 :]
    if text[0] == "[" and isinstance(value, Sequence) and not isinstance(value, str | bytes):
        sought, rest = _bracket(text)
        fits = (at for at, item in enumerate(value) if _is_item(sought, at, item))
        return next(fits, None), rest
    return None, ""


def _bracket(text: str) -> tuple[int | Mapping[str, Any] | None, str]:
    """What stands in the bracket that a text begins with: a number, or keys; and the rest."""
    if number := re.match(r"\[(\d+)\]", text):
        return int(number[1]), text[number.end() :]
    keys, at = dict[str, Any](), 0
    try:
        while named := re.compile(r"[\[,](\w*)=").match(text, at):
            keys[named[1]], at = _DECODER.raw_decode(text, named.end())
    except (ValueError, RecursionError):
        return None, ""
    return (keys, text[at + 1 :]) if keys and text[at : at + 1] == "]" else (None, "")


def _is_item(sought: int | Mapping[str, Any] | None, at: int, item: Any) -> bool:
    if isinstance(sought, int):
        return at == sought
    if sought is None:
        return False
    if sought.keys() == {""}:
        return bool(item == sought[""])
    # A key that the item leaves out is one that the server fills in.
    return isinstance(item, Mapping) and all(item.get(k, v) == v for k, v in sought.items())
