"""A tree on this machine whose centre and relays are trios: each member a folder and a process.

All nodes are registered beforehand: keys are made here, and the centre finds the list of them when
it starts. So no member needs another one to be up before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from controllers.issuing.keys import CentreKeys, load_or_make_keys
from controllers.issuing.node_credentials import NodeCredentials
from leafcast.centre.planned_nodes import PlannedNode, plan_nodes
from leafcast.daemon.centre_member import CENTRE_STATE
from leafcast.data_dir import AROUND, DataDir
from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import KeptGrant, write_grant
from leafcast.join.relay_member import relay_state
from leafcast.local.views import CENTRE_ALONE, TreeShape
from leafcast.members.layout import PortPool, copy_state, lay_out_members
from leafcast.members.settings import MemberSettings, kept_member
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.files import keep_credentials, load_credentials
from leafcast.node.known_children import KnownChildren
from leafcast.space_settings import CentreSpaces
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Dice
from schemas.values.identity import NodePath

MEMBER_NAMES = ("m1", "m2", "m3")
_FOLDER, _WHOLE = "members", "laid-out"


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """One member of a node of a tree on this machine, and its data directory."""

    path: NodePath
    name: str
    folder: Path

    def __str__(self) -> str:
        return f"member {self.name} of {self.path}"

    def settings(self) -> MemberSettings:
        """What its folder says; raises MemberUnusable."""
        found = kept_member(self.folder)
        assert found is not None, f"{self.folder} was laid out"
        return found


class TrioPlaces:
    """Where the members of a tree on this machine are, below its data directory."""

    def __init__(self, place: DataDir, shape: TreeShape) -> None:
        self._place, self._shape = place, shape

    @property
    def folder(self) -> Path:
        """What holds all of them."""
        return self._place.folder / _FOLDER

    def members(self, path: NodePath) -> tuple[MemberPlace, ...]:
        """Those of the centre or of a relay."""
        node = "centre" if path.is_root else path.domain
        folders = {name: self.folder / f"{node}-{name}" for name in MEMBER_NAMES}
        return tuple(MemberPlace(path, name, folder) for name, folder in folders.items())

    def each(self) -> Iterator[MemberPlace]:
        """All that are laid out, parents first."""
        for path in (NodePath(), *self._shape.relays()):
            yield from (it for it in self.members(path) if it.folder.exists())

    def tiers(self) -> list[list[NodePath]]:
        """The nodes below the centre that are laid out, tier by tier; the edges come last."""
        *relays, edges = self._shape.tiers() or [[]]
        laid_out = [[it for it in tier if self.members(it)[0].folder.exists()] for tier in relays]
        return [*laid_out, [it for it in edges if self.credentials(it) is not None]]

    def leaf_urls(self, path: NodePath) -> tuple[str, ...]:
        """Where servers of a node's children dial in, at each member; raises MemberUnusable."""
        return self.members(path)[0].settings().leaf_urls

    def credentials(self, path: NodePath) -> NodeCredentials | None:
        """An edge's, which runs in one place."""
        return load_credentials(self._place.node(path), path)

    def lay_out(self, dice: Dice, known: Collection[NodePath] | None = None) -> None:
        """Write the folders, unless they are there; raises OSError.

        With `known`, nodes of a backup, no others are below the centre, and these get new keys.
        """
        whole = self.folder / _WHOLE
        if whole.exists():
            return
        pool = PortPool()
        nodes = [it for tier in self._shape.tiers() for it in tier if known is None or it in known]
        fresh = {path: NodeCredentials(path, *new_user_nkey(dice.entropy(32))) for path in nodes}
        edges = set(self._shape.edges())
        replaces = known is not None
        # API servers of the tree's own begin empty, and what lies elsewhere has its inventory.
        brings = edges if not replaces or (self._place.tree() or {}).get("kube") else ()
        planned = [PlannedNode(it, fresh[it].nkey, it in brings, replaces) for it in nodes]
        keys = self._lay_out_centre(planned, dice, pool)
        # Parents first: a child is told where its parent listens.
        for path in nodes:
            if path not in edges:
                self._lay_out_relay(path, keys, fresh, dice, pool)
        for path in edges & fresh.keys():
            keep_credentials(self._place.node(path), fresh[path])
        # Last: now all of it is there.
        atomic_write(whole, "")

    def _lay_out_centre(
        self, planned: Sequence[PlannedNode], dice: Dice, pool: PortPool
    ) -> CentreKeys:
        members = self.members(NodePath())
        first = DataDir(members[0].folder)
        make_folder(first.keys)
        keys = load_or_make_keys(first.keys, dice)
        folder = first.node(NodePath())
        account_seeds(folder, dice)
        _know_children(folder, NodePath(), {it.path: it.nkey for it in planned})
        if (spaces := self._place.spaces()) != CentreSpaces():
            first.write_spaces(spaces)
        around = self._place.tree() or {**self._shape.form(), "members": MEMBERS}
        first.write_tree({**CENTRE_ALONE.form(), AROUND: around})
        plan_nodes(first, planned)
        lay_out_members(
            {it.name: it.folder for it in members},
            folder.name,
            keys.tree,
            NodePath(),
            dice,
            pool,
        )
        for other in members[1:]:
            copy_state(first.folder, other.folder, CENTRE_STATE)
        return keys

    def _lay_out_relay(
        self,
        path: NodePath,
        keys: CentreKeys,
        fresh: Mapping[NodePath, NodeCredentials],
        dice: Dice,
        pool: PortPool,
    ) -> None:
        members = self.members(path)
        first = members[0].folder
        folder = first / path.domain
        account_seeds(folder, dice)
        _know_children(folder, path, {it: its.nkey for it, its in fresh.items()})
        parents = self.leaf_urls(path.parent)
        grant = KeptGrant(
            keys.tree, path, relay=True, parents=parents, seed=fresh[path].seed, roots=keys.roots
        )
        write_grant(first / GRANT_FILE, grant)
        folders = {it.name: it.folder for it in members}
        lay_out_members(folders, path.domain, keys.tree, path, dice, pool)
        for other in members[1:]:
            copy_state(first, other.folder, relay_state(path))


def _know_children(folder: Path, path: NodePath, nkeys: Mapping[NodePath, str]) -> None:
    """So that no server is reloaded for a child when the tree comes up."""
    known = KnownChildren(folder)
    with known.changing():
        for child, nkey in nkeys.items():
            if child.parent == path:
                known.put(child.name, nkey)
