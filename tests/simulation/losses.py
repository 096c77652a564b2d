"""Which disks were lost, or went back to an old copy, since all was last as it should be.

Besides, what machines brought along when they came to another place.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.identity import NodePath


class Losses:
    """By the paths of the nodes whose disks they were; the centre's own among them."""

    def __init__(self) -> None:
        self.forgot: dict[NodePath, None] = {}
        self._put_back: dict[NodePath, float] = {}
        self._brought: dict[NodePath, Mapping[str, int]] = {}
        self._left: dict[NodePath, Mapping[str, int]] = {}

    def arrived(self, path: NodePath, held: Mapping[str, int]) -> None:
        """A machine came to a path with records of these generations."""
        self._brought[path] = held

    def brought(self, path: NodePath, key: str) -> int:
        """Up to which generation of a record the machine at a path had it when it came."""
        return self._brought.get(path, {}).get(key, 0)

    def put_back(self, path: NodePath, now: float) -> None:
        self.forgot[path] = None
        self._put_back[path] = now

    def left(self, path: NodePath, key: str) -> int:
        """Up to which generation of a record a node alone has it since one above forgot it."""
        return self._left.get(path, {}).get(key, 0)

    def clear(self, left: Mapping[NodePath, Mapping[str, int]]) -> None:
        """All is as it should be, but for what nodes alone have, which they are to list yet."""
        self._left = dict(left)
        self.forgot.clear()
        self._put_back.clear()

    def above(self, path: NodePath) -> bool:
        """Whether a node above this one, and below the centre, forgot what this one holds."""
        others = [other for other in self.forgot if not other.is_root and other != path]
        return any(other.holds(path) for other in others)

    def is_older(self, path: NodePath, answered: float) -> bool:
        """Whether it may hold what was let go of, by a copy of its disk that nobody was shown.

        Only the centre's own children are asked; one may have gone back since it answered.
        """
        return path in self._put_back and (len(path.names) > 1 or self._put_back[path] > answered)

    def all_went_back(self, path: NodePath) -> bool:
        """Whether nobody can tell this one what it knew: it went back, and who is above forgot."""
        above = [NodePath(path.names[:depth]) for depth in range(len(path.names))]
        return path in self._put_back and all(other in self.forgot for other in above)
