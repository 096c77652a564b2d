"""A change by waves of 20, 50 and 100 percent, half of each at a time, to edges on real servers.

It is what a staged update of KubeFleet's does, in six steps. Beside it, by turns, run six plain
changes one after the other: each to as many edges as a step admits, and each to all. What steering
adds is the ratio. Clusters start what they are given at once, or that would be most of the time.
By turns a change that all have is taken back, too, until the last of them has its former content.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.report import Report, middle, percentile
from benchmarks.wide_tree import GROUP, MANAGER, VERSION, WideTree, say, wide_tree
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, SpaceEvent
from schemas.api.rollout_request import RolloutRequest
from schemas.objects.annotations import ROLLOUT_REQUEST
from schemas.reports.reports import Count
from tests.memory_tree import config_map, placement

REGIONS, EDGES = 4, 100
ROUNDS, AT_ONCE = 20, 100
PERCENTS, AT_A_TIME = (20, 50, 100), 50
STARTUP_SECONDS = (0.0, 0.02)
RATIO_GOAL, ABORT_GOAL = 1.5, 1.2
STEP_SECONDS, MANY_SECONDS = 120.0, 1_200.0
ROLLOUTS = Interest("leafcast.io", "rollouts")
STAGED, TAKEN_BACK = "staged", "taken-back"
IN_STEPS = [
    {"name": f"to-{percent}", "percent": percent, "maxConcurrent": f"{AT_A_TIME}%"}
    for percent in PERCENTS
]
UNTIL_APPROVED = [{"name": "all", "percent": 100, "approval": "after"}]


class Rollouts:
    """The newest status of each Rollout, as the space tells it."""

    def __init__(self) -> None:
        self.done: dict[str, dict[int, float]] = {}
        """By name: when each revision was seen to be complete, of `time.perf_counter`."""
        self.shown: dict[str, Mapping[str, Any]] = {}
        self._moved = asyncio.Event()

    async def told(self, event: SpaceEvent) -> None:
        match event:
            case ObjectsListed(objects=objects):
                self._note(objects.values())
            case ObjectChange(object=obj):
                self._note([obj])
            case _:
                pass

    def _note(self, objects: Iterable[Mapping[str, Any]]) -> None:
        for obj in objects:
            name, status = obj["metadata"]["name"], obj.get("status") or {}
            self.shown[name] = status
            if status.get("phase") == "Complete":
                times = self.done.setdefault(name, {})
                times.setdefault(status["revision"], time.perf_counter())
        self._moved.set()

    async def complete(
        self, names: Sequence[str], revision: int, seconds: float = STEP_SECONDS
    ) -> list[float]:
        """When each of these had all of a revision; raises AssertionError if it takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while not all(revision in self.done.get(name, {}) for name in names):
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            late = [name for name in names if revision not in self.done.get(name, {})]
            said = self.shown.get(late[0], {})
            reason = f"{said.get('phase')}: {said.get('message')}"
            raise AssertionError(
                f"{len(late)} of {len(names)} are late; {late[0]} {reason}"
            ) from None
        return [self.done[name][revision] for name in names]


