"""Lives in which the centre's own decision steers a placement, whatever befalls the tree."""

from __future__ import annotations

from controllers.core.rollout import layers
from controllers.core.rollout.decide import Run as Known
from controllers.core.rollout.decide import begin_run, decide
from controllers.core.rollout.facts import Facts
from relay.core.events import Instant
from schemas.api import RolloutSpec, RolloutStatus
from schemas.content.blobs import Reference
from schemas.records import Gate
from schemas.reports import Count
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, GATES
from tests.simulation.model import Arm, Placed, Rung, placement_key
from tests.simulation.run import Run
from tests.simulation.scenes import EVERYWHERE, A, B, contents, edges_of, put, region_of, require
from tests.simulation.world import WALL_MS

NAME, STEP_SECONDS, SOAK_SECONDS = "p1", 0.5, 60.0
WAVES = [
    {"name": "half", "percent": 50, "soak": "60s"},
    {"name": "more", "percent": 90, "maxConcurrent": "50%"},
    {"name": "rest", "percent": 100, "approval": "before"},
]


class Steered:
    """One placement, its rollout, and the gates that the ledger has."""

    def __init__(self, one: Run, seed_salt: str) -> None:
        self._one = one
        self._spec = RolloutSpec.model_validate(
            {"placement": {"name": NAME}, "waves": WAVES, "offline": {"maximum": "60%"}},
            by_alias=True,
        )
        first = one.centre.model.placements[NAME].arm
        self._arms: dict[Reference, Arm] = {first.root: first}
        self._target = first.root
        self._gates: tuple[Gate, ...] = (Gate(first.root),)
        self._salt = seed_salt
        self.state: RolloutStatus | None = None
        self._known: Known | None = None
        self.request = ""
        self._say()

    def want(self, arm: Arm) -> None:
        """The space wants another content."""
        self._arms[arm.root] = arm
        self._target = arm.root

    def ask(self, mark: str, action: str) -> None:
        self.request = f'{{"id": "{mark}", "action": "{action}"}}'

    def restart(self) -> None:
        """The centre begins a new run; what is written down stays."""
        self._known = None

    def go_on(self, seconds: float) -> None:
        """Decide again and again, as counts come in."""
        for _ in range(int(seconds / STEP_SECONDS)):
            self._one.world.run(STEP_SECONDS)
            self._decide()

    def _decide(self) -> None:
        one = self._one
        now = Instant(one.world.now, WALL_MS + int(one.world.now * 1000))
        known = self._known or begin_run(self.state, now)
        facts = Facts(
            target=self._target,
            gates=self._gates,
            count=self._count(),
            uid=self._salt,
            request=self.request,
        )
        before = self.state.wave if self.state is not None else 0
        decision = decide(self._spec, facts, self.state, known, now)
        if decision.state.wave > before > 0:
            self._look(before - 1)
        self.state, self._known = decision.state, decision.run
        if layers.gates_of(self.state) != self._gates:
            self._gates = layers.gates_of(self.state)
            self._say()

    def _count(self) -> Count | None:
        root = self._one.world.root
        if root.node is None:
            return None
        key = placement_key(NAME)
        found = self._one.world.ports.count(root, key, root.node.count(key))
        held = root.node.records.get(key)
        fresh = held is not None and held.record.generation == found.generation
        return found if fresh else None

    def _say(self) -> None:
        """The gates as the model has them, in force from now on."""
        *newer, last = self._gates
        rungs = tuple(
            Rung(self._arms[gate.arm], gate.name, gate.below, gate.selector, gate.path)
            for gate in newer
            if gate.arm is not None
        )
        assert last.arm is not None
        wave = last.name or "0.9"
        placed = Placed(EVERYWHERE, self._arms[last.arm], salt=self._salt, rungs=rungs, wave=wave)
        put(self._one, NAME, placed)

    def _look(self, wave: int) -> None:
        """A wave that was passed is truly where it was let: at all whom one can reach, but few."""
        assert self.state is not None
        newest = self.state.layers[0].manifest
        arm = next(arm for root, arm in self._arms.items() if root.address == newest)
        having = sum(has(host, arm) for host in everyone(self._one))
        said = (self.state.waves[wave].members or 0) - (self.state.waves[wave].unreachable or 0)
        require(having >= said, GATES, f"wave {wave} passed with {said}, and {having} have it")


def has(host: Host, arm: Arm) -> bool:
    """Whether an edge's space holds a content."""
    held = host.space.objects
    return all(held.get(k, ("",))[0] == form_of(c.reference, None) for k, c in arm.contents)


def everyone(one: Run) -> list[Host]:
    return [host for host in one.world.hosts.values() if host.attached]


def _demand(one: Run, steered: Steered, phase: str, arm: Arm) -> None:
    state = steered.state
    assert state is not None
    require(state.phase == phase, CONVERGENCE, f"{state.phase} ({state.message}), not {phase}")
    lacking = [str(host.path) for host in everyone(one) if not has(host, arm)]
    require(not lacking, CONVERGENCE, f"not at {lacking}")


def decided(one: Run) -> None:
    """By waves to its end: cut links, restarts of every node and of the centre hold up, no more."""
    steered = Steered(one, "salt")
    steered.go_on(10)
    new = one.centre.arm(contents(one, A, B))
    steered.want(new)
    steered.go_on(5)
    edge, region = edges_of(one)[0], region_of(one)
    one.world.cut(edge.path)
    steered.go_on(20)
    one.world.cut(region.path)
    steered.restart()
    steered.go_on(200)
    one.world.heal(region.path)
    steered.go_on(20)
    one.world.heal(edge.path)
    steered.go_on(240)
    steered.ask("1", "approve")
    steered.go_on(240)
    _demand(one, steered, "Complete", new)


def decided_and_given_up(one: Run) -> None:
    """An abort in mid-wave gives back what there was, also to who comes back later."""
    steered = Steered(one, "salt")
    steered.go_on(10)
    old, new = one.centre.model.placements[NAME].arm, one.centre.arm(contents(one, A, B))
    steered.want(new)
    steered.go_on(3)
    edge = edges_of(one)[0]
    one.world.cut(edge.path)
    steered.go_on(10)
    one.centre.relapse()
    steered.ask("1", "abort")
    steered.go_on(10)
    one.world.heal(edge.path)
    steered.go_on(240)
    _demand(one, steered, "Aborted", old)


LIVES = (decided, decided_and_given_up)
