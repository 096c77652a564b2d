"""The centre's rollouts steer a placement; what they let out is judged by counts seen beside.

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

from controllers.core.rollout import layers
from controllers.core.rollout.rejection import rejection_of
from controllers.core.rollout.state import changed, reference
from controllers.core.rollout.waves import EVERYONE
from relay.space_port import Object
from schemas.api.rollout_spec import RolloutSpec, Wave, seconds_of
from schemas.api.rollout_status import RolloutStatus, WaveStatus
from schemas.objects.objects import ObjectKey
from schemas.records.placements import bare_name, kind_of
from schemas.records.shares import share_of
from schemas.reports.reports import CELL_OTHER, Cell, Count
from schemas.values.identity import MailKey, NodePath
from tests.simulation.centre import Centre
from tests.simulation.laws import CONVERGENCE, KEPT_PLACES, TAKEN_BACK, WAVES
from tests.simulation.model import Arm, Placed, Target, placement_key
from tests.simulation.prescribed import arm_for, is_meant
from tests.simulation.world import LawBroken, World

GLIMPSE_SECONDS = 0.5
"""What was bad for less the centre may not have seen: it looks at counts in bursts."""
BACKWARDS = ("abort", "undo", "pin", "unpin", "freeze", "unfreeze")
"""What takes back what some destination had."""
ENDED = ("Complete", "Partial", "Aborted")
FOR_PEOPLE = ("AwaitingApproval", "Paused", "Held")
Said = Mapping[ObjectKey, str]
"""What objects are in clear."""


@dataclass
class Witness:
    """For how long the counts of an open gate were good, as far as they were seen."""

    gate: tuple[str, int] = ("", 0)
    good_seconds: float = 0.0
    at: float | None = None
    good: bool = False
    bad_since: float | None = None

    def saw(self, gate: tuple[str, int], *, good: bool | None, now: float) -> None:
        """The gate and whether it is good now; None if nobody can say."""
        if gate != self.gate:
            self.gate, self.good_seconds, self.at, self.bad_since = gate, 0.0, None, None
        if self.at is not None and self.good:
            self.good_seconds += now - self.at
        if good is False:
            self.bad_since = now if self.bad_since is None else self.bad_since
        elif self.bad_since is not None:
            bad_seconds, self.bad_since = now - self.bad_since, None
            unseen = bad_seconds < GLIMPSE_SECONDS
            self.good_seconds = self.good_seconds + bad_seconds if unseen else 0.0
        self.at, self.good = now, bool(good)

    def slept(self) -> None:
        """Nobody looked since."""
        self.at, self.good = None, False


@dataclass(eq=False)
class Steered:
    """One placement and its Rollout, as its object says it."""

    world: World
    centre: Centre
    name: str
    said: Object
    state: RolloutStatus | None = None
    # What the space wanted so far, the newest last.
    wishes: list[Arm] = field(default_factory=list)
    request: str = ""
    _requests: int = 0
    # Whether the space wants what it did before, or the Rollout lost what it kept.
    _goes_back: bool = False
    _witness: Witness = field(default_factory=Witness)
    _frozen: dict[str, dict[Target, Arm]] = field(default_factory=dict)
    # What was aborted or undone, as the space wants it still: addresses, "" of what is not there.
    _taken_back: dict[ObjectKey, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        placement = {"kind": kind_of(self.name).kind, "name": bare_name(self.name)}
        self.said = {**self.said, "placement": placement}
        self.spec = RolloutSpec.model_validate(self.said, by_alias=True)
        self.wishes.append(self.wish.arm)
        self.centre.steer(self.name, self, self.said)

    @property
    def key(self) -> MailKey:
        return placement_key(self.name)

    @property
    def placed(self) -> Placed:
        """What is in force."""
        return self.centre.model.placements[self.name]

    @property
    def wish(self) -> Placed:
        """What the space wants."""
        return self.centre.wishes[self.name]

    def want(self, arm: Arm) -> None:
        """The space wants another content."""
        self.centre.put_placement(self.name, Placed(self.wish.alternatives, arm))

    def ask(self, action: str, **arguments: object) -> None:
        """A person asks for something."""
        self._requests += 1
        self.request = json.dumps({"id": str(self._requests), "action": action, **arguments})
        self.centre.ask(self.name, self.said, self.request)

    def forget_status(self) -> None:
        """The Rollout's object says nothing of how far it is any more."""
        self._goes_back = True
        self.state = None
        self._frozen.clear()
        self.centre.relapse()
        self.centre.lose_status(self.name)

    # What the centre says of it.

    def wished(self) -> None:
        """What the space wants is another, perhaps."""
        arm = self.wish.arm
        said = _addresses(arm)
        if said == _addresses(self.wishes[-1]):
            return
        before = any(_addresses(former) == said for former in self.wishes)
        # Who kept what was aborted may go back.
        if before or (self.state is not None and rejection_of(self.state) is not None):
            self._goes_back = True
            self.centre.relapse()
        self.wishes.append(arm)
        self._still_taken_back()

    def slept(self) -> None:
        """The centre's process ended."""
        self._witness.slept()

    def look(self) -> None:
        """See what is counted now."""
        self._witnessed(self._count())

    def wrote(self, status: Object) -> None:
        """What was decided is about to be written down."""
        before = self.state
        self.look()
        self.state = RolloutStatus.model_validate(status, by_alias=True, by_name=False)
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
        self._keep_frozen(asked)

    def went_out(self) -> None:
        """What is in force of it is another."""
        if self.state is not None:
            self._require_kept_places()
            self.look()

    def _members(self, wave: Wave) -> int:
        """How many destinations of the placement a wave's labels and share admit."""
        model, placed = self.centre.model, self.placed
        meant = [at for at in model.targets.values() if is_meant(model, placed, at)]
        by = wave.selector
        found = [at for at in meant if by is None or by.matches(dict(at.labels))]
        return len(found) * (100 if wave.percent is None else wave.percent) // 100

    def _at(self, manifest: str, size: int) -> Said:
        """What the content says whose manifest lies there; nothing of none."""
        if not manifest:
            return {}
        return _addresses(self.centre.arm_at(self.name, reference(manifest, size)))

    def _take_back(self) -> None:
        """What the space wants of what was aborted or undone just now; nothing after a retry."""
        assert self.state is not None
        wish = self._at(self.state.wish, self.state.wish_size)
        former = self._at(self.state.target, self.state.target_size) if wish else {}
        keys = [key for key in {*wish, *former} if wish.get(key) != former.get(key)]
        self._taken_back = {key: wish.get(key, "") for key in keys}
        self._still_taken_back()

    def _still_taken_back(self) -> None:
        """What the space wants otherwise meanwhile is taken back no more."""
        wish = _addresses(self.wish.arm)
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
        newest = self.state.layers[0]
        begun = self._at(newest.manifest, newest.size)
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


def _addresses(arm: Arm) -> dict[ObjectKey, str]:
    return {key: content.reference.address for key, content in arm.contents}


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
