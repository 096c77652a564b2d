"""A chaos tree whose centre has three members: three processes, each with a server beside it."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from controllers.issuing.keys import load_or_make_keys
from leafcast.ask.session import open_session
from leafcast.daemon.centre_member import CENTRE_STATE
from leafcast.data_dir import DataDir
from leafcast.members.layout import PortPool, copy_state, lay_out_members
from leafcast.node.credentials.account_seeds import account_seeds
from relay.adapters.clock import SystemDice
from schemas.values.identity import NodePath
from tests.nats.chaos_member import Member, until
from tests.nats.chaos_tree import ChaosTree

NAMES = ("m1", "m2", "m3")
ROOT_PATH = NodePath()


@dataclass
class TrioTree(ChaosTree):
    """The tree; `centres` are the centre's members by name."""

    centres: dict[str, Member] = field(default_factory=dict)

    async def start(self) -> None:
        """Start the centre's members alone, and wait until one is active."""
        dice = SystemDice()
        places = {name: DataDir(self.folder / name) for name in NAMES}
        first = places[NAMES[0]]
        first.folder.mkdir()
        tree = load_or_make_keys(first.keys, dice).tree
        account_seeds(first.node(ROOT_PATH), dice)
        for place in places.values():
            if place is not first:
                copy_state(first.folder, place.folder, CENTRE_STATE)
        folders = {name: place.folder for name, place in places.items()}
        lay_out_members(folders, "centre", tree, ROOT_PATH, dice, PortPool())
        for name, place in places.items():
            command = ["leafcast.daemon", str(place.folder), "0", "1", "3"]
            self.centres[name] = Member("/", place.folder, command, dict(self.settings))
            self.centres[name].start()
        self.members["/"] = self.centres[NAMES[0]]
        await self.serving()

    async def close(self) -> None:
        await super().close()
        async with asyncio.TaskGroup() as group:
            for member in self.centres.values():
                group.create_task(member.stop())

    @asynccontextmanager
    async def session(self):
        """A session by way of a member whose process runs."""
        alive = [it for it in self.centres.values() if it.process.poll() is None]
        async with open_session(alive[0].folder) as session:
            yield session

    def joined_with(self, path: str, token: Path) -> Member:
        """An edge that joins with a token, started."""
        folder = self.folder / path.strip("/")
        command = ["leafcast", "join", str(token), "--data-dir", str(folder)]
        member = self.add(path, folder, command)
        member.start()
        return member

    async def restart(self, *names: str) -> None:
        for name in names:
            self.centres[name].start()

    def active(self) -> str:
        """The member that became active last, if it is so still; "" if none is."""
        times = {
            name: role[0]
            for name, member in self.centres.items()
            if member.process.poll() is None and (role := role_of(member))[1] == "is active"
        }
        return max(times, key=times.__getitem__, default="")

    def stands_by(self, name: str) -> bool:
        """Whether a member's process runs, and said last that it stands by."""
        member = self.centres[name]
        return member.process.poll() is None and role_of(member)[1] == "stands by"

    async def until_active(self, *, beside: str = "", seconds: float = 60) -> str:
        """Wait until a member is active other than the one named; its name."""
        await until(lambda: self.active() not in ("", beside), lambda: str(self.said()), seconds)
        return self.active()

    def said(self) -> Mapping[str, str]:
        return {name: daemon_log(member)[-2000:] for name, member in self.centres.items()}


def role_of(member: Member) -> tuple[str, str]:
    """When a member said last what it is, and what."""
    pattern = r"^(\S+ \S+) .*(is active|stands by|has lost the lease)"
    return (re.findall(pattern, daemon_log(member), re.MULTILINE) or [("", "")])[-1]


def daemon_log(member: Member) -> str:
    log = DataDir(member.folder).log
    return (log.read_text() if log.exists() else "") + member.said
