"""The parts of the centre's run now, or BusBroken: it restarts, and they are others then."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.centre import Controllers
from controllers.issuing import Issuer
from controllers.keys import CentreKeys
from leafcast.tree import LocalTree
from relay.asker import Asker
from relay.ports import BusBroken, Space
from schemas.identity import KeyId, NodePath, TreeId


class RunningCentre:
    """What asks and membership need of a tree that runs here."""

    def __init__(self, tree: LocalTree) -> None:
        self._tree = tree

    def asker(self) -> Asker:
        centre = self._tree.nodes.get(NodePath())
        if centre is None or centre.asker is None:
            raise BusBroken("the centre is starting")
        return centre.asker

    def keys(self) -> CentreKeys:
        return self._controllers().keys

    def issuer(self) -> Issuer:
        return self._controllers().issuer

    def tree_id(self) -> TreeId:
        return self.keys().tree

    def roots(self) -> Mapping[KeyId, bytes]:
        """The root keys that a bundle pins."""
        root = self.keys().root
        return {root.key_id: root.public_key}

    def inventory_space(self) -> Space:
        if self._tree.inventory is None:
            raise BusBroken("the centre is starting")
        return self._tree.inventory

    def runs_here(self, path: NodePath) -> bool:
        """Whether the node is one of those that this very program starts."""
        return path in self._tree.nodes

    def _controllers(self) -> Controllers:
        if self._tree.controllers is None:
            raise BusBroken("the centre is starting")
        return self._tree.controllers
