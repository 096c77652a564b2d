"""Trees for the page: one with something of all that may be amiss, and a hostile one."""

from typing import Any

from leafcast.doctor.findings import Check
from leafcast.ui.copies import CopySeen
from relay.adapters.clock import SystemClock
from schemas.objects.objects import ObjectKey
from tests.doubles.page_facts import (
    InventedFacts,
    condition,
    event,
    placement,
    rollout,
    traced,
    wave,
)
from tests.doubles.proofs import object_proof

PULL = ("deployments.apps/shop/web", "ImagePullBackOff: no image shop/web:2", 4, "/region-2/site-1")
HOLD = {
    "reason": "RolloutPaused",
    "message": 'rollout "billing": paused by a person',
    "since": "2026-11-15T06:00:00Z",
    "destinations": 80,
    "remedy": "leafcast rollout resume billing",
}
REVISION = {"number": 7, "time": "2026-11-20T10:00:00Z", "user": "ada", "cause": "web 2.1"}

WEB = ["apps", "deployments", "shop", "web"]
PLAN = {
    "reach": "1 placement, 3 destinations: 3 deletions",
    "centre": "at the centre: 1 created",
    "objects": {"shop/deployments.apps/web": "created"},
    "waves": ["edgeplacement/shop goes out in 2 waves: canary 1, rest 2"],
    "groups": [
        {
            "row": {"action": "delete", "key": WEB, "destination": "/region-1/site-1"},
            "count": 3,
            "why": "no longer selected",
        }
    ],
    "rows": 3,
    "all": 12,
    "notes": ["this deletes what holds data"],
}


def troubled_facts() -> InventedFacts:
    """Something of each kind of trouble, an hour old."""
    facts = InventedFacts(8, 5, 3)
    ago = SystemClock().now().wall_ms - 3_600_000
    _placements(facts, ago)
    _nodes(facts, ago)
    _rollouts(facts)
    request = {"path": "/region-7/site-9", "said": "till-9", "nkey": "UA" * 20, "askedMs": ago}
    facts.asking = [request]
    facts.held["placements"] = {"old-shop": "40 objects would go"}
    silent, ahead = "its parent hears nothing of it", "the clock of /region-2 is 3 s ahead"
    facts.found = [
        Check("Nodes", "failure", "/region-5 is silent", silent, "see its network", "/region-5"),
        Check("Clocks", "warning", ahead, "", "run chrony there", "/region-2"),
        Check("Disks", "ok", "all have room"),
    ]
    stop = explanation("not-healthy", "it is degraded", "leafcast describe deployment web", ago)
    facts.copies = CopySeen(rendered(deployment(3)), deployment(5), why=[stop])
    facts.plans = PLAN
    times = {"first_ms": ago, "last_ms": ago + 60_000}
    facts.happened = [
        event("Unreachable", "/region-5", "/region-5 is silent", warning=True, **times),
        event("Working", "edgeplacement/shop", "working at 106 of 120", **times | {"count": 4}),
    ]
    return facts


def explanation(
    stage: str, said: str, remedy: str, since_ms: int, placement: str = "edgeplacement/shop"
) -> dict[str, Any]:
    """As the verb `why` tells what stops a copy."""
    told = {"stage": stage, "said": said, "remedy": remedy, "at": "/region-1/site-1"}
    return {**told, "placement": placement, "sinceMs": since_ms}


def deployment(replicas: int, image: str = "shop/web:2") -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "web", "image": image}]}},
        },
    }


def rendered(obj: dict) -> dict:
    """What the verb `render` answers, of which one field is put in."""
    change = {"path": "spec.replicas", "before": 1, "after": 3, "source": "", "names": []}
    nothing = {"properties": {}, "taken_off": {}, "nulls": [], "unsaid": [], "notes": []}
    return {"object": obj, "changes": [{**change, "places": 1}], **nothing}


def _placements(facts: InventedFacts, ago: int) -> None:
    silent = {"path": "/region-5", "since_ms": ago, "state": "unreachable", "destinations": 6}
    ready = [condition("Synced"), condition("Healthy", "False", "Degraded", "4 are degraded")]
    few = {"synced": 110, "healthy": 106, "failing": 4, "unreachable": 6, "wrong": [PULL]}
    facts.listed = [
        placement("shop", 120, conditions=ready, silent=[silent], **few),
        placement("monitoring", 120, conditions=[condition("Synced"), condition("Healthy")]),
        placement("bindingpolicy/ingress", 40, synced=31, complete=False),
        placement("certificates", 0),
        placement("billing", 120, held=[HOLD]),
    ]
    what, why, count, where = PULL
    sample = {"severity": 0, "object": what, "reason": why, "count": count, "path": where}
    facts.tiers["/region-2"] = {"states": {"synced": 11, "failing": 4}, "exceptions": [sample]}


