"""One seed of a world whose centre reads blind spaces: build, change under faults, heal, judge."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from schemas.identity import NodePath
from tests.simulation import blindness, faults
from tests.simulation.blindness import Blindness, Misfortune
from tests.simulation.centre import ROOTS, TREE
from tests.simulation.chaos import Chaos
from tests.simulation.oracle_removals import RemovalOracle
from tests.simulation.people import People, another_space
from tests.simulation.run import Run
from tests.simulation.sizes import Size
from tests.simulation.spaced_centre import SpacedCentre
from tests.simulation.world import World

LONG_SECONDS = 9000.0
"""Two sweeps of all blobs, and then some."""


class SpacedRun(Run):
    """The parts of one run, wired together."""

    def __init__(
        self,
        seed: int | str,
        chosen: faults.Faults | None,
        size: Size,
        *,
        traced: bool = False,
        story: bool = False,
        own: Blindness | None = None,
        regions: tuple[int, int] | None = None,
    ) -> None:
        self.size = size = size if regions is None else replace(size, regions=regions)
        own = blindness.draw(Random(f"blindness {seed}")) if own is None else own
        self.faults = chosen if chosen is not None else size.draw(Random(f"faults {seed}"))
        if size.apart and (own.loss_every or own.backup_every):
            self.faults = replace(self.faults, disk_loss=0.0, restore_every=0.0)
        self.world = World(seed, TREE, ROOTS, self.faults)
        self.world.traced, self.world.story = traced or story, [] if story else None
        self.world.brief = size.brief
        self.world.add(NodePath(), attached=False)
        self.spaced = SpacedCentre(self.world, another_space())
        self.judge = RemovalOracle(self.world, self.spaced)
        self.oracle = self.judge
        self.chaos = Chaos(self.world, self.spaced, brief=size.brief)  # type: ignore[arg-type]
        self.people = People(self.world, self.spaced, self.judge, size)
        self.misfortune = Misfortune(self.world, self.spaced, own)

    def build(self) -> None:
        """Let the tree be as it is before anything changes."""
        self.world.run(1.0)
        self.people.build()
        self.settle()

    def live(self, *, rest: bool) -> None:
        """Change under faults, suffer faults alone, see again."""
        random, size = self.world.random, self.size
        for least, most in size.rounds:
            self.chaos.start()
            self.misfortune.start()
            for _ in range(random.randint(least, most)):
                self.world.run(random.expovariate(1 / size.gap_seconds))
                self.people.act()
            self.world.run(random.uniform(0, size.tail_seconds))
            self.misfortune.stop()
            self.chaos.stop()
            self.settle()
        if rest:
            self.world.run(LONG_SECONDS)
            self.settle()

    def judge_settled(self) -> None:
        """Raise LawBroken unless all is as users want it."""
        self.judge.settled()

    def mend(self) -> None:
        """People let go what is held."""
        self.people.mend()