def workload(name: str, image: int) -> list[dict[str, Any]]:
    """A Namespace, a ConfigMap of 1 KB, and a Deployment."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return [namespace, config_map("settings", name, text="x" * 1024), deployment(name, image)]


def deployment(name: str, image: int) -> dict[str, Any]:
    labels = {"app": "web"}
    containers = [{"name": "web", "image": f"web:{image}"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def placed(name: str, locations: Mapping[str, Any]) -> dict[str, Any]:
    """An EdgePlacement of all that is called so."""
    namespace = {"apiGroup": "", "resources": ["namespaces"], "objectNames": [name]}
    made = placement(name, name, locationSelectors=[locations])
    made["spec"]["downsync"].append(namespace)
    return made


def rollout(
    name: str, waves: Sequence[Mapping[str, Any]] = IN_STEPS, asked: RolloutRequest | None = None
) -> dict[str, Any]:
    spec = {"placement": {"kind": "EdgePlacement", "name": name}, "waves": waves}
    annotations = {ROLLOUT_REQUEST: asked.to_json()} if asked else {}
    metadata = {"name": name, "annotations": annotations}
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": metadata,
        "spec": spec,
    }


def step_sizes(edges: int) -> list[int]:
    """How many destinations each step admits, if they were drawn evenly."""
    found, former = [], 0
    for percent in PERCENTS:
        steps = math.ceil(100 / AT_A_TIME)
        found += [(percent - former) * edges // 100 // steps] * steps
        former = percent
    return found


def good(destinations: int, former: Count | None = None) -> Callable[[Count], bool]:
    """Whether so many have all of it and are healthy, as a wave demands it."""

    def has_it(count: Count) -> bool:
        healthy = count.summary.health == {"healthy": destinations}
        return is_synced(count, destinations, former) and healthy

    return has_it


class Staged:
    """The placements on their tree, and how often each was changed."""

    def __init__(self, tree: WideTree, rollouts: Rollouts) -> None:
        self.tree = tree
        self.rollouts = rollouts
        edges = tree.everywhere
        # By name of a plain placement how many edges it selects.
        self.plain = {f"plain-{at}": size for at, size in enumerate(step_sizes(edges), 1)}
        self.everyone = {"everyone": edges}
        self._changes = self._images = 0

    async def begin(self) -> None:
        """Bring everything out once."""
        # In turn of each region, as those are drawn that a step admits.
        ranks = zip(*self.tree.edges.values(), strict=True)
        targets = iter(["-".join(edge.names) for rank in ranks for edge in rank])
        for name, size in self.plain.items():
            location = _location(name, list(islice(targets, size)))
            await self.tree.inventory.apply(location, MANAGER)
            selector = {"matchLabels": {"step": name}}
            await self.tree.apply(*workload(name, 0), placed(name, selector))
        steered = dict.fromkeys((STAGED, TAKEN_BACK), self.tree.everywhere)
        for name in (*steered, *self.everyone):
            await self.tree.apply(*workload(name, 0), placed(name, {}))
        for name, size in (self.plain | self.everyone | steered).items():
            await self.tree.until(name, good(size))
        await self.tree.apply(rollout(STAGED), rollout(TAKEN_BACK, UNTIL_APPROVED))
        await self.rollouts.complete(list(steered), 1)

    async def by_waves(self) -> float:
        """Seconds from a change to its last wave's end."""
        self._changes += 1
        began = time.perf_counter()
        await self.tree.apply(deployment(STAGED, self._changes))
        (ended,) = await self.rollouts.complete([STAGED], self._changes + 1)
        return ended - began

    async def taken_back(self) -> float:
        """Seconds from an abort of what all have until all have what was before."""
        self._images += 1
        everywhere = self.tree.everywhere
        before = await self._count(TAKEN_BACK)
        await self.tree.apply(deployment(TAKEN_BACK, self._images))
        changed = await self.tree.until(TAKEN_BACK, good(everywhere, before))
        asked = RolloutRequest(id=str(self._images), action="abort")
        began = time.perf_counter()
        await self.tree.apply(rollout(TAKEN_BACK, UNTIL_APPROVED, asked))
        await self.tree.until(TAKEN_BACK, good(everywhere, changed))
        return time.perf_counter() - began

    async def _count(self, name: str) -> Count:
        return self.tree.centre.node.count(await self.tree.placement_key(name))

    async def one_after_the_other(self, sizes: Mapping[str, int]) -> float:
        """Seconds for a plain change of each of these, the next when all have the one before."""
        began = time.perf_counter()
        for name, size in sizes.items():
            former = await self._count(name)
            self._images += 1
            await self.tree.apply(deployment(name, self._images))
            await self.tree.until(name, good(size, former))
        return time.perf_counter() - began


def _location(name: str, edges: Sequence[str]) -> dict[str, Any]:
    resource = {"group": GROUP, "version": VERSION, "resource": "synctargets"}
    these = {"matchExpressions": [{"key": "id", "operator": "In", "values": list(edges)}]}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Location",
        "metadata": {"name": name, "labels": {"step": name}},
        "spec": {"resource": resource, "instanceSelector": these},
    }


