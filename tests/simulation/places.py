"""Where machines hang that are said to hang elsewhere already: whose law is asked at which path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas.values.identity import NodePath


class Places:
    """By the path where a machine is, the one where its destination is said to hang now."""

    def __init__(self) -> None:
        self._now: dict[NodePath, NodePath] = {}

    def say(self, old: NodePath, new: NodePath) -> None:
        """What was said to hang at `old` hangs at `new`."""
        self._now.pop(new, None)
        self._now[old] = new

    def of(self, path: NodePath) -> NodePath:
        """Where the destination of the machine at a path is said to hang."""
        return self.each_of(path)[-1] if self._now else path

    def each_of(self, path: NodePath) -> list[NodePath]:
        """All places at which it was said to hang since the machine came to the path, in order."""
        found = [path]
        while (then := self._now.get(found[-1])) is not None:
            found.append(then)
        return found

    def arrive(self, old: NodePath, new: NodePath) -> None:
        """The machine of one path has come to the other."""
        for path in self.each_of(old):
            if path == new:
                return
            self._now.pop(path, None)


def rename(found: dict[Any, Any], old: NodePath, new: NodePath) -> None:
    """Hold under the new path what is held under the old one, and that alone."""
    forget(found, new)
    for key in [key for key in found if _path_of(key) == old]:
        found[new if isinstance(key, NodePath) else (new, *key[1:])] = found.pop(key)


def forget(found: dict[Any, Any], path: NodePath) -> None:
    """Hold nothing under the path any more."""
    for key in [key for key in found if _path_of(key) == path]:
        del found[key]


def _path_of(key: NodePath | tuple[NodePath, Any]) -> NodePath:
    return key if isinstance(key, NodePath) else key[0]


def all_of(places: Places, path: NodePath, former: Iterable[NodePath]) -> list[NodePath]:
    """Each path whose destination a machine may take for its own."""
    return list(dict.fromkeys([*places.each_of(path), *former]))
