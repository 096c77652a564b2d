"""The centre's own decision steers a placement; what it lets out is judged by counts seen beside.

| law | what is asked |
| --- | --- |
| A wave opens once the one before is good | exact counts, for its soak, within limits, by someone |
| What was aborted or undone stays back | object by object, until it changes or a person says so |
| Pins and freezes hold | a place has the revision it is pinned to, or what it had |
| Each rollout ends, or says what it waits for | when faults stop |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from controllers.core.rollout import layers, rejection
from controllers.core.rollout.decision import Run as Known
from controllers.core.rollout.decision import begin_run, decide
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.messages import with_message
from controllers.core.rollout.rejection import Rejection, Wanted, rejection_of
from controllers.core.rollout.state import changed
from controllers.core.rollout.waves import EVERYONE
from relay.core.instant import Instant
from schemas.api.rollout_spec import RolloutSpec, Wave, seconds_of
from schemas.api.rollout_status import RolloutStatus, WaveStatus
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.records.records import Gate
from schemas.records.shares import share_of
from schemas.reports.reports import CELL_OTHER, Cell, Count
from schemas.values.identity import MailKey, NodePath
from tests.simulation.centre import Centre
from tests.simulation.laws import CONVERGENCE, KEPT_PLACES, TAKEN_BACK, WAVES
from tests.simulation.model import Arm, Content, Placed, Rung, Target, placement_key
from tests.simulation.oracle import Oracle
from tests.simulation.prescribed import arm_for, is_meant
from tests.simulation.world import WALL_MS, LawBroken, World

LOOK_SECONDS = 1.0
"""How often it is seen whether a count is another."""
BACKWARDS = ("abort", "undo", "pin", "unpin", "freeze", "unfreeze")
"""What takes back what some destination had."""
ENDED = ("Complete", "Partial", "Aborted")
FOR_PEOPLE = ("AwaitingApproval", "Paused", "Held")
NO_GATE = "0.9"
"""What they are counted as whom no wave admits."""


@dataclass
class Witness:
    """For how long the counts of an open gate were good, as far as they were seen."""

    gate: tuple[str, int] = ("", 0)
    good_seconds: float = 0.0
    at: float | None = None
    good: bool = False

    def saw(self, gate: tuple[str, int], *, good: bool | None, now: float) -> None:
        """The gate and whether it is good now; None if nobody can say."""
        if gate != self.gate:
            self.gate, self.good_seconds, self.at = gate, 0.0, None
        if self.at is not None and self.good:
            self.good_seconds += now - self.at
        if good is False:
            self.good_seconds = 0.0
        self.at, self.good = now, bool(good)

    def slept(self) -> None:
        """Nobody looked since."""
        self.at, self.good = None, False


@dataclass
class Steered:
    """One placement, its rollout, and the gates that the ledger has of it."""

    world: World
    centre: Centre
    oracle: Oracle
    name: str
    spec: RolloutSpec
    state: RolloutStatus | None = None
    request: str = ""
    arms: dict[str, Arm] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    _target: Reference | None = None
    _known: Known | None = None
    _term: str = ""
    _seen: tuple[object, ...] = ()
    _wake_at: float = 0.0
    _requests: int = 0
    # Whether the space wants what it did before, or the Rollout lost what it kept.
    _goes_back: bool = False
    _witness: Witness = field(default_factory=Witness)
    _frozen: dict[str, dict[Target, Arm]] = field(default_factory=dict)
    # What the ledger remembers as rejected.
    _rejection: Rejection | None = None
    # What was aborted or undone, as the space wants it still: addresses, "" of what is not there.
    _taken_back: dict[ObjectKey, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.want(self.placed.arm)
        self.gates = (Gate(self.placed.arm.root),)
        self._say()

    @property
    def key(self) -> MailKey:
        return placement_key(self.name)

    @property
    def placed(self) -> Placed:
        return self.centre.model.placements[self.name]

    def want(self, arm: Arm) -> None:
        """The space wants another content."""
        self._goes_back = arm.root.address in self.arms
        self.arms[arm.root.address] = arm
        self._target = arm.root
        self._still_taken_back()

    def ask(self, action: str, **arguments: object) -> None:
        """A person asks for something."""
        self._requests += 1
        self.request = json.dumps({"id": str(self._requests), "action": action, **arguments})

    def forget_status(self) -> None:
        """The Rollout's object says nothing of how far it is any more."""
        self._goes_back = True
        self.state, self._known, self._seen = None, None, ()
        self._frozen.clear()

    def follow(self) -> None:
        """Look from time to time, from now on."""
        self.look()
        self.world.after(LOOK_SECONDS, self.follow)

    def look(self) -> None:
        """Decide, as the centre does: if what it goes by is other than it was, or it is time."""
        if not self.centre.ready:
            self._term = ""
            return
        if self._term != self.centre.terms[-1]:
            self._term, self._known, self._seen = self.centre.terms[-1], None, ()
            self._witness.slept()
        honest = self._count()
        self._witnessed(honest)
        count = (
            None if honest is None else self.world.ports.count(self.world.root, self.key, honest)
        )
        seen = (count, self.request, self._target, self.gates)
        if seen != self._seen or self.world.now >= self._wake_at:
            self._seen = seen
            self._decide(count)

    def _decide(self, count: Count | None) -> None:
        now = Instant(self.world.now, WALL_MS + int(self.world.now * 1000))
        facts = RolloutFacts(
            wanted=self._wanted(),
            rejection=self._rejection,
            gates=self.gates,
            count=count,
            uid=self.name,
            request=self.request,
            members=self._members,
            matches=lambda wave: self._members(changed(wave, percent=None)) > 0,
            is_place=lambda path: any(
                NodePath.parse(path).holds(known) for known in self.centre.model.nodes
            ),
        )
        before = self.state
        decision = decide(self.spec, facts, before, self._known or begin_run(before, now), now)
        self.state, self._known = (
            with_message(self.spec, facts, decision.state, self.name),
            decision.run,
        )
        self._wake_at = self.world.now + (1e9 if decision.wake is None else decision.wake)
        asked = self._handled(before)
        given_up = _phase(before) != self.state.phase == "Aborted"
        if asked in BACKWARDS or given_up or self._goes_back:
            self.centre.relapse()
            self._goes_back = False
        if asked in ("abort", "undo", "retry") or given_up:
            self._take_back()
        if not asked:
            self._require_good(before)
            self._require_taken_back(before)
        self._rejection = rejection_of(self.state)
        gates = layers.gates_of(self.state)
        if gates != self.gates:
            self.gates = gates
            self._say()
        self._keep_frozen(asked)
        self._require_kept_places()

    def _wanted(self) -> Wanted | None:
        """What is to go out of what the space wants."""
        over = rejection_of(self.state) if self.state is not None else None
        if self._target is None or over is None:
            return None if self._target is None else Wanted(self._target)
        wish, target = self._contents(self._target.address), self._contents(over.target.address)
        left = rejection.still_rejected(
            _addresses(wish),
            _addresses(self._contents(over.wish.address)),
            _addresses(target),
            lambda _keys: frozenset(),
        )
        if not left:
            return Wanted(self._target, over=over)
        # Who kept what was aborted may go back.
        self._goes_back = self._goes_back or self._target != over.wish
        kept = {key: content for key, content in target.items() if key in left}
        merged = kept | {key: content for key, content in wish.items() if key not in left}
        arm = self.centre.arm(merged)
        self.arms[arm.root.address] = arm
        return Wanted(arm.root, self._target, tuple(sorted(left)), over)

    def _members(self, wave: Wave) -> int:
        """How many destinations of the placement a wave's labels and share admit."""
        model, placed = self.centre.model, self.placed
        meant = [at for at in model.targets.values() if is_meant(model, placed, at)]
        by = wave.selector
        found = [at for at in meant if by is None or by.matches(dict(at.labels))]
        return len(found) * (100 if wave.percent is None else wave.percent) // 100

    def _contents(self, address: str) -> dict[ObjectKey, Content]:
        arm = self.arms.get(address)
        return dict(arm.contents) if arm is not None else {}

    def _take_back(self) -> None:
        """What the space wants of what was aborted or undone just now; nothing after a retry."""
        assert self.state is not None
        wish = _addresses(self._contents(self.state.wish))
        former = _addresses(self._contents(self.state.target)) if wish else {}
        keys = [key for key in {*wish, *former} if wish.get(key) != former.get(key)]
        self._taken_back = {key: wish.get(key, "") for key in keys}
        self._still_taken_back()

    def _still_taken_back(self) -> None:
        """What the space wants otherwise meanwhile is taken back no more."""
        assert self._target is not None
        wish = _addresses(self._contents(self._target.address))
        known = self._taken_back.items()
        self._taken_back = {key: said for key, said in known if wish.get(key, "") == said}

    def _handled(self, before: RolloutStatus | None) -> str:
        """What was asked and done just now; "" if nothing."""
        assert self.state is not None
        request = self.state.request
        if request is None or before is None or request == before.request:
            return ""
        return request.action if request.outcome == "Done" else ""

    def _count(self) -> Count | None:
        """What is counted of the very delta that the ledger has."""
        node = self.world.root.node
        assert node is not None
        held = node.records.get(self.key)
        if held is None:
            return None
        found = node.count(self.key)
        return found if held.record.generation == found.generation else None

    def _say(self) -> None:
        """The gates as the model has them, in force from now on."""
        *newer, last = self.gates
        rungs = tuple(
            Rung(self._arm(gate), gate.name, gate.below, gate.selector, gate.path) for gate in newer
        )
        placed = Placed(
            self.placed.alternatives,
            self._arm(last),
            salt=self.name,
            rungs=rungs,
            wave=last.name or NO_GATE,
        )
        self.oracle.model_changed()
        self.centre.put_placement(self.name, placed)
        self.oracle.model_changed()

    def _arm(self, gate: Gate) -> Arm:
        assert gate.arm is not None
        return self.arms[gate.arm.address]

    # The laws.

    def _witnessed(self, count: Count | None) -> None:
        """What the count says of the gate that is open furthest."""
        newest = _newest(self.state)
        if newest is None:
            return
        name, below, wave = newest
        good = None
        if count is not None and count.exact and CELL_OTHER not in count.summary.cells:
            good = is_good(self.spec, count.summary.cells, name)
        assert wave is not None
        self._witness.saw((name, below), good=good, now=self.world.now)

    def _require_good(self, before: RolloutStatus | None) -> None:
        """What opens by itself does so after the present gate was good for its soak."""
        assert self.state is not None
        now, former = _newest(self.state), _newest(before)
        if now is None or now[:2] == (former or ("", 0))[:2]:
            return
        revision = self.state.revision
        if before is None or former is None or before.revision != revision:
            if layers.wave_of(now[0]) and before is not None:
                raise LawBroken(WAVES, f"{self.name}: revision {revision} begins with {now[0]}")
            return
        if not self._witness.good:
            raise LawBroken(WAVES, f"{self.name}: {now[:2]} opens, and {former[:2]} is not good")
        if now[0] == former[0]:
            return
        # As it is counted now: who was pinned meanwhile is no member any more.
        wave = self.state.waves[layers.wave_of(former[0])]
        soak = seconds_of(wave.definition.soak) or 0.0
        if wave.members and self._witness.good_seconds < soak:
            what = f"{former[0]} was good for {self._witness.good_seconds:.0f} of {soak:.0f} s"
            raise LawBroken(WAVES, f"{self.name}: {now[0]} opens, and {what}")
        self._require_tried(wave)
        if layers.wave_of(now[0]) != layers.wave_of(former[0]) + 1:
            raise LawBroken(WAVES, f"{self.name}: {now[0]} opens after {former[0]}")

    def _require_tried(self, wave: WaveStatus) -> None:
        """A wave whose labels nobody has is passed by no rollout that was not told to."""
        told = wave.definition.allow_empty or wave.approved_after or wave.phase == "Promoted"
        if wave.members or told or wave.definition.selector is None:
            return
        if self._members(EVERYONE) and not self._members(changed(wave.definition, percent=None)):
            raise LawBroken(WAVES, f"{self.name}: {wave.name} is of nobody, and is passed")

    def _require_taken_back(self, before: RolloutStatus | None) -> None:
        """What begins by itself has nothing that was aborted or undone and did not change."""
        assert self.state is not None
        if before is None or self.state.revision <= before.revision:
            return
        begun = _addresses(self._contents(self.state.layers[0].manifest))
        for key, said in self._taken_back.items():
            if begun.get(key, "") == said:
                raise LawBroken(TAKEN_BACK, f"{self.name}: {key} goes out again")

    def _keep_frozen(self, asked: str) -> None:
        """What those have who are frozen just now; and who is so no more."""
        assert self.state is not None
        if asked == "freeze":
            path = json.loads(self.request)["path"]
            held = NodePath.parse(path)
            targets = self.centre.model.targets.values()
            there = {at: arm_for(self.placed, at) for at in targets if held.holds(at.path)}
            self._frozen[path] = there
        known = {freeze.path for freeze in self.state.freezes}
        self._frozen = {path: it for path, it in self._frozen.items() if path in known}

    def _require_kept_places(self) -> None:
        assert self.state is not None
        known = {item.number: item.manifest for item in self.state.history}
        pins = {NodePath.parse(pin.path): known[pin.revision] for pin in self.state.pins}
        for target in self.centre.model.targets.values():
            pinned = [path for path in pins if path.holds(target.path)]
            arm = arm_for(self.placed, target).root.address
            if pinned:
                deepest = max(pinned, key=lambda path: len(path.names))
                if arm != pins[deepest]:
                    raise LawBroken(KEPT_PLACES, f"{target.path} is not as {deepest} is pinned")
                continue
            for path, there in self._frozen.items():
                if target in there and arm != there[target].root.address:
                    raise LawBroken(KEPT_PLACES, f"{target.path} changes, and {path} is frozen")

    def require_ended(self) -> None:
        """It ended, or waits for people, or for members that are not good; and says so."""
        state = self.state
        if state is None:
            raise LawBroken(CONVERGENCE, f"{self.name}: nothing was decided")
        if state.phase in ENDED:
            return
        if not state.message:
            raise LawBroken(CONVERGENCE, f"{self.name} is {state.phase}, and does not say why")
        if state.phase not in FOR_PEOPLE and self._witness.good:
            raise LawBroken(CONVERGENCE, f"{self.name} is {state.phase}: {state.message}")