async def alone(staged: Staged, rounds: int, report: Report) -> None:
    """One rollout at a time, by turns with the plain changes."""
    plain: list[float] = []
    everyone: list[float] = []
    waves: list[float] = []
    one: list[float] = []
    aborts: list[float] = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        waves.append(await staged.by_waves())
        plain.append(await staged.one_after_the_other(staged.plain))
        steps = len(staged.plain)
        everyone.append(
            sum([await staged.one_after_the_other(staged.everyone) for _ in range(steps)])
        )
        one.append(await staged.one_after_the_other(staged.everyone))
        aborts.append(await staged.taken_back())
    sizes = ", ".join(map(str, staged.plain.values()))
    _rows(report, f"by waves of {_percents()}, until complete", waves)
    _rows(report, f"plain changes to {sizes} edges, one after the other", plain)
    _rows(report, f"as many plain changes to all {staged.tree.everywhere}", everyone)
    _rows(report, "one plain change to all", one)
    _rows(report, "an abort of what all have, until all have the former content", aborts)
    ratios = [long / short for long, short in zip(waves, plain, strict=True)]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    report.note(f"by waves over plain changes of as many edges, round by round: {each}")
    most = "times the plain changes of as many edges"
    report.goal(f"{most}, p50", middle(waves) / middle(plain), RATIO_GOAL)
    report.goal(f"{most}, p90", percentile(waves, 0.9) / percentile(plain, 0.9), RATIO_GOAL)
    most = "times as many plain changes to all"
    report.goal(f"{most}, p50", middle(waves) / middle(everyone), RATIO_GOAL)
    report.goal(f"{most}, p90", percentile(waves, 0.9) / percentile(everyone, 0.9), RATIO_GOAL)
    report.goal(
        "an abort over a plain change to all, p50", middle(aborts) / middle(one), ABORT_GOAL
    )


async def together(staged: Staged, count: int, report: Report) -> None:
    """As many rollouts at once, each of a placement of its own."""
    tree, rollouts, edges = staged.tree, staged.rollouts, staged.tree.everywhere
    names = [f"many-{number}" for number in range(count)]
    began = time.perf_counter()
    for name in names:
        await tree.apply(*workload(name, 0), placed(name, {}))
    for name in names:
        await tree.until(name, good(edges), seconds=MANY_SECONDS)
    out = time.perf_counter() - began
    say(f"{count} placements are out")
    plain = await _changed_together(tree, names)
    say(f"all {count} were changed at once")
    for name in names:
        await tree.apply(rollout(name))
    await rollouts.complete(names, 1, MANY_SECONDS)
    began = time.perf_counter()
    for name in names:
        await tree.apply(deployment(name, 2))
    applied = time.perf_counter() - began
    ended = await rollouts.complete(names, 2, MANY_SECONDS)
    taken = [end - began for end in ended]
    report.note(f"{count} placements: from nothing to healthy at {edges} edges after {out:.0f} s")
    _rows(report, f"{count} plain changes at once, until all have them", [plain])
    report.note(f"{count} rollouts at once: the last object was applied after {applied:.1f} s")
    _rows(report, f"{count} rollouts at once, until each is complete", taken)
    report.goal(f"seconds until the last of {count} is complete", max(taken), MANY_SECONDS)


async def _changed_together(tree: WideTree, names: Sequence[str]) -> float:
    """Seconds for a plain change of all of these at once."""
    node, edges = tree.centre.node, tree.everywhere
    former = {name: node.count(await tree.placement_key(name)) for name in names}
    began = time.perf_counter()
    for name in names:
        await tree.apply(deployment(name, 1))
    for name in names:
        await tree.until(name, good(edges, former[name]), seconds=MANY_SECONDS)
    return time.perf_counter() - began


def _percents() -> str:
    return ", ".join(map(str, PERCENTS)) + " percent"


def _rows(report: Report, what: str, taken: Sequence[float]) -> None:
    report.row(what, middle(taken), percentile(taken, 0.9), min(taken), max(taken))


async def main(rounds: int = ROUNDS, at_once: int = AT_ONCE, edges: int = EDGES) -> None:
    columns = ("what", "p50 s", "p90 s", "least", "most")
    report = Report("kubefleet", f"A change to {edges} edges by waves, {REGIONS} regions", columns)
    with tempfile.TemporaryDirectory() as folder:
        async with wide_tree(Path(folder), REGIONS, edges // REGIONS, STARTUP_SECONDS) as tree:
            rollouts = Rollouts()
            interests = Interests([ROLLOUTS])
            following = asyncio.create_task(tree.workloads.follow(interests, rollouts.told))
            try:
                staged = Staged(tree, rollouts)
                await staged.begin()
                await alone(staged, rounds, report)
                await together(staged, at_once, report)
            finally:
                following.cancel()
                await asyncio.wait([following])
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])))
