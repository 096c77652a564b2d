"""What lets nodes in, moves and removes them, at the centre of a tree in memory."""

import asyncio

from leafcast.daemon.nodes.admission import JoinApproval
from leafcast.daemon.nodes.enrolment import Enrolment, NodeSpec
from leafcast.daemon.nodes.membership import Membership
from leafcast.daemon.nodes.moving import NodeMoves
from leafcast.daemon.nodes.token_files import TokenFiles
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.values.identity import NodePath
from tests.memory_tree import Standings


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


class Members:
    """All that a daemon has for nodes; `let_in` stands for a request and its grant."""

    def __init__(self, tree, parts, folder) -> None:
        self._dice, states = tree.dice, Standings(tree)
        changing = asyncio.Lock()

        async def sign_nothing(_path, _request):
            return ""

        self.enrolling = Enrolment(parts, tree.asks, states, tree.clock, sign_nothing)
        self.membership = Membership(parts, self.enrolling, changing, tree.asks, states, tree.clock)
        self.admission = JoinApproval(
            parts, self.enrolling, changing, TokenFiles(folder), tree.clock, tree.dice
        )
        self.moves = NodeMoves(parts, self.enrolling, self.admission, changing, tree.clock)

    async def let_in(self, path, labels=None, *, relay=False, replace=False) -> str:
        """A node with a key of its own, whose seed is returned; raises what it is refused with."""
        spec = NodeSpec(NodePath.parse(path), labels or {}, relay=relay, replaces=replace)
        plan = await self.enrolling.plan([spec])
        for fault in plan.faults:
            raise fault.error
        seed, nkey = new_user_nkey(self._dice.entropy(32))
        await self.enrolling.let_in(plan, {spec.path: nkey})
        return seed

    async def all(self) -> dict[str, dict]:
        """The nodes as they are listed, by path."""
        return {form["path"]: form for form in (await self.membership.all())["nodes"]}
