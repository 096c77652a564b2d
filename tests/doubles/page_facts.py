"""Facts of a tree that nobody runs, of any size, as the page's one port for facts gives them."""

from dataclasses import replace
from typing import Any

from leafcast.ask.failures import CallFailed
from leafcast.ask.tree_rank import worst_nodes_first
from leafcast.daemon.carried_objects import carried_form
from leafcast.doctor.findings import Check
from leafcast.proofs import Proof, check_proof
from leafcast.ui.copies import CopySeen
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.doubles.proofs import SEALING, object_proof, signed_proof

NOW_MS = 1_800_000_000_000
PAGE = 200
WEB_KEY = ObjectKey("apps", "deployments", "shop", "web")
Form = dict[str, Any]


def counts(
    whole: int, *, synced: int | None = None, healthy: int | None = None, wrong=(), **more
) -> Form:
    """What a status says of so many destinations; all are well unless something else is said."""
    synced = whole if synced is None else synced
    healthy = synced if healthy is None else healthy
    states = {"synced": synced, **{it: more.pop(it, 0) for it in ("failing", "unreachable")}}
    states["pending"] = whole - sum(states.values())
    degraded = more.pop("degraded", 0)
    health = {"healthy": healthy, "degraded": degraded, "unknown": whole - healthy - degraded}
    return {
        "destinations": whole,
        "never_joined": 0,
        "maintained": 0,
        "states": {word: count for word, count in states.items() if count},
        "health": {word: count for word, count in health.items() if count},
        "complete": True,
        "blocking": [],
        "exceptions": [
            {"severity": 0, "object": what, "reason": why, "count": count, "path": path}
            for what, why, count, path in wrong
        ],
        **more,
    }


def placement(name: str, whole: int = 6, **more) -> Form:
    form = {
        "name": name,
        "selected": 7,
        "problem": "",
        "lack": "",
        "held": [],
        "keptBack": 0,
        "conditions": [],
    }
    silent = more.pop("silent", [])
    own = {it: more.pop(it) for it in tuple(more) if it in form}
    return {**form, **own, **counts(whole, **more), "unreachable": silent}


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Form:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2027-01-15T07:50:00Z",
    }


def node(path: str, edges: int = 1, *, children: int = 0, **more) -> Form:
    form = {
        "path": path,
        "role": "relay" if children else "edge",
        "state": "up",
        "silent_since_ms": None,
        "sync_target": "" if children else path.strip("/").replace("/", "-"),
        "edges": edges,
        "children": children,
        "destinations": edges,
        "synced": edges,
        "healthy": edges,
        "failing": 0,
        "degraded": 0,
        "unreachable": 0,
        "complete": True,
        "lag": 0,
        "objects_applied": None if children else 7,
        "maintenance_until_ms": 0,
        "maintenance_reason": "",
    }
    return {**form, **more}


def tier_node(path: str, whole: int, *, role: str = "relay", **more) -> Form:
    own: Form = {it: more.pop(it) for it in ("state", "silent_since_ms", "wave") if it in more}
    form: Form = {"path": path, "role": role, "state": "up", "silent_since_ms": None, "wave": ""}
    return {**form, **own, **counts(whole, **more)}


def event(reason: str, about: str, message: str, *, warning: bool = False, **more) -> Form:
    kind = "Warning" if warning else "Normal"
    form = {"sequence": 1, "type": kind, "reason": reason, "node": "/", "object": about}
    return {**form, "message": message, "first_ms": NOW_MS, "last_ms": NOW_MS, "count": 1, **more}


def wave(name: str, phase: str = "Pending", members: int | None = None, **more) -> Form:
    counts = {} if members is None else {"members": members, "failing": 0, "waiting": 0}
    counts |= {} if members is None else {"healthy": members, "unreachable": 0}
    said = {"name": name, "percent": 10, **more.pop("definition", {})}
    return {"name": name, "gate": "10%", "phase": phase, "definition": said, **counts, **more}


def rollout(name: str, phase: str, waves: list[Form], **status) -> Form:
    made = {"revision": 7, "phase": phase, "waves": waves, "history": [], **status}
    spec = {"placement": {"name": name}}
    return {"metadata": {"name": name}, "spec": spec, "status": made}


def traced(**node: Any) -> Form:
    """As the verb `trace` tells the way of one change; of its last node what is said."""
    down = [("seen", 0, 40), ("signed", 40, 90), ("last passed on", 90, 140)]
    below = [("received", 140, 520), ("applied", 520, 1900), ("reported delivered", 1900, 1950)]

    def way(path: str, *stages: tuple[str, int, int]) -> Form:
        spans = [
            {"stage": it, "startMs": NOW_MS + start, "endMs": NOW_MS + end}
            for it, start, end in stages
        ]
        clock = {"clockMs": 0, "unsureMs": 2, "correctedMs": 0}
        return {"path": path, **clock, "gap": "", "waits": "", "spans": spans}

    return {
        "placement": "edgeplacement/shop",
        "generation": 7,
        "traceId": "4f" * 16,
        "path": "/region-1",
        "chosen": "last",
        "late": 0,
        "held": 7,
        "generations": [5, 7],
        "nowMs": NOW_MS + 3000,
        "nodes": [
            way("/", *down, ("counted delivered", 1950, 2000)),
            {**way("/region-1", *below), "waits": "healthy", "correctedMs": 6000, **node},
        ],
    }


