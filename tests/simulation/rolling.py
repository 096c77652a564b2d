"""What users do by rollouts: random waves that the centre's own decision steers, and commands."""

from __future__ import annotations

from typing import Any

from relay.space_port import Object
from tests.simulation.centre import Centre
from tests.simulation.model import LABELS, Arm
from tests.simulation.steering import Steered
from tests.simulation.workload import Workload

WAVES_MAX = 4
SHARES = ("0%", "34%", "100%")


class Rolling(Workload):
    """Users who bring every change of some placements by rollouts."""

    _centre: Centre
    _steered: dict[str, Steered]

    def build(self) -> None:
        super().build()
        self._steered = {}
        for name in self._rolled():
            spec = self._spec()
            self._world.note("user", f"{name} goes by {spec['waves']}")
            self._steered[name] = Steered(self._world, self._centre, name, spec)

    def judge_settled(self) -> None:
        for steered in self._steered.values():
            steered.require_ended()

    def _rolled(self) -> list[str]:
        """All placements but one, which may share objects with them."""
        names = sorted(self._centre.model.placements)
        return names[:1] if len(names) < 3 else names[:2]

    def _spec(self) -> Object:
        draw = self._random
        last = draw.choice((100, 100, 100, 60))
        shares = sorted(draw.sample(range(5, last, 5), draw.randint(0, WAVES_MAX - 1)))
        waves = [self._wave({"percent": share}) for share in (*shares, last)]
        if draw.random() < 0.5:
            key = draw.choice(list(LABELS))
            selector = {"matchLabels": {key: draw.choice(LABELS[key])}}
            whom = {"selector": selector, "allowEmpty": draw.random() < 0.3}
            waves.insert(draw.randint(0, len(waves) - 1), self._wave(whom))
        said: Object = {
            "waves": [{"name": f"w{at}", **wave} for at, wave in enumerate(waves)],
            "success": {"of": draw.choice(("healthy", "synced")), "minimum": "90%"},
            "failures": {"maximum": draw.choice((0, 1, "50%"))},
            "onFailure": draw.choice(("pause", "abort")),
            "offline": {"maximum": draw.choice(SHARES)},
        }
        if draw.random() < 0.3:
            said["deadline"] = "120s"
        return said

    def _wave(self, whom: dict[str, Any]) -> dict[str, Any]:
        draw, said = self._random, whom
        if draw.random() < 0.6:
            said["soak"] = draw.choice(("5s", "30s"))
        if draw.random() < 0.2:
            said["approval"] = draw.choice(("before", "after"))
        if draw.random() < 0.4:
            said["maxConcurrent"] = draw.choice((1, "50%"))
        return said

    def _acts(self) -> list:
        asked = [self._ask] * 4 + [self._pass] * 3
        return [*asked, self._begin, self._begin, self._begin, self._plain, *self._relapses()]

    def _relapses(self) -> list:
        kept = [self._keep_place] * 3
        back = [self._take_back] * 4
        return [*back, *kept, self._relabel, self._forget_status]

    def _some(self) -> Steered:
        return self._random.choice(list(self._steered.values()))

    def _begin(self) -> None:
        """Other versions of its objects, perhaps one more or less."""
        steered = self._some()
        keys = {key for key, _ in steered.wish.arm.contents}
        if self._random.random() < 0.3:
            keys = keys ^ {self._random.choice(self._objects)} or keys
        for key in sorted(keys):
            if self._random.random() < 0.7:
                self._latest[key] = self._centre.content(key.name)
        steered.want(self._arm(sorted(keys)))

    def _ask(self) -> None:
        self._some().ask(self._random.choice(("pause", "resume", "promote", "approve", "retry")))

    def _pass(self) -> None:
        """What waits for people goes on."""
        for steered in self._steered.values():
            phase = steered.state.phase if steered.state is not None else ""
            if phase == "AwaitingApproval":
                steered.ask("approve")
            elif phase in ("Paused", "Held"):
                steered.ask("resume")

    def _plain(self) -> None:
        """An object changes in its source: what is under no rollout says so at once."""
        key = self._random.choice(self._objects)
        self._latest[key] = self._centre.content(key.name)
        self._centre.put_object(key, self._latest[key])

    # What takes back.

    def _take_back(self) -> None:
        steered = self._some()
        if self._random.random() < 0.5:
            steered.ask("abort", keep=self._random.random() < 0.3)
        else:
            steered.ask("undo", now=self._random.random() < 0.3)
        steered.want(self._former(steered))

    def _former(self, steered: Steered) -> Arm:
        """What the space wants then: what it did, or what there was."""
        arms = steered.wishes
        return arms[-1] if self._random.random() < 0.5 else self._random.choice(arms)

    def _keep_place(self) -> None:
        steered, target = self._some(), self._some_target()
        if target is None or steered.state is None:
            return
        path = str(self._random.choice((target.path, target.path.parent)))
        action = self._random.choice(("pin", "unpin", "freeze", "unfreeze"))
        if action == "pin":
            number = self._random.choice(steered.state.history).number
            steered.ask("pin", path=path, revision=number)
        else:
            steered.ask(action, path=path)

    def _relabel(self) -> None:
        self._centre.relapse()
        super()._relabel()

    def _forget_status(self) -> None:
        if self._random.random() < 0.3:
            self._some().forget_status()
