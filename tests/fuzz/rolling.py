"""What a Rollout may hold, whoever wrote it: its spec, its status, a request; and gates."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from controllers.core.rollout import layers
from controllers.core.rollout.decision import begin_run, decide
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.rollouts import Rollouts
from relay.core.instant import Instant
from schemas.api.rollout_request import read_rollout_request
from schemas.content.blobs import MANIFEST, Reference
from schemas.records.records import DeltaBody, Gate
from schemas.values.faults import Faulty
from schemas.values.identity import ContentHash, NodePath
from schemas.values.refusals import WireRefused
from schemas.values.wire import decode, encode
from tests.fuzz.target import Form, Target
from tests.unit.rollout_world import V1, V2, Fleet

REQUESTS = (
    {"id": "1", "action": "approve", "wave": "rest"},
    {"id": "2", "action": "undo", "revision": 1, "now": True},
    {"id": "3", "action": "pin", "path": "/emea", "revision": 1},
)
NOW = Instant(10.0, 1_700_000_000_000)


def steered(data: bytes) -> None:
    """An object: what it says of itself is believed, or it is as good as new."""
    try:
        form = json.loads(data)
    except (ValueError, RecursionError):
        return
    obj: dict[str, Any] = form if isinstance(form, dict) else {}
    rollouts = Rollouts()
    metadata = {"name": "shop"}
    waves = [{"name": "rest", "percent": 100}]
    spec = obj.get("spec", {"placement": {"name": "shop"}, "waves": waves})
    base = {"apiVersion": "leafcast.io/v1alpha1", "kind": "Rollout", "metadata": metadata}
    rollouts.put("shop", {**base, "spec": spec, "status": obj.get("status")})
    if "shop" not in rollouts.specs:
        return
    state = rollouts.stored_status("shop")
    if state is None:
        return
    target = Reference(MANIFEST, ContentHash(V2.address), 10)
    gates = layers.gates_of(state)
    facts = RolloutFacts(target, gates=gates or None, request=str(obj.get("request", "")))
    after = decide(rollouts.specs["shop"], facts, state, begin_run(state, NOW), NOW).state
    layers.gates_of(after)


def requested(data: bytes) -> None:
    """An annotation."""
    with suppress(Faulty):
        read_rollout_request(data.decode(errors="replace"))


def shown(data: bytes) -> None:
    """The gates of a delta."""
    try:
        body = decode(DeltaBody, data, name="body")
    except WireRefused:
        return
    assert len(layers.read_layers(body.gates)) <= len(body.gates)
    layers.read_freezes(body.gates)


def _objects() -> list[bytes]:
    fleet = Fleet()
    fleet.turn()
    fleet.exact = False
    fleet.want(V2)
    fleet.ask("freeze", path="/emea")
    fleet.ask("pin", path="/apac", revision=1)
    said = [{"status": fleet.state.to_mapping(), "request": json.dumps(it)} for it in REQUESTS]
    return [json.dumps(each).encode() for each in said]


def _bodies() -> list[bytes]:
    gates = (
        Gate(V1, path=NodePath.parse("/emea")),
        Gate(V2, 1000, "salt", name="2.0"),
        Gate(V1),
    )
    return [encode(DeltaBody((V1, V2), gates))]


TARGETS = {
    "steered": Target(steered, _objects, Form.JSON),
    "requested": Target(requested, lambda: [json.dumps(it).encode() for it in REQUESTS], Form.JSON),
    "shown": Target(shown, _bodies, Form.MSGPACK),
}
