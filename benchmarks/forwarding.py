"""A relay's forwarding rate beside a bare loop that consumes, republishes and acknowledges.

The parent's mailbox for the relay is filled with signed deltas of as many placements before
anything is measured. Then one process reads it over the leaf link and writes everything into the
mailbox of one child: the bare loop (nats-py and nothing else), a loop that also checks signatures
and stores what it read, and the real relay, started on the streams it had before. Same servers,
streams, consumer and windows. Blobs: all placements name one manifest of three small objects, which
the relay fetches once. The relay's time ends when the child's last message is stored and the last
of its own mail acknowledged; its reports upward begin after that, in a window of their own, unless
that takes five seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.forwarders import Job, run_loop, run_relay
from benchmarks.report import Report, cpu_seconds, middle
from controllers.core.ledger.ledger import Draft, values_of
from controllers.issuing.issuer import Issuer, open_issuer
from controllers.issuing.keys import CentreKeys, load_or_make_keys
from controllers.issuing.nodes import add_node
from leafcast.node.credentials.account_seeds import SEEDS_FILE
from leafcast.node.options import NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.runtime import NodeRuntime
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.connection import Connection
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.shell.driver import Driver
from schemas.content import blobs
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    API_SYNC_TARGET,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    Profile,
    Source,
)
from schemas.records.signed_records import EncodedBody
from schemas.values import codec
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import ContentHash, DestinationId, NodePath

DELTAS, ROUNDS = 5000, 3
GOAL = 0.65
CENTRE, RELAY = NodePath(), NodePath(("r0",))
CHILD = RELAY.child("s0")
SPACE = "benchmark"
KINDS = {"bare": "bare loop", "dutiful": "dutiful loop", "relay": "relay"}


@dataclass(slots=True)
class Stage:
    """A centre that serves, and the server of a relay below it, which does not run itself."""

    folder: Path
    keys: CentreKeys
    issuer: Issuer
    centre: NodeRuntime
    server: EmbeddedServer

    def job(self, kind: str, first: int, count: int) -> Job:
        seeds = json.loads((self.folder / "relay" / SEEDS_FILE).read_text())
        return Job(
            kind=kind,
            url=self.server.url,
            relay_seed=seeds["relay"],
            uplink_seed=seeds["uplink"],
            system_seed=seeds["system"],
            tree=self.keys.tree,
            root=self.keys.ring.roots[0].key_id,
            root_key=self.keys.ring.roots[0].public_key.hex(),
            signing_key=self.keys.signing.public_key.hex(),
            path=str(RELAY),
            child=CHILD.name,
            first=first,
            count=count,
        )

    async def api(self, at: NodePath, verb: str, **body: Any) -> dict[str, Any]:
        """Ask JetStream at one of the two servers."""
        name = "relay" if at == RELAY else "centre"
        seeds = json.loads((self.folder / name / SEEDS_FILE).read_text())
        url = self.server.url if at == RELAY else self.centre.server.url
        connection = Connection(url, seeds["relay"], "benchmark", "_INBOX.benchmark")
        await connection.open()
        try:
            return await connection.api(verb, **body)
        finally:
            await connection.close()


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """The two servers, the centre's relay, and a relay that was in session, then ended."""
    clock, dice = SystemClock(), SystemDice()
    keys = load_or_make_keys(folder / "keys", dice)
    roots = keys.roots
    async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
        world = NodeEnvironment(guard, clock, dice, keys.tree, roots)
        centre = NodeRuntime(world, NodeIdentity(CENTRE, folder / "centre"))
        tasks = [group.create_task(centre.run())]
        driver = await centre.running()
        issuer = await open_issuer(
            driver.publisher, keys, clock, dice, lambda _: None, lambda *_: None
        )
        await issuer.begin()
        tasks.append(group.create_task(issuer.run()))
        made = await add_node(issuer, RELAY, dice.entropy(32), new_user_nkey)
        child = await add_node(issuer, CHILD, dice.entropy(32), new_user_nkey)
        await issuer.issue([_profile()])
        await driver.until(lambda node: RELAY.name in node.children())
        link = ParentRemote((centre.server.leaf_url,), made.seed)
        await _settle(world, folder / "relay", link)
        seeds = AccountSeeds(**json.loads((folder / "relay" / SEEDS_FILE).read_text()))
        async with EmbeddedServer(
            folder / "relay",
            RELAY,
            seeds,
            Neighbours(link, {CHILD.name: child.nkey}),
            guard=guard,
            clock=clock,
        ) as server:
            yield Stage(folder, keys, issuer, centre, server)
        for task in tasks:
            task.cancel()


async def _settle(world: NodeEnvironment, folder: Path, link: ParentRemote) -> None:
    """Let the relay run once, until it has its child and knows where it hangs."""
    relay = NodeRuntime(world, NodeIdentity(RELAY, folder), ParentAccess(link))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(relay.run())
        driver = await relay.running()
        await driver.until(lambda node: node.ready and node.destination_of(CHILD.name) is not None)
        task.cancel()


