"""A thousand sites are let in by request and approval: processor time of each, reloads of servers.

The daemon of a tree with one region runs here, so that the reloads of its servers can be counted;
who asks is another process, with one link for all. `in advance` are tokens that nobody is asked
about.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import Report, cpu_seconds
from leafcast.ask.session import Session, open_session
from leafcast.daemon.local_daemon import local_daemon
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import QuestionUnanswered, ask
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair, new_user_nkey
from relay.adapters.server.process import ServerProcess
from relay.adapters.spaces.connection import Client, space_connection
from schemas.enrolment.enrolment import (
    GRANTED,
    PENDING,
    JoinRequest,
    NoAnswer,
    open_answer,
    sign_request,
)
from schemas.enrolment.tokens import Token, read_token
from schemas.values.identity import NodePath
from schemas.values.wire import encode

SITES = 1_000
REGION = NodePath(("region-1",))
AT_ONCE = 250
BATCH = 500
SECONDS = 600.0
RELOADS_GOAL = 40


class Reloads:
    """How often the servers of this process read their configuration anew."""

    def __init__(self) -> None:
        self.count = 0
        plain = ServerProcess.reload

        async def counted(process: ServerProcess) -> bool:
            self.count += 1
            return await plain(process)

        setattr(ServerProcess, "reload", counted)  # noqa: B010 - as a test would


async def handed_out(session: Session, names: str, count: int, *, sure: bool) -> list[str]:
    """The address, and as many tokens."""
    found: list[str] = []
    for start in range(0, count, BATCH):
        nodes = [
            {"path": str(REGION.child(f"{names}-{n}")), "labels": {"kind": "store"}}
            for n in range(start, min(start + BATCH, count))
        ]
        said = await session.call("node-token-add", seconds=SECONDS, nodes=nodes, sure=sure)
        assert not said["faults"], said["faults"][:1]
        found += [f"{one['url']} {one['token']}" for one in said["added"]]
    return found


async def asker(file: Path) -> None:
    """Ask with all tokens of the file, until none is pending that was asked to be granted.

    Reads `pending` or `granted` from stdin, and says the seconds it took.
    """
    lines = [line.split() for line in file.read_text().splitlines()]
    url, tokens = lines[0][0], [read_token(token) for _, token in lines]
    dice, clock = SystemDice(), SystemClock()
    keys = {token.token_id: dice.entropy(32) for token in tokens}
    seeds = AccountSeeds(*(new_user_nkey(dice.entropy(32))[0] for _ in range(4)))
    link = ParentRemote((url,), entrance_pair(tokens[0].tree)[0], "asking.all", unchecked=True)
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer(
            Path(folder),
            REGION.child("x"),
            seeds,
            Neighbours(link),
            guard=(guard := ProcessGuard()),
            clock=clock,
        )
        async with guard, server, space_connection(server.url, seeds.uplink, "asker") as client:
            loop = asyncio.get_running_loop()
            while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
                began = time.perf_counter()
                await _all_asked(client, tokens, keys, word)
                print(time.perf_counter() - began, flush=True)


async def _all_asked(
    client: Client, tokens: list[Token], keys: dict[str, bytes], word: str
) -> None:
    limit = asyncio.Semaphore(AT_ONCE)

    async def until_answered(token: Token) -> None:
        assert token.path is not None
        key = keys[token.token_id]
        asked = JoinRequest(token.path, new_user_nkey(key)[1], "bench")
        request = sign_request(token, asked, key)
        while True:
            async with limit:
                try:
                    data = await ask(client, "enrol.ask", encode(request), 20)
                    answer = open_answer(token, request, data)
                except (QuestionUnanswered, NoAnswer):
                    continue
            if answer.state == word:
                return
            assert answer.state in (PENDING, GRANTED), answer
            await asyncio.sleep(answer.again_seconds)

    async with asyncio.TaskGroup() as group:
        for token in tokens:
            group.create_task(until_answered(token))


class Used:
    """Processor time of the daemon and of its servers, since it was looked at last."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        self._before = self._now()

    def _now(self) -> list[float]:
        own = time.process_time()
        return [own, *(cpu_seconds(pid) for pid in self._pids())]

    def since(self) -> list[float]:
        now = self._now()
        used = [after - before for after, before in zip(now, self._before, strict=True)]
        self._before = now
        return used


async def measured(
    report: Report, reloads: Reloads, sites: int, folder: Path, *, sure: bool
) -> None:
    daemon = local_daemon(DataDir(folder), TreeShape(1, 1))
    running = asyncio.create_task(daemon.run())
    await daemon.centre.up.wait()
    os.environ["LEAFCAST_DATA_DIR"] = str(folder)
    nodes = daemon.centre.nodes
    used = Used(lambda: [nodes[path].server.pid for path in (NodePath(), REGION)])  # type: ignore[union-attr]

    def tell(what: str, count: int, seconds: float) -> None:
        relays, centre, region = used.since()
        each = 1000 * (relays + centre + region) / count
        report.row(what, seconds, relays, centre, region, each, reloads.count)
        reloads.count = 0

    try:
        async with open_session() as session:
            await let_in(session, sites, folder, tell, sure=sure)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def let_in(
    session: Session,
    sites: int,
    folder: Path,
    tell: Callable[[str, int, float], None],
    *,
    sure: bool,
) -> None:
    began = time.perf_counter()
    lines = await handed_out(session, "s", sites, sure=sure)
    tell("tokens in advance" if sure else "tokens", sites, time.perf_counter() - began)
    file = folder / "tokens.txt"
    file.write_text("\n".join(lines))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.enrolment",
        "--ask",
        str(file),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    if sure:
        tell("requests granted in advance", sites, await _told(process, GRANTED))
    else:
        tell("requests", sites, await _told(process, PENDING))
        began = time.perf_counter()
        said = await session.call("node-approve", seconds=SECONDS, paths=[], everyone=True)
        assert len(said["approved"]) == sites, said["faults"][:1]
        tell("approval of all", sites, time.perf_counter() - began)
        tell("answers that grant", sites, await _told(process, GRANTED))
    assert process.stdin is not None
    process.stdin.close()
    await process.wait()


async def _told(process: asyncio.subprocess.Process, word: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{word}\n".encode())
    async with asyncio.timeout(SECONDS):
        return float(await process.stdout.readline())


async def main(sites: int) -> None:
    columns = (
        "what",
        "seconds",
        "daemon, CPU-s",
        "centre's server",
        "region's server",
        "all, ms each",
        "reloads",
    )
    report = Report("enrolment", f"{sites} sites let in by request and approval", columns)
    reloads = Reloads()
    for sure in (False, True):
        with tempfile.TemporaryDirectory() as folder, DataDir(Path(folder)).locked():
            await measured(report, reloads, sites, Path(folder), sure=sure)
    for row in report.rows:
        name: Any = row[0]
        if name == "approval of all":
            report.goal(f"{name}: reloads", float(row[-1]), RELOADS_GOAL)
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        asyncio.run(asker(Path(sys.argv[2])))
    else:
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else SITES))
