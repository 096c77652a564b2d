"""A chaos tree whose centre, and region, has three members: processes, each with a server."""

import asyncio
import re
import shutil
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leafcast.ask.session import open_session
from leafcast.daemon.trios import MEMBER_NAMES as NAMES
from leafcast.daemon.trios import TrioPlaces
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape
from relay.adapters.clock import SystemDice
from tests.nats.chaos_member import Member, until
from tests.nats.chaos_tree import ChaosTree
from tests.nats.trio import PORT_ATTEMPTS_MAX

PORT_TAKEN = re.compile(r"ERROR port \d+ (or \d+ )?is in use")


@dataclass
class TrioTree(ChaosTree):
    """The tree; `trios` are the members of its centre and relays by path, then by name."""

    trios: dict[str, dict[str, Member]] = field(default_factory=dict)
    groups: Mapping[str, int] = field(default_factory=dict)
    """By name the groups that the members of the region, or else of the centre, are in."""
    cut_off: set[str] = field(default_factory=set)
    """Members of the centre that are not asked."""

    async def start(self, *, region: bool = False) -> None:
        """Start the centre's members, and a region's, and wait until one is active."""
        for _ in range(PORT_ATTEMPTS_MAX):
            self._lay_out(region=region)
            if not await self._lack_ports():
                break
            await self.close()
            shutil.rmtree(self.folder / "members")
        self.members["/"] = self.centres[NAMES[0]]
        await self.serving()

    def _lay_out(self, *, region: bool) -> None:
        dice, grouped = SystemDice(), "/region-1" if region else "/"
        places = TrioPlaces(DataDir(self.folder), TreeShape(int(region), 0))
        places.lay_out(dice)
        for place in places.each():
            command = ["leafcast.daemon", str(place.folder)]
            settings = {**self.settings, "stops": str(self.stops(place.name, str(place.path)))}
            member = Member(str(place.path), place.folder, command, settings)
            self.trios.setdefault(str(place.path), {})[place.name] = member
            if grouped == str(place.path):
                member.group = self.groups.get(place.name)
            member.start()

    async def _lack_ports(self) -> bool:
        """Whether a member ended, as another tree of tests took its port meanwhile."""
        members = [it for trio in self.trios.values() for it in trio.values()]

        def lack() -> bool:
            ended = (it for it in members if it.process.poll() is not None)
            return any(PORT_TAKEN.search(daemon_log(it)) for it in ended)

        def stand_by() -> bool:
            return all("stands by" in daemon_log(it) for it in members)

        await until(
            lambda: lack() or stand_by(),
            lambda: str([daemon_log(it)[-2000:] for it in members]),
        )
        return lack()

    @property
    def centres(self) -> dict[str, Member]:
        """The centre's members by name."""
        return self.trios["/"]

    def stops(self, name: str, path: str = "/") -> Path:
        """The file that says where a member's process stops itself."""
        return self.folder / f"{path.strip('/')}{name}.stops"

    async def stopped_at(self, name: str, point: str) -> None:
        """Have a member's process stop at a point, and wait until it has."""
        self.stops(name).write_text(point)
        said = f"{name} did not come to the point {point}"
        await until(lambda: not self.stops(name).exists(), lambda: said)

    async def close(self) -> None:
        await super().close()
        async with asyncio.TaskGroup() as group:
            for member in (it for trio in self.trios.values() for it in trio.values()):
                group.create_task(member.stop())

    @asynccontextmanager
    async def session(self):
        """A session by way of a member whose process runs."""
        alive = [
            member
            for name, member in self.centres.items()
            if name not in self.cut_off and member.process.poll() is None
        ]
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

    def active(self, path: str = "/") -> str:
        """The member that became active last, if it is so still; "" if none is."""
        times = {
            name: role_of(member)[0]
            for name, member in self.trios[path].items()
            if name not in self.cut_off and self.is_active(name, path)
        }
        return max(times, key=times.__getitem__, default="")

    def is_active(self, name: str, path: str = "/") -> bool:
        """Whether a member's process runs, and said last that it is active."""
        return self._says(name, path, "is active")

    def stands_by(self, name: str, path: str = "/") -> bool:
        """Whether a member's process runs, and said last that it stands by."""
        return self._says(name, path, "stands by")

    def _says(self, name: str, path: str, what: str) -> bool:
        member = self.trios[path][name]
        return member.process.poll() is None and role_of(member)[1] == what

    async def until_active(self, path: str = "/", *, beside: str = "", seconds: float = 60) -> str:
        """Wait until a member is active other than the one named; its name."""
        await until(
            lambda: self.active(path) not in ("", beside), lambda: str(self.said(path)), seconds
        )
        return self.active(path)

    def said(self, path: str = "/") -> Mapping[str, str]:
        return {name: daemon_log(member)[-2000:] for name, member in self.trios[path].items()}


def role_of(member: Member) -> tuple[str, str]:
    """When a member said last what it is, and what."""
    pattern = r"^(\S+ \S+) .*?(is active|stands by|has lost (?:the lease|its tenure))"
    return (re.findall(pattern, daemon_log(member), re.MULTILINE) or [("", "")])[-1]


def daemon_log(member: Member) -> str:
    log = DataDir(member.folder).log
    return (log.read_text() if log.exists() else "") + member.said