def _nodes(facts: InventedFacts, ago: int) -> None:
    away = {"state": "unreachable", "silent_since_ms": ago}
    facts.nodes = {
        "/": {"synced": 110, "healthy": 106, "failing": 4, "unreachable": 6},
        "/region-2": {"failing": 4, "degraded": 4, "healthy": 11},
        "/region-3": {"synced": 9, "healthy": 9, "complete": False},
        "/region-5": {**away, "unreachable": 6, "synced": 9},
        "/region-6": {"state": "stopped", "silent_since_ms": ago},
        "/region-2/site-1": {"failing": 3, "synced": 0, "healthy": 0},
    }


def _rollouts(facts: InventedFacts) -> None:
    done = wave("canary", "Done", 12)
    half = {"soaked": 1200, "failing": 3, "healthy": 37}
    soaking = wave("tenth", "Soaking", 40, definition={"soak": "1h"}, **half)
    rest = wave("rest", definition={"approval": "before"})
    asks = {"message": "wave rest needs approval", "next": "leafcast rollout approve billing rest"}
    at = {"wave": 2, "waveName": "tenth", "history": [REVISION]}
    waiting = [done, wave("rest", "AwaitingApproval", 80)]
    facts.steering = [
        rollout("shop", "Soaking", [done, soaking, rest], **at),
        rollout("billing", "AwaitingApproval", waiting, wave=2, waveName="rest", **asks),
    ]


def hostile_facts(text: str) -> InventedFacts:
    """A tree whose every string that somebody else says is this text."""
    facts = InventedFacts(3, 2, 1)
    held = {"reason": text, "message": text, "remedy": text, "since": text}
    amiss = {"unreturned": [text], "blocking": [text], "wrong": [(text, text, 1, text)]}
    said = {"conditions": [condition(text, text, text, text)], "problem": text, "held": [held]}
    facts.listed = [placement("shop", 6, synced=5, failing=1, **said, **amiss)]
    sample = {"severity": 0, "object": text, "reason": text, "count": 1, "path": text}
    tier = {"states": {text: 1}, "health": {text: 1}, "state": text, "wave": text}
    for path in ("/region-1", "/region-1/site-1", "/region-1/site-1/edge-1"):
        facts.tiers[path] = {**tier, "exceptions": [sample]}
    node = {"state": text, "sync_target": text, "lag": 1, "role": text}
    worked_at = {"maintenance_until_ms": 4_000_000_000_000, "maintenance_reason": text}
    facts.nodes["/region-1"] = {**node, **worked_at}
    step = wave(text, text, 3, gate=text, reason=text, definition={"soak": text, "approval": text})
    past = {"number": 1, "time": text, "user": text, "cause": text, "outcome": text}
    facts.steering = [
        rollout("shop", text, [step], wave=1, message=text, next=text, history=[past])
    ]
    facts.happened = [event(text, text, text, node=text)]
    facts.asking = [{"path": text, "said": text, "nkey": text, "askedMs": 1}]
    facts.held = {"placements": {text: text}, "inventory": {text: text}, "spaces": {text: text}}
    facts.held["ledger"] = text
    meant, live = rendered(deployment(3, text)), deployment(5, text)
    stop = explanation("refused", text, text, 1, placement=text)
    facts.copies = CopySeen(meant, live, text, text, [stop])
    facts.object_proofs = object_proof(about=ObjectKey("", text, text, text))
    row = {"action": text, "key": ["", text, text, text], "destination": text}
    group = {"row": row, "count": 2, "why": text}
    words: dict[str, Any] = {
        "reach": text,
        "centre": text,
        "objects": {text: text},
        "waves": [text],
    }
    facts.plans = {**words, "groups": [group], "rows": 2, "all": 2, "notes": [text]}
    facts.found = [Check(text, "failure", text, text, text, text), Check(text, "ok", text)]
    facts.traced = {**traced(gap=text, path=text, waits=text), "placement": text, "traceId": text}
    return facts
