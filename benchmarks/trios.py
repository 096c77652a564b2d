"""What a centre of three members costs beside one that runs once, and how fast one is followed.

`python -m benchmarks.trios costs` or `takeovers`, with a number of rounds; without words both. Of
takeovers `leader`, `process`, `again` or `machine` is one kind alone: who is killed.
All members, and both centres, are on this one machine and its one disk.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.report import Report, cpu_seconds, middle, resident_mb
from leafcast.daemon.trio_daemon import AGAIN_SECONDS_MIN
from tests.nats.chaos_member import Member, until
from tests.nats.chaos_tree import AWAY, ChaosTree, config_map
from tests.nats.trio_leaders import GROUPS, WRITTEN, lead, leader_of
from tests.nats.trio_tree import NAMES, TrioTree, role_of

EDGES, CHANGES, ROUNDS, REST_SECONDS = 2, 60, 20, 10.0
PROCESS_SECONDS, ELECTION_SECONDS = 10.0, 3.0
TAKEOVER_SECONDS, ANSWER_SECONDS = 60.0, 0.25
PROCESS, MACHINE, LEADER = "the active process", "the active machine", "a server that leads"
AGAIN = f"{PROCESS}, started again at once"
KINDS = {"leader": LEADER, "process": PROCESS, "again": AGAIN, "machine": MACHINE}


async def _joined(tree: ChaosTree) -> None:
    await tree.start()
    for number in range(EDGES):
        await tree.join(f"/edge-{number}")
    await tree.place("web")
    await tree.put("web", one="first")
    await tree.exact([f"/edge-{number}" for number in range(EDGES)])


def _centres(tree: ChaosTree) -> list[Member]:
    return list(tree.centres.values()) if isinstance(tree, TrioTree) else [tree.centre]


def _pids(members: Iterable[Member]) -> list[int]:
    processes = [(it.process, it.server_pids()) for it in members]
    return [pid for process, pids in processes if process for pid in (process.pid, *pids)]


async def _change(tree: ChaosTree, number: int) -> tuple[float, float]:
    """Seconds until a change is acknowledged, and until all edges hold it."""
    began = time.perf_counter()
    await tree.put("web", one=f"change {number}")
    acknowledged = time.perf_counter() - began
    await tree.exact([f"/edge-{number}" for number in range(EDGES)])
    return acknowledged, time.perf_counter() - began


async def costs(report: Report, changes: int) -> None:
    """Both centres are changed in turn."""
    with tempfile.TemporaryDirectory() as folder:
        trees: dict[str, ChaosTree] = {}
        for name, kind in (("one", ChaosTree), ("trio", TrioTree)):
            (Path(folder) / name).mkdir()
            trees[name] = kind(Path(folder) / name)
        try:
            for tree in trees.values():
                await _joined(tree)
            taken: dict[str, list[tuple[float, float]]] = {name: [] for name in trees}
            spent = dict.fromkeys(trees, 0.0)
            for number in range(changes):
                for name, tree in trees.items():
                    before = sum(map(cpu_seconds, _pids(_centres(tree))))
                    taken[name].append(await _change(tree, number))
                    spent[name] += sum(map(cpu_seconds, _pids(_centres(tree)))) - before
            figures = {}
            for name, tree in trees.items():
                members = _centres(tree)
                figures[name] = (
                    *(middle([each[at] for each in taken[name]]) * 1000 for at in (0, 1)),
                    spent[name] / changes * 1000,
                    sum(map(resident_mb, _pids(members))),
                    sum(it.stored_bytes() for it in members) / 1e6,
                )
        finally:
            for tree in trees.values():
                await tree.close()
    what = (
        "a change is acknowledged, p50 ms",
        "applied at all edges, p50 ms",
        "processor ms of a change, at the centre",
        "resident MB",
        "stored MB",
    )
    for at, said in enumerate(what):
        one, trio = (figures[name][at] for name in ("one", "trio"))
        report.row(said, one, trio, trio / one)


@asynccontextmanager
async def _changing(tree: TrioTree) -> AsyncIterator[list[tuple[float, float]]]:
    """When each change was begun and acknowledged, as it goes on."""
    done: list[tuple[float, float]] = []

    async def change() -> None:
        while True:
            began = time.perf_counter()
            try:
                await tree.apply(config_map("web", "one", str(len(done))))
            except AWAY:
                continue
            done.append((began, time.perf_counter()))

    task = asyncio.create_task(change())
    try:
        yield done
    finally:
        task.cancel()


async def _bare_election(tree: TrioTree, dead: str, groups: Iterable[str]) -> float:
    """Seconds until all that was led by a member's server is led by another one."""
    other = tree.centres[next(name for name in NAMES if name != dead)]
    began = time.perf_counter()
    for group in groups:

        async def is_led(group: str = group) -> bool:
            try:
                return await leader_of(other, group, ANSWER_SECONDS) not in ("", dead)
            except Exception:  # noqa: BLE001 - whatever it is, nobody leads it
                return False

        await until(is_led, seconds=TAKEOVER_SECONDS)
    return time.perf_counter() - began


