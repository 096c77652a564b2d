"""Lives in which the centre's own decision steers a placement, whatever befalls the tree."""

from __future__ import annotations

from controllers.core.rollout.state import reference
from schemas.api.rollout_status import RolloutStatus
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, GATES
from tests.simulation.model import Arm
from tests.simulation.run import Run
from tests.simulation.scenes import P1, A, B, contents, edges_of, region_of, require
from tests.simulation.steering import Steered

STEP_SECONDS = 0.5
WAVES = [
    {"name": "half", "percent": 50, "soak": "60s"},
    {"name": "more", "percent": 90, "maxConcurrent": "50%"},
    {"name": "rest", "percent": 100, "approval": "before"},
]


class Told:
    """A placement that its rollout steers, looked at as time goes on."""

    def __init__(self, one: Run) -> None:
        said = {"waves": WAVES, "offline": {"maximum": "60%"}}
        self._one, self._centre = one, one.centre
        self.steered = Steered(one.world, one.centre, P1, said)

    def go_on(self, seconds: float) -> None:
        """Look again and again, as counts come in."""
        for _ in range(int(seconds / STEP_SECONDS)):
            before = self.steered.state
            self._one.world.run(STEP_SECONDS)
            if before is not None and self._state.wave > before.wave > 0:
                self._look(before.wave - 1)

    def demand(self, phase: str, arm: Arm) -> None:
        state, said = self._state, self._state.message
        require(state.phase == phase, CONVERGENCE, f"{state.phase} ({said}), not {phase}")
        lacking = [str(host.path) for host in everyone(self._one) if not has(host, arm)]
        require(not lacking, CONVERGENCE, f"not at {lacking}")

    @property
    def _state(self) -> RolloutStatus:
        assert self.steered.state is not None
        return self.steered.state

    def _look(self, wave: int) -> None:
        """A wave that was passed is truly where it was let: at all whom one can reach, but few."""
        newest, passed = self._state.layers[0], self._state.waves[wave]
        arm = self._centre.arm_at(P1, reference(newest.manifest, newest.size))
        having = sum(has(host, arm) for host in everyone(self._one))
        said = (passed.members or 0) - (passed.unreachable or 0)
        require(having >= said, GATES, f"wave {wave} passed with {said}, and {having} have it")


def has(host: Host, arm: Arm) -> bool:
    """Whether an edge's space holds a content."""
    held = host.space.objects
    return all(held.get(k, ("",))[0] == form_of(c.reference, None) for k, c in arm.contents)


def everyone(one: Run) -> list[Host]:
    return [host for host in one.world.hosts.values() if host.attached]


def decided(one: Run) -> None:
    """By waves to its end: cut links, restarts of every node and of the centre hold up, no more."""
    told = Told(one)
    told.go_on(10)
    new = one.centre.arm(contents(one, A, B))
    told.steered.want(new)
    told.go_on(5)
    edge, region = edges_of(one)[0], region_of(one)
    one.world.cut(edge.path)
    told.go_on(20)
    one.world.cut(region.path)
    one.world.root.stop()
    one.world.root.start()
    told.go_on(200)
    one.world.heal(region.path)
    told.go_on(20)
    one.world.heal(edge.path)
    told.go_on(240)
    told.steered.ask("approve")
    told.go_on(240)
    told.demand("Complete", new)


def decided_and_given_up(one: Run) -> None:
    """An abort in mid-wave gives back what there was, also to who comes back later."""
    told = Told(one)
    told.go_on(10)
    old, new = one.centre.model.placements[P1].arm, one.centre.arm(contents(one, A, B))
    told.steered.want(new)
    told.go_on(3)
    edge = edges_of(one)[0]
    one.world.cut(edge.path)
    told.go_on(10)
    told.steered.ask("abort")
    told.go_on(10)
    one.world.heal(edge.path)
    told.go_on(240)
    told.demand("Aborted", old)


LIVES = (decided, decided_and_given_up)
