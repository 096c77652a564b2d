"""A life as a list of steps in the words of the domain, for Hypothesis to find and to shrink."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.ports import HONEST, Ports
from tests.simulation.run import Run, broken_by
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import Size
from tests.simulation.world import World

CHANGES = (
    "put",
    "edit",
    "regain",
    "move",
    "new_version",
    "select",
    "delete",
    "relabel",
    "relocate",
    "unlocate",
    "grow",
    "shrink",
    "move_target",
)
FAULTS = ("cut", "cut up", "cut down", "heal", "crash", "lose disk", "drift")
PASSING = ("a moment", "a second", "two minutes")
_SECONDS = {"a moment": 0.03, "a second": 1.0, "two minutes": 120.0}


STORY_LINES = 12
"""So much of what happened last is told of a life that broke a law."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens; `at` names the host it happens to, by its place, where that matters."""

    what: str
    at: int = 0

    def __repr__(self) -> str:
        return (
            f"Step({self.what!r}, at={self.at})" if self.what in FAULTS else f"Step({self.what!r})"
        )


@dataclass(frozen=True, slots=True)
class Life:
    """What came of a script: the law it broke, if any, and how; and what happened, in lines."""

    law: str
    what: str
    told: tuple[str, ...]


def live(
    size: Size,
    shape: int,
    steps: tuple[Step, ...],
    *,
    story: bool = False,
    ports: Ports = HONEST,
) -> Life:
    """Build a tree, take the steps, heal, and judge; with the end of the whole story, or not."""
    with cheap_signatures():
        one = Run(f"shape {shape}", NO_FAULTS, size, story=story, ports=ports)
        told: list[str] = []
        law, what = broken_by(lambda: _live(one, steps, told))
        one.close()
    last = (one.world.story or [])[-STORY_LINES:]
    return Life(law, what, (*told, *(f"    {line}" for line in last)))


def _live(one: Run, steps: tuple[Step, ...], told: list[str]) -> None:
    one.build()
    told.append(f"a tree of {', '.join(map(str, one.world.hosts))}, as it is wanted")
    for step in steps:
        told.append(f"{one.world.now:.2f} s: {_in_words(one.world, step)}")
        _take(one, step)
    one.world.heal_all()
    told.append(f"{one.world.now:.2f} s: all faults end")
    one.settle()


def _in_words(world: World, step: Step) -> str:
    if step.what in CHANGES:
        return f"users: {step.what.replace('_', ' ')}"
    return (
        f"{step.what} passes" if step.what in PASSING else f"{step.what} at {_at(world, step).path}"
    )


def _at(world: World, step: Step) -> Host:
    hosts = list(world.hosts.values())
    return hosts[step.at % len(hosts)]


def _take(one: Run, step: Step) -> None:
    world = one.world
    if step.what in CHANGES:
        one.workload.do(step.what)
    elif step.what in PASSING:
        world.run(_SECONDS[step.what])
    else:
        _suffer(world, _at(world, step), step)


def _suffer(world: World, host: Host, step: Step) -> None:
    match step.what:
        case "drift":
            if host.space.objects:
                host.space.drift(min(host.space.objects), delete=step.at % 2 == 0)
        case "crash" | "lose disk":
            if host.node is not None:
                host.armed = (step.what == "crash" or host.path.is_root, 0.5)
        case "heal":
            world.heal(host.path)
            world.heal_one_way(host.path)
        case "cut":
            if not host.path.is_root:
                world.cut(host.path)
        case _:
            if not host.path.is_root and not world.is_cut(host.path):
                world.cut_one_way(host.path, step.what.removeprefix("cut "))
