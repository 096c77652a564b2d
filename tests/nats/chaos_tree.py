"""A tree of real processes for chaos tests: a centre's daemon, and a `leafcast join` for each node.

Each process has a nats-server of its own beside it. What an edge holds is read from its own server,
so that it is known whoever else is away. ConfigMaps stand for workloads: nothing but the syncer
writes them, so that each write to an edge's space is one that the syncer made.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leafcast.ask.session import CallFailed, NotRunning, open_session
from leafcast.cli.node_tokens import invitation
from leafcast.join.folder import GRANT_FILE
from leafcast.join.join_request import JoinRequester
from leafcast.join.kept_grant import KeptGrant, write_grant
from leafcast.manifest_sources import BadManifests
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import CannotConnect
from relay.space_errors import SpaceError
from schemas.enrolment.tokens import read_token
from schemas.objects.objects import ObjectKey
from tests.nats.chaos_link import Wire
from tests.nats.chaos_member import (
    LIFELINE,
    LOOK_SECONDS,
    ROOT,
    WAIT_SECONDS,
    Member,
    Space,
    until,
)
from tests.written import apply_objects, delete_objects

PRODUCTION = {"env": "prod"}
AWAY = (
    *(CannotConnect, SpaceError, OSError, KeyError, CallFailed, NotRunning, TimeoutError),
    BadManifests,
)
SOON_STALE = {
    "relay.core.link.session.HELLO_SECONDS": 1.0,
    "relay.core.link.session.SILENT_AFTER_SECONDS": 3.0,
    "relay.core.records.snapshot.STALE_AFTER_SECONDS": 6.0,
    "relay.core.upstream.VIEW_LOOK_SECONDS": 0.5,
    "controllers.core.ledger.snapshots.RENEWAL_SECONDS": 1.0,
    "relay.core.link.child.RENEWAL_MS": 900,
}
"""Times at which a view is old after seconds, and a silent child is missed."""


@dataclass
class ChaosTree:
    """The tree below `folder`; `wanted` is what each placement's objects should be now."""

    folder: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    wanted: dict[str, dict[str, str]] = field(default_factory=dict)
    told: dict[str, object] = field(default_factory=dict)
    """What the daemon answered last, by verb: for a test that waits in vain to say."""

    async def start(self) -> None:
        """Start the centre alone."""
        folder = self.folder / "tree"
        self.add("/", folder, ["leafcast.daemon", str(folder), "0", "1", "3"])
        self.members["/"].start()
        await self.serving()

    def add(self, path: str, folder: Path, command: list[str], settings: Mapping = {}) -> Member:
        member = Member(path, folder, command, {**self.settings, **settings})
        self.members[path] = member
        return member

    async def close(self) -> None:
        """Stop all of one depth together, children before their parents."""
        depths = {len(member.path.names) for member in self.members.values()}
        for depth in sorted(depths, reverse=True):
            async with asyncio.TaskGroup() as group:
                for member in self.members.values():
                    if len(member.path.names) == depth:
                        group.create_task(member.stop())
        for member in self.members.values():
            if member.wire is not None:
                await member.wire.close()

    @property
    def centre(self) -> Member:
        return self.members["/"]

    @asynccontextmanager
    async def session(self):
        async with open_session(self.centre.folder) as session:
            yield session

    async def call(self, verb: str, **arguments: object):
        """Have the daemon do something, waiting out its starts."""
        return await patiently(self._call, verb, arguments)

    async def _call(self, verb: str, arguments: Mapping):
        async with self.session() as session:
            self.told[verb] = answer = await session.call(verb, **arguments)
        return answer

    async def refused(self, verb: str, **arguments: object) -> str:
        """What the daemon says as it refuses."""
        try:
            await self._call(verb, arguments)
        except CallFailed as refusal:
            return str(refusal)
        raise AssertionError(f"{verb} was not refused")

    async def serving(self) -> None:
        await self.call("tree")

    async def invite(
        self, path: str, *, relay: bool = False, labels: Mapping | None = None
    ) -> Path:
        """A token for a node, in a file; nobody is asked about who uses it."""
        given = {} if relay else dict(PRODUCTION if labels is None else labels)
        nodes, said = [{"path": path, "labels": given}], {}

        async def handed_out() -> bool:
            said.update(await self.call("node-token-add", nodes=nodes, relay=relay, sure=True))
            return bool(said["added"])

        await until(handed_out, lambda: str(said))
        return self.token_file(said["added"][0])

    def token_file(self, added: dict[str, Any]) -> Path:
        path = added["path"].strip("/").replace("/", "-")
        file = self.folder / f"{path}-{time.monotonic_ns()}.join"
        file.write_text(invitation(added))
        return file

    async def join(
        self,
        path: str,
        *,
        relay: bool = False,
        wired: bool = False,
        labels: Mapping | None = None,
        settings: Mapping = {},
    ) -> Member:
        """Start a new node; `wired` puts a wire between it and its parent."""
        file = await self.invite(path, relay=relay, labels=labels)
        folder = self.folder / path.strip("/").replace("/", "-")
        wire = await self.lay(file, folder) if wired else None
        command = ["leafcast", "join", str(file), "--data-dir", str(folder)]
        member = self.add(path, folder, command, settings)
        member.wire = wire
        member.start()
        return member

    async def move(self, old: str, new: str) -> Member:
        """Hang an edge elsewhere; it is not started there yet, and what ran may run on."""
        made = await self.call("node-move", path=old, new_path=new)
        member = self.members.pop(old)
        command = ["leafcast", "join", str(self.token_file(made)), "--data-dir", str(member.folder)]
        return self.add(new, member.folder, command)

    async def lay(self, file: Path, folder: Path) -> Wire:
        """Have the node that a token is for let in, and go over a wire to its parent."""
        grant = await let_in(file, folder)
        wire = Wire(int(grant.parents[0].rpartition(":")[2]))
        await wire.open()
        write_grant(folder / GRANT_FILE, replace(grant, parents=(wire.url,)))
        return wire

    async def place(self, placement: str, selector: Mapping = PRODUCTION) -> None:
        """Have a placement select its objects, and the edges with these labels."""
        self.wanted.setdefault(placement, {})
        await self.apply(placement_object(placement, selector))

    async def put(self, placement: str, **values: str) -> None:
        self.wanted[placement].update(values)
        await self.apply(*(config_map(placement, *item) for item in values.items()))

    async def drop(self, placement: str, *names: str) -> None:
        for name in names:
            del self.wanted[placement][name]
        await self.delete(*(ObjectKey("", "configmaps", "default", name) for name in names))

    async def withdraw(self, placement: str) -> None:
        """Delete a placement; its objects stay in the centre's space."""
        del self.wanted[placement]
        await self.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", placement))

    async def apply(self, *objects: Mapping) -> None:
        async def once() -> None:
            async with self.session() as session:
                await apply_objects(session, *objects)

        await patiently(once)

    async def delete(self, *keys: ObjectKey) -> None:
        async def once() -> None:
            async with self.session() as session:
                await delete_objects(session, *keys)

        await patiently(once)

    async def centre_values(self) -> dict[str, str]:
        """What the ConfigMaps in the centre's space hold, waiting out its starts."""

        async def once() -> dict[str, str]:
            async with self.session() as session:
                objects = (await session.workloads.list("", "configmaps")).objects
            return {obj["metadata"]["name"]: obj["data"]["value"] for obj in objects}

        return await patiently(once)

    async def clear(self, paths: Iterable[str]) -> None:
        """Begin anew: no placement, no object, and nothing at these edges."""
        async with self.session() as session:
            for kind in (("edge.kubestellar.io", "edgeplacements"), ("", "configmaps")):
                for obj in (await session.workloads.list(*kind)).objects:
                    meta = obj["metadata"]
                    key = ObjectKey(*kind, meta.get("namespace", ""), meta["name"])
                    await delete_objects(session, key)
        self.wanted.clear()
        await self.exact(paths)

    def meant(self, *placements: str) -> dict[str, str]:
        """What the objects of these placements should be, of all of them if none is named."""
        chosen = placements or tuple(self.wanted)
        return {name: value for one in chosen for name, value in self.wanted[one].items()}

    async def exact(self, paths: Iterable[str], *placements: str, seconds: float = WAIT_SECONDS):
        """Wait until these edges hold exactly what they should; `{path: Space}`."""
        return {p: await self.holds(p, self.meant(*placements), seconds) for p in paths}

    async def holds(self, path: str, values: Mapping[str, str], seconds: float = WAIT_SECONDS):
        """Wait until an edge holds exactly these values; what it holds then."""
        member = self.members[path]
        seen: Space | Exception | None = None

        async def met() -> bool:
            nonlocal seen
            try:
                seen = await member.look()
            except AWAY as error:
                seen = error
            return isinstance(seen, Space) and seen.values == values

        await until(met, lambda: f"{path}: {seen}, not {values}\n{member.said[-3000:]}", seconds)
        return seen

    async def look(self, paths: Iterable[str]) -> dict[str, Space]:
        """What these edges hold now, waiting out the starts of their servers."""
        return {path: await patiently(self.members[path].look) for path in paths}

    async def counted(self, placement: str, **states: int) -> dict:
        """Wait until the centre's counts are complete and say so; the placement's form."""
        found: dict = {}

        async def met() -> bool:
            try:
                form = (await self._call("status", {"placement": placement}))["placements"][0]
            except AWAY:
                return False
            found.update(form)
            return form["complete"] and {k: v for k, v in form["states"].items() if v} == states

        await until(met, lambda: f"{placement}: {found}, not {states}")
        return found


