"""A rollout without I/O: destinations that take what the gates admit them to, and a clock."""

import hashlib
import json

from controllers.core.rollout import layers
from controllers.core.rollout.decision import begin_run, decide
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.messages import with_message
from controllers.core.rollout.rejection import Wanted, rejection_of
from controllers.core.rollout.state import ChangeCause
from controllers.core.rollout.waves import labels_of
from relay.core.gates import Candidate, admit, arm_name
from relay.core.instant import Instant
from schemas.api.parsing import parse_kind
from schemas.api.rollout_status import RolloutStatus
from schemas.content.blobs import MANIFEST, Reference
from schemas.objects.objects import ObjectKey
from schemas.records.records import Profile, Source
from schemas.reports.reports import Count, Summary, cell
from schemas.values.identity import DestinationId, NodePath

WAVES = (
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}},
    {"name": "tenth", "percent": 10},
    {"name": "rest", "percent": 100},
)


OBJECT = ObjectKey("apps", "deployments", "shop", "web")


def content(name):
    return Reference(MANIFEST, hashlib.sha256(name.encode()).hexdigest(), 10)


V1, V2, V3, V4, V5, V6 = (content(f"v{number}") for number in range(1, 7))


def rollout(waves=WAVES, **spec):
    said = {"placement": {"name": "shop"}, "waves": list(waves), **spec}
    return parse_kind(
        {
            "apiVersion": "leafcast.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "shop"},
            "spec": said,
        }
    )


class Fleet:
    """Some destinations, the ledger's gates, and one rollout, which is decided at each `turn`.

    Everyone takes at once what it is admitted to, and is healthy, but for those in `states` and
    `health`.
    """

    def __init__(self, spec=None, size=100, canaries=10, before=V1):
        self.spec = (spec or rollout()).spec
        self.labels = {
            DestinationId(f"{number:032x}"): {"ring": "canary" if number < canaries else "main"}
            for number in range(size)
        }
        self.paths = {
            each: NodePath.parse(f"/{'emea' if at % 2 else 'apac'}/s{at}")
            for at, each in enumerate(self.labels)
        }
        self.gates = None
        if before is not None:
            self.gates = layers.gates_of(RolloutStatus(layers=(layers.base(1, before),)))
        self.target = before
        self.state = self.run = None
        self.seconds, self.wall_ms = 1000.0, 1_700_000_000_000
        self.states, self.health = {}, {}
        self.taken = {}
        self.broken = set()
        self.exact = True
        self.exceptions = ()
        self.facts = {}
        self.deltas = []
        self.request = ""
        self.wake = None
        self._asked = 0

    # Time.

    def turn(self, seconds=0.0):
        """Let time pass, decide, and issue what follows; then again until nothing changes."""
        self.seconds += seconds
        self.wall_ms += int(seconds * 1000)
        for _ in range(200):
            before = self.state, self.gates
            self.decide()
            self.issue()
            if before == (self.state, self.gates):
                return self.state
        raise AssertionError("it does not come to rest")

    def decide(self):
        now = Instant(self.seconds, self.wall_ms)
        if self.run is None:
            self.run = begin_run(self.state, now)
        decision = decide(self.spec, self.known(), self.state, self.run, now)
        self.state, self.run, self.wake = decision.state, decision.run, decision.wake

    def issue(self):
        gates = layers.gates_of(self.state)
        if gates and gates != self.gates:
            self.gates = gates
            self.deltas.append(gates)

    def restart(self, *, status=True, ledger=True):
        """The centre starts again; its monotonic clock is another one."""
        self.run = None
        self.seconds = 5.0
        if not status:
            self.state = None
        if not ledger:
            self.gates = None

    def ask(self, action, **fields):
        self._asked += 1
        self.request = json.dumps({"id": f"r{self._asked}", "action": action, **fields})
        self.turn()
        return self.state.request

    def want(self, target):
        self.target = target
        return self.turn()

    # What there is.

    def wanted(self):
        """Here a content is one object, which the rollout rejects whole or not at all."""
        over = rejection_of(self.state) if self.state is not None else None
        if over is None:
            return None if self.target is None else Wanted(self.target)
        if self.target == over.wish != over.target:
            return Wanted(over.target, over.wish, (OBJECT,), over)
        return Wanted(self.target, None, (), over)

    def known(self):
        return RolloutFacts(
            wanted=self.wanted(),
            change=ChangeCause("jane", "because"),
            gates=self.gates,
            count=self.count() if self.gates is not None else None,
            uid="uid-1",
            request=self.request,
            **{"members": self.admitted, "matches": self.matches, **self.facts},
        )

    def told(self):
        """The state with what it says of itself."""
        return with_message(self.spec, self.known(), self.state, "shop")

    def matches(self, wave):
        return self.admitted(wave.model_copy(update={"percent": None})) > 0

    def admitted(self, wave):
        """How many a wave's labels and share admit; nobody is at a Location."""
        _, selector = labels_of(wave)
        found = [each for each in self.labels.values() if not selector or selector.matches(each)]
        return 0 if wave.location_selector else len(found) * (wave.percent or 100) // 100

    def admission(self, destination):
        """What a destination makes of the gates at this hour, by what it took before."""
        source = Source("SyncTarget", "inventory", "", str(destination))
        labels, path = self.labels[destination], self.paths[destination]
        profile = Profile(source, 1, "", "", destination, path, labels, {}, {})
        taken = self.taken.setdefault(destination, set())
        found = admit(self.gates, Candidate(profile, lambda _: ()), taken, self.wall_ms)
        taken.add(arm_name(found.arm))
        taken &= {arm_name(gate.arm) for gate in self.gates}
        return found

    def arm(self, destination):
        return self.admission(destination).arm

    def having(self, arm):
        return {each for each in self.labels if self.arm(each) == arm}

    def count(self):
        cells = {}
        for destination in self.labels:
            found = self.admission(destination)
            if not found.wave:
                continue
            state = self.states.get(destination, "waiting" if found.awaits else "synced")
            bad = found.arm in self.broken
            health = self.health.get(destination, "degraded" if bad else "healthy")
            key = cell(found.wave, state, health)
            cells[key] = cells.get(key, 0) + 1
        states = {"synced": len(self.labels)}
        return Count(Summary(states, cells=cells, exceptions=self.exceptions), exact=self.exact)
