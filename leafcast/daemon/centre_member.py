"""A centre of several members: what of its data directory is the centre's, and how it is run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from controllers.keys import load_or_make_keys
from leafcast.centre.planned_nodes import FILE as PLANNED_FILE
from leafcast.data_dir import DataDir
from leafcast.members.settings import MemberSettings
from leafcast.node.credentials.account_seeds import SEEDS_FILE
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from leafcast.node.known_children import FILE as CHILDREN_FILE
from leafcast.node.known_children import KnownChildren
from leafcast.node.options import ActiveMember
from relay.adapters.server.nats_config import AccountSeeds, Neighbours
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.ports import Dice
from schemas.values.identity import NodePath

CENTRE_STATE = (
    "keys/*.json",
    "tokens/*.json",
    *(f"tls/{name}" for name in (*AUTHORITY_FILES, "issued.json")),
    "tree.json",
    "spaces.json",
    "listen.json",
    PLANNED_FILE,
    f"centre/{SEEDS_FILE}",
    f"centre/{CHILDREN_FILE}",
)
"""Patterns of the files of a data directory that are the centre's, and not one member's."""


class CentreMember:
    """The centre in one member's data directory; `start` runs a daemon there until cancelled."""

    state = CENTRE_STATE

    def __init__(
        self,
        place: DataDir,
        settings: MemberSettings,
        dice: Dice,
        start: Callable[[ActiveMember], Awaitable[None]],
    ) -> None:
        self.folder = place.folder
        self.server_folder = place.node(NodePath())
        self._place, self._settings, self._dice = place, settings, dice
        self._start = start

    def neighbours(self) -> Neighbours:
        children = KnownChildren(self.server_folder).nkeys
        tree = load_or_make_keys(self._place.keys, self._dice).tree
        entrance = entrance_pair(tree)[1]
        return Neighbours(None, children, entrance, self._settings.cluster)

    def serves(self, server: EmbeddedServer, seeds: AccountSeeds) -> None:
        """Let commands in: what they ask is answered by the active member."""
        self._place.write_admin({"url": server.url, "seed": seeds.commands})

    async def run(self, member: ActiveMember) -> None:
        await self._start(member)
