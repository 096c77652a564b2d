"""Frozen dataclasses without the guard against assignment, most of the time to make one.

That nothing assigns to them is for mypy to see, and for every seed with real signatures, where all
is as it is in the program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from relay.adapters.memory import streams as memory_streams
from relay.core import (
    admission,
    book,
    claims,
    effects,
    events,
    inbox,
    index,
    parked,
    where,
)
from relay.syncer import plan
from schemas import blobs, objects, signing

Instead = tuple[object, str, object]
"""What to replace: in a class or module the attribute of this name, by this."""
MODULES: tuple[ModuleType, ...] = (
    admission,
    blobs,
    book,
    claims,
    effects,
    events,
    inbox,
    index,
    memory_streams,
    objects,
    parked,
    plan,
    signing,
    where,
)
_ABSENT = object()


class Replaced:
    """Attributes that are replaced, or as they were."""

    def __init__(self, instead: Iterable[Instead]) -> None:
        self._instead = list(instead)
        self._honest: list[Instead] = []

    def put(self, *, on: bool) -> None:
        """Replace all, or put all back as it was found."""
        if on == bool(self._honest):
            return
        found = [(owner, name, getattr(owner, name)) for owner, name, _ in self._instead]
        for owner, name, value in self._instead if on else self._honest:
            setattr(owner, name, value)
        self._honest = found if on else []


def unguarded() -> list[Instead]:
    """What makes the frozen dataclasses of MODULES plain ones."""
    frozen = [
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and _is_frozen(kind)
    ]
    instead: list[Instead] = []
    for kind in frozen:
        instead.append((kind, "__init__", _plain_init(kind)))
        instead += [(kind, name, getattr(object, name)) for name in ("__setattr__", "__delattr__")]
    return instead


def _is_frozen(kind: type) -> bool:
    settings = getattr(kind, "__dataclass_params__", None)
    return settings is not None and settings.frozen


def _plain_init(kind: type) -> Callable[..., None]:
    """What `dataclass` would make for the class if it were not frozen."""
    known: dict[str, Any] = {"_absent": _ABSENT}
    taken, lines = ["self"], ["pass"]
    for field in dataclasses.fields(kind):
        assert field.init, f"{kind} needs a rule for {field.name}"
        name, default = field.name, f"_default_{field.name}"
        if field.default is not dataclasses.MISSING:
            known[default] = field.default
            taken.append(f"{name}={default}")
        elif field.default_factory is not dataclasses.MISSING:
            known[default] = field.default_factory
            taken.append(f"{name}=_absent")
            lines.append(f"if {name} is _absent: {name} = {default}()")
        else:
            taken.append(name)
        lines.append(f"self.{name} = {name}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(taken)}):\n  " + "\n  ".join(lines), known)  # noqa: S102 - made here
    made: Callable[..., None] = known["__init__"]
    return made