async def doctor(tree: ChaosTree, settings: Mapping[str, object] = {}) -> dict[str, str]:
    """What `leafcast doctor` says, causes and remedies too, by group."""
    program = [sys.executable, "-m", "tests.nats.chaos_node", json.dumps(settings), "leafcast"]
    process = await asyncio.create_subprocess_exec(
        *[*program, "doctor", "--json", "--data-dir", str(tree.centre.folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=LIFELINE,
        stdout=subprocess.PIPE,
    )
    said: dict[str, str] = {}
    for check in json.loads((await process.communicate())[0])["checks"]:
        lines = (said.get(check["group"], ""), check["said"], check["cause"], check["remedy"])
        said[check["group"]] = "\n".join(lines)
    return said


async def let_in(file: Path, folder: Path) -> KeptGrant:
    """What a node keeps in its folder that asked with the token in a file."""
    url, text = file.read_text().split()
    token = read_token(text)
    asking = JoinRequester(
        (url,), token, token.path, folder, SystemClock(), SystemDice(), lambda _: None
    )
    return await asking.run()


def placement_object(name: str, selector: Mapping) -> dict:
    clause = {
        "apiGroup": "",
        "resources": ["configmaps"],
        "namespaces": ["default"],
        "labelSelectors": [{"matchLabels": {"of": name}}],
    }
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {"locationSelectors": [{"matchLabels": dict(selector)}], "downsync": [clause]},
    }


def config_map(placement: str, name: str, value: str) -> dict:
    metadata = {"name": name, "namespace": "default", "labels": {"of": placement}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


async def patiently(work, *arguments):
    """Do it again until nothing on the way is away; fails, if that takes too long."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await work(*arguments)
        except AWAY as error:
            if getattr(error, "reason", "") == "Invalid":
                raise
            if time.monotonic() > end:
                error.add_note(f"{work.__name__}{arguments} was tried for {WAIT_SECONDS} s")
                raise
        await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def chaos_tree(
    folder: Path,
    regions: Iterable[str] = (),
    edges: Iterable[str] = (),
    settings: Mapping[str, object] | None = None,
    *,
    wired: bool = False,
):
    """A centre with these relays, and these edges below them; all is ended with it."""
    tree = ChaosTree(folder, settings or {})
    try:
        await tree.start()
        for path in regions:
            await tree.join(path, relay=True, wired=wired)
        for path in edges:
            await tree.join(path, wired=wired)
        yield tree
    finally:
        await tree.close()
