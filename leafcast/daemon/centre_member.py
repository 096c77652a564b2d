"""A centre of several members: what of its data directory is the centre's, and how it is run."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from controllers.issuing.keys import load_or_make_keys
from leafcast.ask.session import API_PREFIX, STANDING
from leafcast.backups.backup_settings import FILE as BACKUP_FILE
from leafcast.backups.backup_settings import STANDING_FILE
from leafcast.centre.planned_nodes import FILE as PLANNED_FILE
from leafcast.data_dir import DataDir
from leafcast.members.member import Standing
from leafcast.members.settings import MemberSettings
from leafcast.node.credentials.account_seeds import SEEDS_FILE
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from leafcast.node.known_children import FILE as CHILDREN_FILE
from leafcast.node.known_children import KnownChildren
from leafcast.node.options import ActiveMember
from relay.adapters.asking import ANSWERS
from relay.adapters.jetstream.request_reply import serve
from relay.adapters.server.nats_config import AccountSeeds, Neighbours
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.adapters.spaces.connection import space_connection
from relay.ports import Dice
from schemas.values.identity import NodePath

SAID_SECONDS = 3.0
"""So long nothing is heard of an active member until one that stands by says so."""
CENTRE_STATE = (
    "keys/*.json",
    "tokens/*.json",
    *(f"tls/{name}" for name in (*AUTHORITY_FILES, "issued.json")),
    "tree.json",
    "spaces.json",
    "listen.json",
    PLANNED_FILE,
    BACKUP_FILE,
    STANDING_FILE,
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

    async def stand(
        self, server: EmbeddedServer, seeds: AccountSeeds, standing: Callable[[], Standing]
    ) -> None:
        """Let commands in, and tell those of them that wait how this member stands.

        What they ask is answered by the active member, wherever they ask.
        """
        self._place.write_admin({"url": server.url, "seed": seeds.commands})

        async def answer(_subject: str, _question: bytes) -> bytes | None:
            its = standing()
            # Where there is an active one, that answers.
            if its.active_seconds is None and its.silent_seconds <= SAID_SECONDS:
                return None
            return json.dumps({"result": its.facts()}).encode()

        async with space_connection(server.url, seeds.space, "leafcast standing") as client:
            await serve(client, f"{API_PREFIX}{STANDING}", answer, f"{ANSWERS}.")

    async def run(self, member: ActiveMember) -> None:
        await self._start(member)