def _addresses(contents: Mapping[ObjectKey, Content]) -> dict[ObjectKey, str]:
    """What objects are in clear."""
    return {key: content.reference.address for key, content in contents.items()}


def _phase(state: RolloutStatus | None) -> str:
    return state.phase if state is not None else ""


def _newest(state: RolloutStatus | None) -> tuple[str, int, WaveStatus] | None:
    """The gate of the newest revision that was opened last, how far, and its wave."""
    if state is None or not state.waves or state.layers[0].revision != state.revision:
        return None
    gates = {gate.name: gate for gate in state.layers[0].gates if gate.name}
    if not gates:
        return None
    name = max(gates, key=layers.wave_of)
    return name, gates[name].below, state.waves[layers.wave_of(name)]


def is_good(spec: RolloutSpec, cells: Mapping[str, int], gate: str) -> bool:
    """Whether the members of a gate are as the spec wants them, in the words of the docs."""
    count = dict.fromkeys(("members", "good", "failing", "away"), 0)
    for text, number in cells.items():
        cell = Cell.parse(text)
        if cell is None or cell.gate != gate or cell.state in ("leaving", "never joined"):
            continue
        synced = cell.state == "synced"
        count["members"] += number
        count["away"] += number * (cell.state == "unreachable")
        healthy = spec.success.of == "synced" or cell.health == "healthy"
        count["good"] += number * (synced and healthy)
        degraded = spec.success.of == "healthy" and synced and cell.health == "degraded"
        count["failing"] += number * (cell.state in ("failing", "frozen") or degraded)
    members, away = count["members"], count["away"]
    if not members:
        return True
    most = spec.failures.maximum
    limit = share_of(most) * members if isinstance(most, str) else Decimal(most)
    if count["failing"] >= spec.failures.at_least and count["failing"] > limit:
        return False
    if away > share_of(spec.offline.maximum) * members or away == members:
        return False
    return count["good"] >= share_of(spec.success.minimum) * (members - away)