def _profile() -> Draft:
    source = Source(API_SYNC_TARGET, SPACE, "", "s0")
    labels = {"env": "prod", "region": "r0"}
    record = Profile(
        source,
        0,
        "",
        "",
        DestinationId(f"{SPACE}-mb-s0"),
        CHILD,
        labels,
        {},
        {},
    )
    return Draft("profile", record)


def _deltas(count: int) -> list[Draft]:
    """Signed heads and bodies of placements that name one manifest of three small objects."""
    entries: list[ManifestEntry] = []
    values: dict[ContentHash, bytes] = {}
    for n in range(3):
        data = {"key": "value " * 20, "number": str(n)}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}, "data": data}
        stored = blobs.store(blobs.OBJECT, codec.canonical(obj))
        values |= values_of(stored)
        address, size = stored.reference.address, stored.reference.size
        entries.append(ManifestEntry("", "configmaps", "default", f"c{n}", address, size, SPACE, n))
    manifest = build_manifest(entries)
    values |= values_of(*manifest)
    root = manifest[0].reference
    body = EncodedBody.of(DeltaBody((root,), (Gate(root),)))
    who = (
        Alternative(
            OVER_SYNC_TARGET, LabelSelector.from_kubernetes({"matchLabels": {"env": "prod"}}), SPACE
        ),
    )
    hashed = hashlib.sha256(body.data).digest()
    return [
        Draft(
            "delta",
            DeltaHead(
                Source(API_PLACEMENT, SPACE, "", f"placement-{n}"),
                0,
                "",
                "",
                hashed,
                who,
                0,
            ),
            body,
            values if n == 0 else {},
        )
        for n in range(count)
    ]


async def fill(at: Stage, driver: Driver) -> int:
    """Write the backlog; returns the sequence of its first message in the centre's MAIL."""
    before = (await at.api(CENTRE, "STREAM.INFO.MAIL"))["state"]["last_seq"]
    written = driver.counters.mail_written
    drafts = _deltas(DELTAS)
    for start in range(0, DELTAS, 1000):
        await at.issuer.issue(drafts[start : start + 1000])
    while driver.counters.mail_written < written + DELTAS:
        await driver.progress()
    return int(before) + 1


async def measured(job: Job, servers: dict[str, int]) -> dict[str, float]:
    """One process at work alone; what it says of itself, and what the servers used meanwhile."""
    command = [sys.executable, "-m", "benchmarks.forwarding", "--job"]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    before = {name: cpu_seconds(pid) for name, pid in servers.items()}
    said, _ = await process.communicate(job.dumps().encode())
    assert process.returncode == 0, f"the {job.kind} failed"
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    for name, pid in servers.items():
        found[name] = cpu_seconds(pid) - before[name]
    return found


async def one_round(folder: Path) -> dict[str, dict[str, float]]:
    async with stage(folder) as at:
        driver = at.centre.driver
        assert driver is not None
        first = await fill(at, driver)
        assert isinstance(at.centre.server, EmbeddedServer)
        servers = {"centre's server": at.centre.server.pid, "relay's server": at.server.pid}
        found = {}
        for kind in KINDS:
            found[kind] = await measured(at.job(kind, first, DELTAS), servers)
            await at.api(RELAY, "STREAM.PURGE.DONE")
            if kind != "relay":
                await at.api(RELAY, "STREAM.PURGE.MAIL", filter=f"{CHILD.prefix}._mail.*")
        return found


async def main() -> None:
    columns = ("", "deltas a second", "CPU s", "µs of CPU a delta", "servers' CPU s", "each round")
    report = Report("forwarding", f"Forwarding a backlog of {DELTAS} deltas", columns)
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(await one_round(Path(folder)))
    for kind, name in KINDS.items():
        runs = [found[kind] for found in rounds]
        rates = [DELTAS / run["seconds"] for run in runs]
        cpu = middle([run["cpu"] for run in runs])
        used = middle([run["centre's server"] + run["relay's server"] for run in runs])
        each = ", ".join(f"{rate:,.0f}" for rate in rates)
        report.row(name, middle(rates), cpu, cpu / DELTAS * 1e6, used, each)
    dutiful = _ratio(rounds, "dutiful", "seconds")
    report.goal("relay over dutiful loop", dutiful, GOAL, least=True)
    by_cpu = _ratio(rounds, "bare", "cpu"), _ratio(rounds, "dutiful", "cpu")
    report.note(f"relay over bare loop: {_ratio(rounds, 'bare', 'seconds'):.2f}")
    report.note(
        f"by CPU seconds: relay over bare loop {by_cpu[0]:.2f}, over dutiful {by_cpu[1]:.2f}"
    )
    report.finish()


def _ratio(rounds: list[dict[str, dict[str, float]]], kind: str, what: str) -> float:
    return middle([found[kind][what] / found["relay"][what] for found in rounds])


if __name__ == "__main__":
    if "--job" in sys.argv:
        given = Job.loads(sys.stdin.read())
        asyncio.run(run_relay(given) if given.kind == "relay" else run_loop(given))
    else:
        asyncio.run(main())
