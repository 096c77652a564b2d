"""The parts of the centre's run now, or BusBroken: it restarts, and they are others then."""

from __future__ import annotations

from typing import TypeVar

from controllers.centre import Controllers
from controllers.issuer import Issuer
from controllers.keys import CentreKeys
from controllers.nodes import nkeys_of
from leafcast.local.tree import LocalTree
from relay.ports import BusBroken, Space
from relay.shell.asker import Asker
from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId

T = TypeVar("T")


class RunningCentre:
    """What asks and membership need of a tree that runs here."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree

    def asker(self) -> Asker:
        centre = self._tree.nodes.get(NodePath())
        return running(centre.asker if centre is not None else None)

    def keys(self) -> CentreKeys:
        return self.controllers().keys

    def issuer(self) -> Issuer:
        return self.controllers().issuer

    def nkeys(self, path: NodePath) -> tuple[str, ...]:
        """The public keys that the node of a path may have."""
        return nkeys_of(self.issuer(), path)

    def tree_id(self) -> TreeId:
        return self.keys().tree

    def roots(self) -> Roots:
        """The root keys that a bundle pins."""
        return self.keys().roots

    def inventory_space(self) -> Space:
        return running(self._tree.inventory)

    def runs_here(self, path: NodePath) -> bool:
        """Whether the node is one of those that this very program starts."""
        return path in self._tree.nodes

    def retire(self, path: NodePath) -> None:
        """End the run of a node that was removed, if this program started it."""
        self._tree.retire(path)

    def controllers(self) -> Controllers:
        """All of them."""
        return running(self._tree.controllers)


def running(part: T | None) -> T:
    """A part of the centre's run now; raises BusBroken between runs, when there is none."""
    if part is None:
        raise BusBroken("the centre is starting")
    return part