async def _fail(tree: TrioTree, what: str, done: list[tuple[float, float]]) -> tuple[float, float]:
    """Seconds until a change is acknowledged, and until all that was led is led again."""
    active = tree.active()
    name = next(it for it in NAMES if it != active) if what == LEADER else active
    groups = GROUPS if what == LEADER else WRITTEN
    for group in groups:
        await lead(tree.centres[active], group, name)
    struck = tree.centres[name]
    pids, said = struck.server_pids(), role_of(struck)
    began = time.perf_counter()
    if what != LEADER:
        struck.kill()
    if what == AGAIN:
        # As `leafcast up` does with one that ended.
        process = struck.process
        assert process is not None
        await until(lambda: process.poll() is not None)
        await asyncio.sleep(AGAIN_SECONDS_MIN)
        struck.start()
    elif what != PROCESS:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    election = asyncio.create_task(_bare_election(tree, name, groups))
    taken = await _acknowledged(tree, done, began)
    led = await election
    if what not in (LEADER, AGAIN):
        struck.start()
    if what != LEADER:
        await until(lambda: role_of(struck) != said, lambda: str(tree.said()))
    # Until the memory of its server has the lease, none of the others may be lost.
    await asyncio.sleep(REST_SECONDS)
    is_followed = what == LEADER and tree.active() != active
    return (float("inf") if is_followed else taken), led


async def _acknowledged(tree: TrioTree, done: list[tuple[float, float]], began: float) -> float:
    """Seconds until a change is acknowledged that was begun since."""
    await until(
        lambda: bool(done) and done[-1][0] > began, lambda: str(tree.said()), TAKEOVER_SECONDS
    )
    return next(end for start, end in done if start > began) - began


async def takeovers(report: Report, kinds: Iterable[str], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = TrioTree(Path(folder))
        try:
            await _joined(tree)
            async with _changing(tree) as done:
                for what in kinds:
                    seen = []
                    for _ in range(rounds):
                        seen.append(await _fail(tree, what, done))
                        print(f"{what}: {seen[-1][0]:.1f} s, led {seen[-1][1]:.1f} s", flush=True)
                    seconds = [each[0] for each in seen]
                    beside = [taken - led for taken, led in seen]
                    report.note(
                        f"kill -9 of {what}: written again after {middle(seconds):.1f} s, at most "
                        f"{max(seconds):.1f}; all led again after "
                        f"{middle([each[1] for each in seen]):.1f} s"
                    )
                    if what == LEADER:
                        followed = sum(each == float("inf") for each in seconds)
                        report.goal(f"takeovers at {rounds} ends of {what} elsewhere", followed, 0)
                    elif what in (PROCESS, AGAIN):
                        report.goal(
                            f"{what} ends: writes, s at most", max(seconds), PROCESS_SECONDS
                        )
                    else:
                        report.goal(
                            f"{what} ends: s beside the election, p50",
                            middle(beside),
                            ELECTION_SECONDS,
                        )
        finally:
            await tree.close()


async def main(*words: str) -> None:
    columns = ("a centre", "one", "trio", "times")
    report = Report("trios", "A centre of three members beside one that runs once", columns)
    rounds = int(words[1]) if len(words) > 1 else 0
    what = words[0] if words else ""
    if what in ("", "costs"):
        await costs(report, rounds or CHANGES)
    if what != "costs":
        kinds = [KINDS[what]] if what in KINDS else KINDS.values()
        await takeovers(report, kinds, rounds or ROUNDS)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
