"""What a change of keys costs each child, however many placements are in force.

Everything written to mailboxes is counted by link. What a rotated signing key signed is not signed
anew, what a revoked one signed is: here all. To rotate is to cost a child one or two messages.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cost import Meter, silent
from benchmarks.counts import is_synced
from benchmarks.report import Report
from controllers.core.access.keys import KeyChange
from controllers.issuing.keys import new_signer
from tests.memory_tree import MemoryTree, config_map, memory_tree, placement

REGIONS, EDGES = 2, 20
SIZES = (1, 20, 100)
CHANGES = ("signing", "root", "root again", "revoke")
COLUMNS = ("placements", "change", "most messages of a child", "bytes", "all messages", "seconds")
MESSAGES_MAX = 2


def _change(tree: MemoryTree, what: str) -> KeyChange:
    made, keys = new_signer(tree.keys.tree, tree.dice), tree.controllers.keys
    if what == "signing":
        return KeyChange(signing=made)
    if what == "revoke" and keys.ring.record is not None:
        return KeyChange(revoked=keys.ring.record.grants[0].key_id)
    return KeyChange(roots={made.key_id: made.public_key}, made=(made,))


async def measure(placements: int, report: Report) -> dict[str, int]:
    """The most messages that any child got, by change."""
    paths = [f"/r{n}" for n in range(REGIONS)]
    paths += [f"/r{n % REGIONS}/s{n}" for n in range(EDGES)]
    meter, found = Meter(), dict[str, int]()
    with tempfile.TemporaryDirectory() as folder:
        async with memory_tree(Path(folder), paths, meter.bus) as tree:
            names = [f"p{n}" for n in range(placements)]
            for name in names:
                await tree.apply(config_map(f"c-{name}", name, text=name), placement(name, name))
            for name in names:
                await tree.until(name, lambda count: is_synced(count, EDGES), seconds=600)
            for what in CHANGES:
                await silent(meter)
                began = time.perf_counter()
                await tree.controllers.issuer.change_keys(_change(tree, what))
                seconds = time.perf_counter() - began
                await silent(meter, clear=False)
                messages = [sum(kinds.values()) for kinds in meter.messages.values()]
                sizes = [sum(kinds.values()) for kinds in meter.bytes.values()]
                assert len(messages) == len(paths), "a child heard nothing"
                found[what] = max(messages)
                report.row(placements, what, max(messages), max(sizes), sum(messages), seconds)
            states = [tree.centre.node.count(await tree.placement_key(name)) for name in names]
            assert all(is_synced(count, EDGES) for count in states), "something was lost"
    return found


async def main(sizes: Sequence[int] = SIZES) -> None:
    report = Report("keys", f"A change of keys, {REGIONS} regions of {EDGES // REGIONS}", COLUMNS)
    for placements in sizes:
        found = await measure(placements, report)
        for what in CHANGES[:-1]:
            goal = f"messages of a child, {what}, {placements} placements"
            report.goal(goal, found[what], MESSAGES_MAX)
    report.note("Snapshots and the parts of them that a child fetches are counted, too.")
    report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or SIZES))
