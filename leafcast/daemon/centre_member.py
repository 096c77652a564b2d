"""A centre of several members: what of its data directory is the centre's, and how it is run."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from leafcast.ask.session import API_PREFIX, STANDING, WITH_MEMBERS
from leafcast.backups.backup_settings import FILE as BACKUP_FILE
from leafcast.backups.backup_settings import STANDING_FILE
from leafcast.backups.centre_files import KEYS_FILE
from leafcast.centre.copying import FILE as COPYING_FILE
from leafcast.centre.copying import CopyingUnusable, RunsAlone, bring_home, kept_copying
from leafcast.centre.planned_nodes import FILE as PLANNED_FILE
from leafcast.data_dir import TREE_FILE, DataDir, DataDirUnusable
from leafcast.members.member_node import Standing
from leafcast.members.membership import FILE as MEMBERSHIP_FILE
from leafcast.members.seats import FILE as SEATS_FILE
from leafcast.members.settings import MemberSettings
from leafcast.metrics.reading import MetricReading
from leafcast.node.credentials.account_seeds import SEEDS_FILE, account_seeds
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from leafcast.node.credentials.node_certificate import CERTIFICATE_FILES
from leafcast.node.known_children import FILE as CHILDREN_FILE
from leafcast.node.known_children import KnownChildren
from leafcast.node.listen_settings import keep_listen_settings, kept_listen_settings
from leafcast.node.member_forms import MEMBERS_ASKED, NONE, UNFIT, unled_forms
from leafcast.node.options import ActiveMember, RunBeside
from leafcast.spaces import access_fault
from leafcast.upgrades.member_keeper import MemberReleases
from relay.adapters.asking import ANSWERS
from relay.adapters.jetstream.member_presence import STANDBY, MemberPresence
from relay.adapters.jetstream.request_reply import serve
from relay.adapters.server.nats_config import AccountSeeds, Neighbours
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.adapters.spaces.connection import space_connection
from relay.ports import Clock, Dice
from schemas.values.identity import NodePath

CENTRE_STATE = (
    # First, as all else is written after it: whoever knows any of it knows who copies, too.
    COPYING_FILE,
    "keys/*.json",
    "tokens/*.json",
    *(f"tls/{name}" for name in (*AUTHORITY_FILES, "issued.json")),
    TREE_FILE,
    "spaces.json",
    "listen.json",
    PLANNED_FILE,
    BACKUP_FILE,
    STANDING_FILE,
    SEATS_FILE,
    MEMBERSHIP_FILE,
    f"centre/{SEEDS_FILE}",
    f"centre/{CHILDREN_FILE}",
    *(f"centre/{it}" for it in CERTIFICATE_FILES),
)
"""Patterns of the files of a data directory that are the centre's, and not one member's."""


class RunningCentre(Protocol):
    """A daemon that runs the centre; see leafcast.daemon.daemon."""

    async def run(self) -> None: ...

    def unready(self) -> Mapping[str, str]: ...

    async def readings(self) -> Sequence[MetricReading]: ...


class CentreMember:
    """The centre in one member's data directory; `centre_of` makes what runs there while active.

    That is told what is to run beside the centre's node.
    """

    state = CENTRE_STATE
    server_files = frozenset(f"centre/{it}" for it in CERTIFICATE_FILES)

    def __init__(
        self,
        place: DataDir,
        settings: MemberSettings,
        clock: Clock,
        dice: Dice,
        centre_of: Callable[[ActiveMember, RunBeside], RunningCentre],
    ) -> None:
        self.folder = place.folder
        self.server_folder = place.node(NodePath())
        self._place, self._settings, self._clock, self._dice = place, settings, clock, dice
        self._centre_of = centre_of
        self._releases = MemberReleases(place.folder, lambda: self._settings, clock, of_centre=True)
        self._centre: RunningCentre | None = None
        # What its machine lacked when that was looked at last.
        self._unfit = ""

    def neighbours(self) -> Neighbours:
        cluster, copying = self._settings.cluster, kept_copying(self.folder)
        if copying is not None and copying.alone and copying.member != cluster.member:
            # Children are to dial where the node runs now.
            return Neighbours(cluster=cluster)
        children = KnownChildren(self.server_folder).nkeys
        return Neighbours(None, children, entrance_pair(cluster.tree)[1], cluster)

    def take(self, settings: MemberSettings) -> None:
        self._settings = settings

    def listen(self, urls: tuple[str, ...]) -> None:
        if (kept := kept_listen_settings(self.folder)) is not None:
            keep_listen_settings(self.folder, replace(kept, urls=urls))

    def why_not(self) -> str:
        if not (self.folder / KEYS_FILE).exists():
            return "it waits for the state of its node"
        self._unfit = self._space_fault()
        return self._waits() or self._unfit

    def _waits(self) -> str:
        """For whose copy it waits, "" if for none."""
        copying = kept_copying(self.folder)
        return copying.why_not(self._settings.name) if copying is not None else ""

    def kept_back_by(self) -> str:
        copying = kept_copying(self.folder)
        waits = copying is not None and copying.is_waited_for(self._settings.name)
        return COPYING_FILE if waits else ""

    def _space_fault(self) -> str:
        """Why its centre's spaces cannot be opened on this machine; "" if they can."""
        try:
            named = dict.fromkeys(self._place.spaces().named())
        except DataDirUnusable as error:
            return str(error)
        for setting in named:
            if why := access_fault(setting):
                if setting.kubeconfig and not Path(setting.kubeconfig).exists():
                    # No option of a member names another one.
                    why = "there is no such file: put it there, as on the other machines"
                return f"{setting.title} cannot be opened on this machine: {why}"
        return ""

    def facts(self) -> Mapping[str, Any]:
        try:
            # One that hears of no other member has not even looked whether it may be active.
            unfit = self._waits() or self._unfit
        except CopyingUnusable as error:
            unfit = str(error)
        return {UNFIT: unfit, **self._releases.facts()}

    def why_others(self) -> str:
        return ""

    def out_of_step(self) -> str:
        return self._releases.out_of_step

    async def stand(
        self,
        server: EmbeddedServer,
        seeds: AccountSeeds,
        standing: Callable[[], Standing],
        presence: MemberPresence,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self._let_commands_in(server, seeds, standing, presence), name="commands"
            )
            keeping = self._releases.keep(server.url, seeds.relay, presence)
            group.create_task(keeping, name="releases")

    async def _let_commands_in(
        self,
        server: EmbeddedServer,
        seeds: AccountSeeds,
        standing: Callable[[], Standing],
        presence: MemberPresence,
    ) -> None:
        """Let commands in, and tell those of them that wait how this member stands.

        What they ask is answered by the active member, wherever they ask.
        """
        self._place.write_admin({"url": server.url, "seed": seeds.commands})
        self._say_up()

        async def answer(_subject: str, question: bytes) -> bytes | None:
            its = standing()
            # Where there is an active one, that answers.
            if its.role == STANDBY:
                return None
            told = its.facts()
            if question == WITH_MEMBERS and its.role == NONE:
                names = self._settings.client_urls
                told[MEMBERS_ASKED] = unled_forms(names, await presence.look())
            return json.dumps({"result": told}).encode()

        async with space_connection(server.url, seeds.space, "leafcast standing") as client:
            await serve(client, f"{API_PREFIX}{STANDING}", answer, f"{ANSWERS}.")

    async def run(self, member: ActiveMember) -> None:
        copying = kept_copying(self.folder)
        if copying is not None and copying.alone:
            seeds = account_seeds(self.server_folder, self._dice)
            await bring_home(self._place, member, seeds, self._clock)
            raise RunsAlone
        try:
            self._centre = self._centre_of(member, self._releases.lead)
            await self._centre.run()
        finally:
            self._say_up()

    def unready(self) -> Mapping[str, str]:
        return self._centre.unready() if self._centre is not None else {}

    async def readings(self) -> Sequence[MetricReading]:
        return await self._centre.readings() if self._centre is not None else ()

    def _say_up(self) -> None:
        """Have `leafcast up` and `down` see that it runs, also while another one is active."""
        self._place.write_daemon({"pid": os.getpid(), "ready": True, "doing": "standing by"})
