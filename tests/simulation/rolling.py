"""What users do by rollouts: a test controller that steps gates at random, and people who abort.

It keeps layers as the real one does: a revision and the gates that were opened for it, newest
first. The oldest layer admits all.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from schemas.identity import NodePath
from schemas.records import BUCKETS
from tests.simulation.model import Arm, Placed, Rung
from tests.simulation.workload import Workload

LAYERS_MAX, RUNGS_MAX = 4, 4
PERCENT_STEPS = (500, 2500, 5000, 7500)


@dataclass
class Layer:
    """A revision, and the gates that were opened for it."""

    revision: int
    arm: Arm
    rungs: list[Rung] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The next wave."""
        return f"{self.revision}.{len(self.rungs)}"


@dataclass
class Rollout:
    """Of one placement: its layers, newest first, all contents it had, and what is pinned."""

    layers: list[Layer]
    history: list[Arm]
    pins: dict[NodePath, Arm] = field(default_factory=dict)
    revision: int = 1


class Rolling(Workload):
    """Users who bring every change of some placements by rollouts."""

    _rollouts: dict[str, Rollout]

    def build(self) -> None:
        super().build()
        self._rollouts = {}
        for name in self._rolled():
            placed = self._centre.model.placements[name]
            self._rollouts[name] = Rollout([Layer(1, placed.arm)], [placed.arm])
            self._say(name)

    def _rolled(self) -> list[str]:
        """All placements but one, which may share objects with them."""
        names = sorted(self._centre.model.placements)
        return names[:1] if len(names) < 3 else names[:2]

    def _acts(self) -> list:
        steps = [self._step] * 6
        return [*steps, self._begin, self._begin, self._finish, self._plain, *self._relapses()]

    def _relapses(self) -> list:
        return [self._abort, self._undo, self._pin, self._unpin, self._relabel]

    def _say(self, name: str) -> None:
        """The gates that follow from the layers."""
        rollout = self._rollouts[name]
        *newer, last = rollout.layers
        pins = [Rung(arm, path=path) for path, arm in rollout.pins.items()]
        rungs = [rung for layer in newer for rung in layer.rungs]
        placed = self._centre.model.placements[name]
        said = Placed(
            placed.alternatives,
            last.arm,
            salt=name,
            priority=placed.priority,
            rungs=(*pins, *rungs),
            wave=f"{last.revision}.9",
        )
        self._centre.put_placement(name, said)

    def _some_rollout(self) -> tuple[str, Rollout]:
        name = self._random.choice(list(self._rollouts))
        return name, self._rollouts[name]

    def _begin(self) -> None:
        """A new revision: other versions of its objects, perhaps one more or less."""
        name, rollout = self._some_rollout()
        keys = {key for key, _ in rollout.layers[0].arm.contents}
        if self._random.random() < 0.3:
            keys = keys ^ {self._random.choice(self._objects)} or keys
        for key in sorted(keys):
            if self._random.random() < 0.7:
                self._latest[key] = self._centre.content(key.name)
        self._supersede(name, self._arm(sorted(keys)))

    def _supersede(self, name: str, arm: Arm) -> None:
        """A content to come wave by wave, with the first of them open."""
        rollout = self._rollouts[name]
        if len(rollout.layers) >= LAYERS_MAX:
            return
        rollout.revision += 1
        rollout.history.append(arm)
        rollout.layers.insert(0, Layer(rollout.revision, arm))
        self._open(rollout)
        self._say(name)

    def _open(self, rollout: Rollout) -> None:
        """One more wave, or more of the one that is open."""
        layer = rollout.layers[0]
        last = layer.rungs[-1] if layer.rungs else None
        if last is not None and last.below < BUCKETS:
            wider = min(last.below + self._random.choice(PERCENT_STEPS), BUCKETS)
            layer.rungs[-1] = replace(last, below=wider)
        elif len(layer.rungs) < RUNGS_MAX:
            if self._random.random() < 0.5:
                rung = Rung(layer.arm, layer.name, selector=self._selector())
            else:
                below = self._random.choice(PERCENT_STEPS)
                rung = Rung(layer.arm, layer.name, below=below)
            layer.rungs.append(rung)

    def _step(self) -> None:
        name, rollout = self._some_rollout()
        if len(rollout.layers) > 1:
            self._open(rollout)
            self._say(name)

    def _finish(self) -> None:
        """The newest revision goes to all."""
        name, rollout = self._some_rollout()
        rollout.layers = [Layer(rollout.layers[0].revision, rollout.layers[0].arm)]
        self._say(name)

    def _plain(self) -> None:
        """An object changes in its source, and what is under no rollout says so at once."""
        key = self._random.choice(self._objects)
        self._latest[key] = self._centre.content(key.name)
        for name, placed in list(self._centre.model.placements.items()):
            keys = [k for k, _ in placed.arm.contents]
            if key in keys and name not in self._rollouts:
                self._centre.put_placement(name, replace(placed, arm=self._arm(keys)))
                self._oracle.model_changed()

    # What takes back.

    def _abort(self) -> None:
        name, rollout = self._some_rollout()
        if len(rollout.layers) > 1:
            self._centre.relapse()
            del rollout.layers[0]
            self._say(name)

    def _undo(self) -> None:
        name, rollout = self._some_rollout()
        self._centre.relapse()
        self._supersede(name, self._random.choice(rollout.history))

    def _pin(self) -> None:
        name, rollout = self._some_rollout()
        target = self._some_target()
        if target is not None:
            self._centre.relapse()
            path = self._random.choice((target.path, target.path.parent))
            rollout.pins[path] = self._random.choice(rollout.history)
            self._say(name)

    def _unpin(self) -> None:
        name, rollout = self._some_rollout()
        if rollout.pins:
            self._centre.relapse()
            rollout.pins.popitem()
            self._say(name)

    def _relabel(self) -> None:
        self._centre.relapse()
        super()._relabel()
