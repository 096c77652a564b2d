"""One child floods its parent: how long a change takes to its sibling meanwhile, to without.

The centre and an honest edge run here, on real servers. In the place of another edge's program a
process of its own says thousands of messages a second over that edge's server: reports, parts,
copies, hellos of ever new runs with as many wants as one may name, requests for content, answers.
Each kind comes with quiet rounds before and after it, as the machine has other work, too.

`python -m benchmarks.child_flood --flood URL SEED KIND` is the flood: it goes on until it is ended,
and prints each second how many messages it said so far.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from benchmarks.report import Report, middle
from relay.adapters.jetstream.request_reply import brief_connection
from schemas.reports.link import WANTS_MAX, Hello, copies_word
from schemas.reports.reports import Report as Said
from schemas.reports.reports import Summary
from schemas.values import subjects
from schemas.values.identity import NodePath, short_key
from schemas.values.wire import encode
from tests.nats.driven_tree import at_least, driven_tree
from tests.unit.centre_world import USER, config

CHANGES, RATIO, STALLED_SECONDS = 15, 1.5, 10.0
EVIL, BURSTS_A_SECOND = NodePath.parse("/evil"), 50
PART_BYTES, COPY_BYTES = 60_000, 8_000

Message = tuple[str, bytes, str]
"""Subject, body, and where an answer would go."""


def _key(number: int) -> str:
    return str(short_key(number.to_bytes(20, "big")))


def report(number: int) -> Message:
    """On what it was never sent."""
    key, one = short_key(number.to_bytes(20, "big")), Summary({"synced": 1})
    return (
        subjects.stat(EVIL, key),
        encode(Said(key, 0, "r" * 26, 1, 7, gone=False, parts=0, summary=one)),
        "",
    )


def part(number: int) -> Message:
    return subjects.stat(EVIL, _key(number % 64)), b"\x9a" + os.urandom(8) + bytes(PART_BYTES), ""


def copy(number: int) -> Message:
    return subjects.copy(EVIL, _key(number % 2_000)), bytes(COPY_BYTES), ""


def hello(number: int) -> Message:
    """Of a run that nobody heard of, which wants what there may be."""
    wants = tuple(short_key((number + at).to_bytes(20, "big")) for at in range(WANTS_MAX))
    word = copies_word(stated=True, behind_seconds=0)
    said = Hello(f"{number:026d}", "", "", 0, b"", 0, wants=wants, copies=word)
    return subjects.node_self(EVIL), encode(said), ""


def request(number: int) -> Message:
    return f"up.blob.{number:064x}", b"", "_INBOX.flood"


def answer(number: int) -> Message:
    return subjects.answer(EVIL, _key(number)), bytes(500), ""


KINDS: dict[str, Callable[[int], Message]] = {
    "reports": report,
    "parts": part,
    "copies": copy,
    "hellos": hello,
    "requests": request,
    "answers": answer,
}

PER_SECOND = {
    "reports": 2_000,
    "parts": 200,
    "copies": 1_000,
    "hellos": 200,
    "requests": 2_000,
    "answers": 2_000,
}
"""A hundred times what the largest honest edge says, and 12 MB of parts."""


async def flood(url: str, seed: str, kind: str) -> None:
    """Say so much in a second, or as much as the own server takes."""
    make, said, told = KINDS[kind], 0, time.monotonic()
    async with brief_connection(url, seed, "flood") as client:
        while True:
            began = time.monotonic()
            for _ in range(max(PER_SECOND[kind] // BURSTS_A_SECOND, 1)):
                said += 1
                subject, body, reply = make(said)
                await client.publish(subject, body, reply=reply)
            await client.flush()
            await asyncio.sleep(max(0.0, began + 1 / BURSTS_A_SECOND - time.monotonic()))
            if time.monotonic() - told >= 1:
                told += 1
                print(said, flush=True)


async def _begun(url: str, seed: str, kind: str) -> tuple[Process, asyncio.Task[list[bytes]]]:
    command = [sys.executable, "-m", "benchmarks.child_flood", "--flood", url, seed, kind]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    stdout = process.stdout
    assert stdout is not None
    # It floods for a second by then.
    first = await stdout.readline()

    async def rest() -> list[bytes]:
        return [first, *[line async for line in stdout]]

    return process, asyncio.create_task(rest())


async def measure(report_: Report, changes: int = CHANGES) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with driven_tree(Path(folder)) as tree:
            honest = await tree.add("/honest", attached=True)
            evil, seeds = await tree.lend(str(EVIL))
            tree.serve_asks("/")
            key = await tree.place()
            await honest.driver.until(lambda core: key in core.records)
            values = iter(range(1_000_000))

            async def seconds() -> float:
                async with asyncio.timeout(60):
                    return await _to_sibling(tree, key, str(next(values)), honest.driver)

            await seconds()
            for kind in KINDS:
                quiet = [await seconds() for _ in range(changes)]
                process, said = await _begun(evil.url, seeds.uplink, kind)
                began = time.monotonic()
                loud = [await seconds() for _ in range(changes)]
                took = time.monotonic() - began
                process.kill()
                lines = await said
                await process.wait()
                quiet += [await seconds() for _ in range(changes)]
                rate = (int(lines[-1]) - int(lines[0])) / max(took, 1)
                ratio = middle(loud) / middle(quiet)
                figures = (1000 * each for each in (middle(quiet), middle(loud), max(loud)))
                report_.row(kind, round(rate), *figures, ratio)
                report_.goal(f"p50 during a flood of {kind} to without", ratio, RATIO)
                report_.goal(f"the longest during {kind}, seconds", max(loud), STALLED_SECONDS)


async def _to_sibling(tree: Any, key: Any, value: str, edge: Any) -> float:
    """Seconds from the change in the space until the centre knows that the sibling holds it."""
    changed, holds = cast("Any", config), cast("Any", at_least)
    records, reports = tree.centre.node.records, tree.centre.node._reports
    before, began = records[key].generation, time.monotonic()
    await tree.wds.apply(changed("a", value=f"v{value}"), USER)
    await tree.centre.until(lambda core: core.records[key].generation > before)
    generation = records[key].generation
    await edge.until(lambda core: holds(core, key, generation))
    await tree.centre.until(lambda _: reports.generation("honest", key) >= generation)
    return time.monotonic() - began


async def main() -> None:
    columns = ("flood of", "messages/s", "p50 ms quiet", "p50 ms", "worst ms", "ratio")
    report_ = Report("child_flood", "A change to an edge while its sibling floods", columns)
    await measure(report_)
    report_.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--flood"]:
        asyncio.run(flood(*sys.argv[2:5]))
    else:
        asyncio.run(main())
