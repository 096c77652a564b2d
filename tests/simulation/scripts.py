"""A life as a list of steps in the words of the domain, for Hypothesis to find and to shrink."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
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
    "canary",
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


@dataclass(frozen=True, slots=True)
class Step:
    """What happens; `at` names the host it happens to, by its place, where that matters."""

    what: str
    at: int = 0


def live(size: Size, shape: int, steps: tuple[Step, ...]) -> tuple[str, str]:
    """Build a tree, take the steps, heal, and judge: the law that was broken, and how."""
    with cheap_signatures():
        one = Run(f"shape {shape}", NO_FAULTS, size)
        return broken_by(lambda: _live(one, steps))


def _live(one: Run, steps: tuple[Step, ...]) -> None:
    one.build()
    for step in steps:
        _take(one, step)
    one.world.heal_all()
    one.settle()


def _take(one: Run, step: Step) -> None:
    world = one.world
    if step.what in CHANGES:
        one.workload.do(step.what)
        return
    if step.what in PASSING:
        world.run(_SECONDS[step.what])
        return
    hosts = list(world.hosts.values())
    _suffer(world, hosts[step.at % len(hosts)], step)


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
