"""What membership needs of a centre, found in a tree in memory."""

from schemas.values.identity import NodePath


class Parts:
    """The memory tree's centre, as membership finds it; `here` are the nodes that it runs."""

    def __init__(self, tree) -> None:
        self._tree = tree
        self.here: set[NodePath] = set()

    def issuer(self):
        return self._tree.controllers.issuer

    def inventory_space(self):
        return self._tree.inventory

    def tree_id(self):
        return self._tree.keys.tree

    def roots(self):
        return self._tree.keys.roots

    def retire(self, path):
        self.here.discard(path)

    def runs_here(self, path):
        return path in self.here
