"""One seed from its beginning to its end: build, change under faults, heal, judge, rest."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from tests.simulation import faults
from tests.simulation.centre import Centre
from tests.simulation.chaos import Chaos
from tests.simulation.laws import NO_EXCEPTION
from tests.simulation.model import ROOTS, TREE
from tests.simulation.oracle import Oracle
from tests.simulation.ports import HONEST, Ports
from tests.simulation.rolling import Rolling
from tests.simulation.signatures import REAL_EVERY, cheap_signatures
from tests.simulation.sizes import WIDE, Size
from tests.simulation.workload import Workload
from tests.simulation.world import CENTRE, LawBroken, World

SETTLE_SECONDS, SETTLE_STEP_MAX_SECONDS = 1500.0, 25.0
QUIET_SECONDS, QUIET_AFTER_SECONDS = 1200.0, 660.0


@dataclass
class Outcome:
    """What came of a seed: the digest of its trace, and the law it broke, if any."""

    seed: int
    size: str
    trace: str
    seconds: float
    law: str = ""
    what: str = ""
    faults: faults.Faults = faults.NO_FAULTS
    story: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.size}:{self.seed}"

    def __str__(self) -> str:
        if not self.law:
            return f"seed {self.name}: all laws hold (trace {self.trace})"
        again = f"again: make simulate SEED={self.name}"
        return f"seed {self.name} breaks {self.law}: {self.what}\n  trace {self.trace}; {again}"


class Run:
    """The parts of one run, wired together."""

    world_of: type[World] = World

    def __init__(
        self,
        seed: int | str,
        chosen: faults.Faults | None = None,
        size: Size = WIDE,
        *,
        traced: bool = False,
        story: bool = False,
        ports: Ports = HONEST,
    ) -> None:
        self.size = size
        drawn = faults.with_keys(
            size.draw(Random(f"faults {seed}")),
            Random(f"keys {seed}"),
            brief=size.draw is faults.draw_brief,
        )
        self.faults = chosen if chosen is not None else drawn
        self.world = self.world_of(seed, TREE, ROOTS, self.faults)
        self.world.traced, self.world.story = traced or story, [] if story else None
        self.world.ports = ports
        self.world.add(CENTRE, attached=False)
        self.centre = Centre(self.world)
        self.oracle = Oracle(self.world, self.centre)
        self.chaos = Chaos(self.world, self.centre, brief=size.brief)
        workload = Rolling if size.rolling else Workload
        self.workload = workload(self.world, self.centre, self.oracle, size)

    def close(self) -> None:
        """End all of it."""
        self.world.close()

    def build(self) -> None:
        """Let the tree be as it is before anything changes; no report is lost for good yet."""
        self.world.faults = replace(self.faults, report_loss=0.0)
        self.workload.build()
        self.settle()

    def live(self, *, rest: bool) -> None:
        """Change under faults, suffer faults alone, rest."""
        random, size = self.world.random, self.size
        for least, most in size.rounds:
            changes = random.randint(least, most) if most else 0
            self.chaos.start()
            for _ in range(changes):
                self.world.run(random.expovariate(1 / size.gap_seconds))
                self.workload.change()
            self.world.run(random.uniform(0, size.tail_seconds))
            self.chaos.stop()
            self.settle()
        if rest:
            self.rest()

    def settle(self) -> None:
        """Let the tree come to what is wanted; raises LawBroken if it does not."""
        until, step = self.world.now + SETTLE_SECONDS, self.size.settle_step_seconds
        while True:
            self.world.run(step)
            step = min(step * 2, SETTLE_STEP_MAX_SECONDS)
            try:
                self.judge_settled()
            except LawBroken:
                if self.world.now >= until:
                    raise
                self.mend()
            else:
                return

    def judge_settled(self) -> None:
        """Raise LawBroken unless all is as wanted."""
        self.oracle.settled()
        self.workload.judge_settled()

    def mend(self) -> None:
        """What people do about what is not as wanted yet: let go of what is held."""
        if self.centre.ready and self.centre.holds:
            self.centre.accept()

    def rest(self) -> None:
        """Without events there are no effects but hellos and the snapshot's renewal."""
        self.world.run(QUIET_AFTER_SECONDS)
        self.oracle.quiet = True
        self.world.run(QUIET_SECONDS)
        self.oracle.quiet = False
        self.oracle.settled(leftovers=True)


@contextmanager
def _collected_once() -> Iterator[None]:
    """Look for garbage when a life is over, which is all young: in it next to none comes to be."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)
        if was_on:
            gc.enable()


@_collected_once()
def run(
    seed: int,
    chosen: faults.Faults | None = None,
    *,
    size: Size = WIDE,
    story: bool = False,
    traced: bool = False,
    ports: Ports = HONEST,
) -> Outcome:
    """Run one seed; the outcome says which law it broke, if any."""
    with cheap_signatures(real=seed % REAL_EVERY == 0):
        one = Run(seed, chosen, size, traced=traced, story=story, ports=ports)
        law, what = broken_by(one.build)
        if not law:
            law, what = broken_by(partial(one.live, rest=seed % size.rest_every == 0))
        one.close()
    told = one.world.story or []
    return Outcome(seed, size.name, one.world.trace(), one.world.now, law, what, one.faults, told)


def broken_by(act: Callable[[], None]) -> tuple[str, str]:
    """The law that an act breaks, and how; empty if it breaks none."""
    try:
        act()
    except LawBroken as broken:
        return broken.law, str(broken)
    except Exception as error:  # noqa: BLE001
        # Whatever the core raises is a finding, too: the driver would end with it.
        return NO_EXCEPTION, "".join(traceback.format_exception(error)[-4:])
    return "", ""


def seeds_that_failed() -> Iterable[str]:
    """The seeds of seeds.txt: each broke a law once."""
    lines = (Path(__file__).parent / "seeds.txt").read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]