class InventedFacts:
    """Regions with sites with edges, and placements that each is meant for all."""

    def __init__(self, regions: int = 3, sites: int = 2, edges: int = 1) -> None:
        self.shape = (regions, sites, edges)
        self.listed: list[Form] = [placement("shop", regions * sites * edges)]
        # What is said instead of what follows from the shape, by path.
        self.nodes: dict[str, Form] = {}
        self.tiers: dict[str, Form] = {}
        self.steering: list[Form] = []
        self.happened: list[Form] = []
        self.asking: list[Form] = []
        self.held: Form = {"placements": {}, "inventory": {}, "spaces": {}, "ledger": ""}
        self.found: list[Check] = []
        self.plans: Form = {}
        self.objects: dict[ObjectKey, list[str]] = {WEB_KEY: ["edgeplacement/shop"]}
        self.copies = CopySeen(None, None, "it is not there", "")
        self.proofs: Proof = signed_proof()
        self.object_proofs: Proof = object_proof(SEALING, SEALING.key)
        self.traced: Form = traced()
        self.asked = 0
        self.fails: Exception | None = None

    def _answer(self) -> None:
        self.asked += 1
        if self.fails is not None:
            raise self.fails

    def _names(self, at: NodePath) -> list[str]:
        words = ("region", "site", "edge")
        depth = len(at.names)
        return [f"{words[depth]}-{it + 1}" for it in range(self.shape[depth])] if depth < 3 else []

    def _edges(self, at: NodePath) -> int:
        count = 1
        for below in self.shape[len(at.names) :]:
            count *= below
        return count

    def _node(self, at: NodePath) -> Form:
        role = {"role": "centre"} if at.is_root else {}
        made = node(str(at), self._edges(at), children=len(self._names(at)), **role)
        return {**made, **self.nodes.get(str(at), {})}

    async def placements(self) -> Form:
        self._answer()
        return {"placements": self.listed, "lostSpaces": {}, "backupTrouble": ""}

    async def placement(self, name: str) -> Form:
        self._answer()
        for form in self.listed:
            if form["name"] in (name, name.rpartition("/")[2]):
                return form
        raise CallFailed("status", "NotFound", f"there is no EdgePlacement {name}", "apply it")

    async def tier(self, name: str, at: NodePath, after: str, *, amiss: bool) -> Form:
        self._answer()
        names = [it for it in sorted(self._names(at)) if it > after]
        rows = []
        for path in map(at.child, names[:PAGE]):
            below = self._names(path)
            made = tier_node(str(path), self._edges(path), role="relay" if below else "edge")
            rows.append({**made, **self.tiers.get(str(path), {})})
        following = names[PAGE - 1] if len(names) > PAGE else ""
        return {"known": True, "complete": True, "rows": rows, "next": following}

    async def level(self, at: NodePath, skip: int, search: str) -> Form:
        self._answer()
        names = [it for it in self._names(at) if search in it]
        children = worst_nodes_first(self._node(at.child(it)) for it in names)
        return {
            "node": self._node(at),
            "children": children[skip : skip + PAGE],
            "count": len(names),
            "skip": skip,
            "answers": True,
            "held": [],
        }

    async def places(self, search: str) -> Form:
        self._answer()
        found = [at for at in map(NodePath().child, self._names(NodePath())) if search in str(at)]
        forms = [
            {"path": str(at), "syncTarget": "", "edges": self._edges(at), "children": 2}
            for at in found
        ]
        return {"places": forms, "more": 0}

    async def carried(self, search: str) -> Form:
        self._answer()
        return carried_form(self.objects, search)

    async def rollouts(self) -> list[Form]:
        self._answer()
        return self.steering

    async def rollout(self, name: str) -> Form:
        self._answer()
        for obj in self.steering:
            if obj["metadata"]["name"] == name:
                return obj
        raise CallFailed("rollout", "NotFound", f"no Rollout {name}", "apply one")

    async def events(self) -> list[Form]:
        self._answer()
        return self.happened

    async def waiting(self) -> tuple[list[Form], Form, list[Form]]:
        self._answer()
        return self.asking, self.held, self.steering

    async def plan(self, text: str) -> Form:
        self._answer()
        if text == "wrong":
            raise CallFailed("plan", "Invalid", "pasted text:1: no YAML", "mend it and plan again")
        return self.plans

    async def copy(self, at: NodePath, key: ObjectKey) -> CopySeen:
        self._answer()
        return self.copies

    async def proof(self, at: NodePath, placement: str, key: ObjectKey | None) -> Proof:
        self._answer()
        found = replace(self.proofs if key is None else self.object_proofs, path=at)
        pairs = zip(found.records, check_proof(found).records, strict=True)
        records = tuple(data for data, it in pairs if placement in ("", it.placement))
        return replace(found, records=records)

    async def trace(self, name: str, generation: int, at: NodePath | None) -> Form:
        self._answer()
        return {**self.traced, "path": str(at or "/region-1")}

    async def doctor(self) -> list[Check]:
        self._answer()
        return self.found
