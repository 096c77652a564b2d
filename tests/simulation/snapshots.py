"""A built tree kept as bytes, so that a seed need not build one of its own.

Whatever can never change is shared between the copies; all else is each copy's own.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from dataclasses import dataclass
from random import Random
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any


class Snapshot:
    """One object graph, to be copied any number of times."""

    def __init__(self, original: object) -> None:
        self._shared: list[object] = []
        stored = io.BytesIO()
        _Writer(stored, self._shared).dump(original)
        self._bytes = pickletools.optimize(stored.getvalue())

    def copy(self) -> Any:
        """The graph as it was, independent of the original and of other copies."""
        reader = pickle.Unpickler(io.BytesIO(self._bytes))  # noqa: S301 - made here
        reader.persistent_load = self._shared.__getitem__  # type: ignore[method-assign]
        return reader.load()


@dataclass(frozen=True)
class _Template:
    """A function whose closure is rebound in each copy."""

    function: FunctionType


@dataclass(frozen=True)
class _Chance:
    """Where a source of chance stands."""

    state: tuple[Any, ...]


class _Writer(pickle.Pickler):
    def __init__(self, stored: io.BytesIO, shared: list[object]) -> None:
        super().__init__(stored, pickle.HIGHEST_PROTOCOL)
        self._shared = shared
        self._places: dict[int, int] = {}

    def persistent_id(self, obj: object) -> int | None:
        if not _is_shared(obj):
            return None
        place = self._places.setdefault(id(obj), len(self._shared))
        if place == len(self._shared):
            self._shared.append(obj)
        return place

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, Random):
            return _standing, (_Chance(obj.getstate()),)
        if isinstance(obj, FunctionType) and obj.__closure__:
            values = tuple(cell.cell_contents for cell in obj.__closure__)
            return _rebound, (_Template(obj), values)
        if type(getattr(obj, "__dict__", None)) is dict:
            return _one_by_one(obj)
        return NotImplemented


def _is_shared(obj: object) -> bool:
    """Whether all copies may have this very object: to look a name up takes long, too."""
    if isinstance(obj, (bytes, type)):
        return True
    if isinstance(obj, FunctionType):
        return not obj.__closure__
    if isinstance(obj, BuiltinFunctionType):
        return isinstance(obj.__self__, ModuleType)
    settings = getattr(type(obj), "__dataclass_params__", None)
    return settings is not None and settings.frozen


def _one_by_one(obj: object) -> Any:
    """How an object is made again, its attributes set each by itself.

    As a dictionary they would no longer be where the interpreter finds them at once, and all that
    an object does afterwards takes a fifth longer.
    """
    reduced = obj.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    if len(reduced) < 3 or type(reduced[2]) is not dict:
        return NotImplemented
    return (*reduced[:2], (None, reduced[2]), *reduced[3:])


def _standing(chance: _Chance) -> Random:
    random = Random(0)
    random.setstate(chance.state)
    return random


def _rebound(template: _Template, values: tuple[object, ...]) -> FunctionType:
    made = template.function
    cells = tuple(CellType(value) for value in values)
    return FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, cells)
