"""A built tree kept as bytes, so that a seed need not build one of its own.

Whatever can never change is shared between the copies; all else is each copy's own.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any


class Snapshot:
    """One object graph, to be copied any number of times."""

    def __init__(self, original: object) -> None:
        self._shared: list[object] = []
        stored = io.BytesIO()
        _Writer(stored, self._shared).dump(original)
        self._bytes = stored.getvalue()

    def copy(self) -> Any:
        """The graph as it was, independent of the original and of other copies."""
        return _Reader(io.BytesIO(self._bytes), self._shared).load()


@dataclass(frozen=True)
class _Template:
    """A function whose closure is rebound in each copy."""

    function: FunctionType


class _Writer(pickle.Pickler):
    def __init__(self, stored: io.BytesIO, shared: list[object]) -> None:
        super().__init__(stored, pickle.HIGHEST_PROTOCOL)
        self._shared = shared
        self._places: dict[int, int] = {}

    def persistent_id(self, obj: object) -> int | None:
        settings = getattr(type(obj), "__dataclass_params__", None)
        if not isinstance(obj, bytes) and (settings is None or not settings.frozen):
            return None
        place = self._places.setdefault(id(obj), len(self._shared))
        if place == len(self._shared):
            self._shared.append(obj)
        return place

    def reducer_override(self, obj: object) -> Any:
        if isinstance(obj, FunctionType) and obj.__closure__:
            values = tuple(cell.cell_contents for cell in obj.__closure__)
            return _rebound, (_Template(obj), values)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, stored: io.BytesIO, shared: list[object]) -> None:
        super().__init__(stored)
        self._shared = shared

    def persistent_load(self, place: int) -> object:
        return self._shared[place]


def _rebound(template: _Template, values: tuple[object, ...]) -> FunctionType:
    made = template.function
    cells = tuple(CellType(value) for value in values)
    return FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, cells)
