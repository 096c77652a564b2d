"""A built tree kept as the code that makes it again, so that a seed need not build one of its own.

Whatever can never change is shared between the copies; all else is each copy's own. The code makes
one thing after another and sets each attribute by itself: that runs three times as fast as what is
stored is read back, and leaves all attributes where the interpreter finds them at once.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from schemas.identity import NodePath

SHARED = (int, float, str, bytes, bool, type(None), type, ModuleType, NodePath)
"""What never changes; nor do records, frozen dataclasses, and tuples and frozen sets of such."""
BRACKETS = {tuple: "({},)", list: "[{}]", set: "{{{}}}", frozenset: "frozenset(({},))"}
PROTOCOL = 4


class Snapshot:
    """One object graph, to be copied any number of times."""

    def __init__(self, original: object) -> None:
        self._make = _Writer().written(original)

    def copy(self) -> Any:
        """The graph as it was, independent of the original and of other copies."""
        return self._make()


class _Made:
    """What the code makes; its text is a variable once it is one, as it is used in many places."""

    def __init__(self, *parts: str | _Made, shared: bool = False) -> None:
        self.parts, self.shared = parts, shared
        self.uses, self.name = 0, ""
        for part in parts:
            if isinstance(part, _Made):
                part.uses += 1

    def __str__(self) -> str:
        return self.name or "".join(map(str, self.parts))


class _Writer:
    """Writes the code: what has attributes is made empty at first, and filled when all is there.

    So a ring of objects has a beginning. A ring of nothing but lists and the like would have none,
    and there is none.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[_Made, object]] = {}
        """By identity, with the thing itself: while it is kept no other takes its identity."""
        self._made: list[_Made] = []
        self._filled: list[_Made] = []
        self._shared: dict[str, object] = {"new": object.__new__}
        self._states: list[tuple[_Made, dict[str, object]]] = []

    def written(self, original: object) -> Callable[[], Any]:
        """The function that makes all of it."""
        whole = _Made("return ", self._of(original))
        while self._states:
            owner, attributes = self._states.pop()
            for name, value in attributes.items():
                self._filled.append(_Made(owner, f".{name} = ", self._of(value)))
        lines = []
        for at, made in enumerate(made for made in self._made if made.uses > 1):
            lines.append(f"v{at} = {made}")
            made.name = f"v{at}"
        given = ", ".join(f"{name}={name}" for name in self._shared)
        code = "\n ".join([*lines, *map(str, self._filled), str(whole)])
        names = dict(self._shared)
        exec(f"def make({given}):\n {code}", names)  # noqa: S102 - written here
        return cast("Callable[[], Any]", names["make"])

    def _of(self, obj: object) -> _Made:
        known = self._known.get(id(obj))
        if known is None:
            known = self._known[id(obj)] = self._one(obj), obj
            if not known[0].shared:
                self._made.append(known[0])
        return known[0]

    def _one(self, obj: object) -> _Made:
        kind = type(obj)
        if _is_shared(obj):
            return self._constant(obj)
        if kind in BRACKETS:
            return self._group(obj, BRACKETS[kind])
        if kind is dict:
            return self._dict(cast("dict[object, object]", obj))
        if isinstance(obj, MethodType):
            return self._call(MethodType, (obj.__func__, obj.__self__))
        if isinstance(obj, FunctionType):
            values = tuple(cell.cell_contents for cell in obj.__closure__ or ())
            return self._call(_rebound, (_Template(obj), values))
        if isinstance(obj, Random):
            return self._call(_standing, (_Chance(obj.getstate()),))
        return self._reduced(obj)

    def _constant(self, obj: object) -> _Made:
        if obj is None or type(obj) in (bool, int):
            return _Made(repr(obj), shared=True)
        name = f"c{len(self._shared)}"
        self._shared[name] = obj
        return _Made(name, shared=True)

    def _group(self, obj: Any, brackets: str) -> _Made:
        items = [self._of(item) for item in obj]
        if type(obj) in (tuple, frozenset) and all(item.shared for item in items):
            return self._constant(obj)
        if not items:
            return _Made("[]" if type(obj) is list else "set()")
        before, after = brackets.format("\n").split("\n")
        return _Made(before, *_between(items), after)

    def _dict(self, obj: dict[object, object]) -> _Made:
        pairs = [_Made(self._of(key), ": ", self._of(value)) for key, value in obj.items()]
        return _Made("{", *_between(pairs), "}")

    def _call(self, function: object, given: Iterable[object]) -> _Made:
        return _Made(self._of(function), "(", *_between(map(self._of, given)), ")")

    def _reduced(self, obj: object) -> _Made:
        """Whatever else: made as `copy` would make it, and filled when all is there."""
        reduced = (*cast("tuple[Any, ...]", obj.__reduce_ex__(PROTOCOL)), None, None, None)
        function, given, state, items, pairs = reduced[:5]
        if function is not copyreg.__newobj__:  # type: ignore[attr-defined]
            made = self._call(function, given)
        elif given[0].__new__ is object.__new__:
            made = _Made("new(", self._of(given[0]), ")")
        else:
            made = self._call(given[0].__new__, given)
        self._known[id(obj)] = made, obj
        if items is not None and (listed := list(items)):
            self._filled.append(_Made(made, ".extend(", self._of(listed), ")"))
        if pairs is not None and (paired := dict(pairs)):
            self._filled.append(_Made(made, ".update(", self._of(paired), ")"))
        if state and hasattr(obj, "__setstate__"):
            raise TypeError(f"a {type(obj).__name__} takes its state as it likes")
        parts = state if isinstance(state, tuple) else (state,)
        self._states += [(made, part) for part in parts if part]
        return made


@dataclass(frozen=True)
class _Template:
    """A function whose closure is rebound in each copy."""

    function: FunctionType


@dataclass(frozen=True)
class _Chance:
    """Where a source of chance stands."""

    state: tuple[Any, ...]


def _between(parts: Iterable[_Made]) -> list[str | _Made]:
    """The parts, with commas between them."""
    return [each for part in parts for each in (part, ", ")][:-1]


def _is_shared(obj: object) -> bool:
    """Whether all copies may have this very object."""
    if isinstance(obj, SHARED):
        return True
    if isinstance(obj, FunctionType):
        return not obj.__closure__
    if isinstance(obj, BuiltinFunctionType):
        return isinstance(obj.__self__, ModuleType | type)
    for settings in ("__struct_config__", "__dataclass_params__"):
        if hasattr(type(obj), settings):
            return bool(getattr(type(obj), settings).frozen)
    return False


def _standing(chance: _Chance) -> Random:
    random = Random(0)
    random.setstate(chance.state)
    return random


def _rebound(template: _Template, values: tuple[object, ...]) -> FunctionType:
    made = template.function
    cells = tuple(CellType(value) for value in values)
    return FunctionType(made.__code__, made.__globals__, made.__name__, made.__defaults__, cells)
