"""Objects that an edge customizes before it applies them, beside as many that go as they are.

A tree in one process, with buses and spaces in memory: what is applied costs next to nothing, so
that what customizing adds shows most. Each round places as many ConfigMaps plain as with three
expressions and a Customizer, by turns, and counts the processor time until the edge holds them all.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Report, middle
from tests.memory_tree import MemoryTree, config_map, memory_tree, placement

OBJECTS, ROUNDS = 300, 5
KEYS = 12
RATIO = 0.7
ANNOTATIONS = {
    "control.kubestellar.io/expand-templates": "true",
    "edge.kubestellar.io/customizer": "per-site",
}


def objects(name: str, count: int, *, customized: bool) -> list[dict[str, Any]]:
    """ConfigMaps of about 600 bytes; those that are customized have a Customizer before them."""
    texts = {f"key-{at}": "a text that is the same everywhere" for at in range(KEYS)}
    if customized:
        texts |= {f"key-{at}": "in {{ .region }} at {{ .clusterName }}" for at in range(2)}
        texts["key-2"] = "of {{ .id }}"
    found = [config_map(f"c-{at}", name, **texts) for at in range(count)]
    if not customized:
        return found
    for obj in found:
        obj["metadata"]["annotations"] = dict(ANNOTATIONS)
    by = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "Customizer",
        "metadata": {"name": "per-site", "namespace": name},
        "replacements": [{"path": "$.data.key-3", "value": '"replaced"'}],
    }
    return [by, *found]


async def measure(tree: MemoryTree, name: str, count: int, *, customized: bool) -> float:
    """Processor seconds from the placement until the edge holds all of its objects."""
    await tree.apply(*objects(name, count, customized=customized))
    await tree.controllers.caught_up()
    began = time.process_time()
    await tree.apply(placement(name, name))
    await tree.until(name, lambda count: count.exact and count.summary.states == {"synced": 1})
    return time.process_time() - began


async def main(count: int = OBJECTS, rounds: int = ROUNDS) -> None:
    report = Report(
        "customization",
        f"{count} ConfigMaps to an edge in memory, plain and customized, by processor time",
        ("objects a second", "plain", "customized", "ratio"),
    )
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        async with memory_tree(Path(folder), ["/r1", "/r1/s1"]) as tree:
            await measure(tree, "first", 10, customized=False)
            await measure(tree, "first-own", 10, customized=True)
            for number in range(rounds):
                plain = await measure(tree, f"plain-{number}", count, customized=False)
                own = await measure(tree, f"own-{number}", count, customized=True)
                ratios.append(plain / own)
                report.row(f"round {number + 1}", count / plain, count / own, ratios[-1])
    report.goal("customized objects a second over plain ones", middle(ratios), RATIO, least=True)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])))
