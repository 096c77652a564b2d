"""What users write into the centre's spaces, and what those who run the centre do to it."""

from __future__ import annotations

from random import Random
from typing import Any

from schemas.api import GROUP, PATH_ANNOTATION, VERSION
from schemas.identity import NodePath
from schemas.moves import MOVED_ANNOTATION, after_move, former_paths
from schemas.objects import ObjectKey
from tests.simulation.blind_space import Object
from tests.simulation.centre import OF_ELSEWHERE
from tests.simulation.moving import Moving, Register, Said
from tests.simulation.oracle_removals import RemovalOracle
from tests.simulation.selecting import CRD, KIND
from tests.simulation.sizes import Size
from tests.simulation.spaced_centre import SpacedCentre
from tests.simulation.world import World

SHOP, LAB = "shop", "lab"
CLAUSES: tuple[dict[str, Any], ...] = (
    {"namespaces": [SHOP]},
    {"namespaces": [SHOP]},
    {"namespaces": [SHOP], "labelSelectors": [{"matchLabels": {"to": "x"}}]},
    {"namespaceSelectors": [{"matchLabels": {"team": "a"}}]},
    {"namespaces": [SHOP, LAB], "objectNames": ["a00", "a01", "d0", "w0", "b0"]},
)
KEYS = (
    *(ObjectKey("", "configmaps", SHOP, f"a{n:02}") for n in range(12)),
    ObjectKey("apps", "deployments", SHOP, "d0"),
    ObjectKey("apps", "deployments", SHOP, "d1"),
    ObjectKey("example.com", "widgets", SHOP, "w0"),
    ObjectKey("", "configmaps", LAB, "b0"),
)
NAMES, LOCATIONS = ("p1", "p2", "p3"), ("l1", "l2")
ENVS = ("prod", "dev")
LOOKED_AT_SECONDS = 1.5
"""So soon people delete again what they wrote for that alone."""
NEWER_SECONDS = 150.0
"""So long people wait for what heals by itself: what a node holds beyond is listed each minute."""


class Inventory(Register):
    """What a mover says at a centre that reads its inventory from a space."""

    def __init__(self, centre: SpacedCentre, hanging: dict[str, Said]) -> None:
        self._centre, self._hanging = centre, hanging

    def ready(self) -> bool:
        centre = self._centre
        return centre.ready and centre.desk.here and centre.desk.sure

    def said(self, name: str) -> Said | None:
        return self._hanging[name]

    def place(self, name: str, path: NodePath, parent: NodePath) -> NodePath:
        """Edges have like names in each region, so it gets one of its own."""
        return parent.child(f"e-{name}")

    def let_in(self, path: NodePath) -> None:
        self._centre.put_node(path)

    def let_go(self, path: NodePath) -> None:
        self._centre.remove_node(path)

    def has_left(self, path: NodePath) -> bool:
        return path not in self._centre.model.nodes

    def say(self, name: str, path: NodePath) -> bool:
        """Only what is there, and is seen to hang where it says, can be moved."""
        key, said = target_key(name), self._hanging[name]
        there, known = self._centre.inventory.objects.get(key), self._centre.model.targets.get(name)
        if there is None or known is None or known.path != said.path:
            return False
        before = {MOVED_ANNOTATION: ",".join(map(str, said.former))}
        moved = former_paths({MOVED_ANNOTATION: after_move(before, said.path, path)})
        self._hanging[name] = Said(path, moved)
        env = there["metadata"]["labels"]["env"]
        self._centre.inventory.put(*_target(name, self._hanging[name], env))
        return True


class People:
    """Seeded acts, each of them ordinary."""

    def __init__(
        self, world: World, centre: SpacedCentre, oracle: RemovalOracle, size: Size
    ) -> None:
        self._world, self._centre, self._oracle, self._size = world, centre, oracle, size
        self._random = world.random
        self._versions = 0
        self._hanging: dict[str, Said] = {}
        self._newer: dict[tuple[str, int], float] = {}
        self.moving = Moving(world, oracle, Inventory(centre, self._hanging), size.gap_seconds)

    def build(self) -> None:
        """Nodes, destinations, objects, placements."""
        random, size = self._random, self._size
        paths = []
        for region in range(random.randint(*size.regions)):
            top = NodePath((f"r{region}",))
            paths += [(top, False)]
            paths += [(top.child(f"e{n}"), True) for n in range(random.randint(*size.edges))]
        for path, attached in paths:
            self._world.add(path, attached=attached)
            self._centre.put_node(path)
            if attached:
                self._hanging["-".join(path.names)] = Said(path, ())
        workloads, inventory = self._centre.workloads, self._centre.inventory
        for name, said in self._hanging.items():
            inventory.put(*_target(name, said, random.choice(ENVS)))
        for name in LOCATIONS:
            inventory.put(*_location(name, random))
        for name, team in ((SHOP, "a"), (LAB, "b")):
            metadata = {"name": name, "labels": {"team": team}}
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            workloads.put(ObjectKey("", "namespaces", "", name), obj)
        workloads.put(CRD, _crd())
        for key in KEYS:
            self._write(key)
        for name in NAMES[: random.randint(1, len(NAMES))]:
            self._place(name)

    def act(self) -> None:
        """One act on the spaces, whatever the centre sees of them."""
        acts = [self._change, self._change, self._delete, self._renew, self._edit, self._edit]
        acts += [self._unplace, self._relabel, self._register, self._deregister, self._relocate]
        moving = self._world.faults.moving if self._size.moves else 0.0
        if moving and self._random.random() < moving:
            acts = [self._rehang]
        act = self._random.choice(acts)
        self._world.note("user", act.__name__)
        self._oracle.people_acted()
        act()
        self._oracle.people_acted()

    def mend(self) -> None:
        """Let go, after a good look, what is really gone, and what another space left behind.

        A centre that reads its ledger back waits for no node that was let in and never came; one
        that went back to a backup has nodes that had left, and they are removed again. A place
        that was lost with the centre before anyone came to it is made once more, as its SyncTarget
        says that it is none. So is one that someone came to: who is not let in keeps what it has,
        and nobody else can tell it what became of that. The place before, which a backup may have
        again, is given up.
        """
        if self._centre.ready:
            self._centre.go_on_without_missing()
        if self._centre.ready and self._centre.desk.here and self._centre.desk.sure:
            self._centre.accept()
            self._centre.withdraw_orphans()
            for path in list(self._centre.model.nodes):
                if not self.moving.is_awaited(path):
                    self._centre.remove_node(path)
            for path in sorted(self._world.hosts):
                self._let_in_again(path)
            for name, said in self._hanging.items():
                self._move_on(name, said)
            self._name_what_is_lost()
            self._say_anew_what_is_older()

    def _say_anew_what_is_older(self) -> None:
        """Change placements of which a node below goes on holding a version that the centre lost.

        Who holds a newer one takes none that is older; what is changed now is newer than all.
        """
        ledger, former, now = self._centre.desk.ledger.records, self._newer, self._world.now
        nodes = [h.node for h in self._world.hosts.values() if not h.path.is_root and h.node]
        self._newer = {}
        for held in [held for node in nodes for held in node.records.values()]:
            known = ledger.get(held.key)
            if known is not None and held.kind == "delta" and held.generation > known.generation:
                seen = (held.record.source.name, held.generation)
                self._newer[seen] = former.get(seen, now)
        for (name, _), since in self._newer.items():
            key = ObjectKey(KIND, "edgeplacements", "", name)
            there = self._centre.workloads.objects.get(key)
            if there is not None and since + NEWER_SECONDS <= now:
                self._world.note("user", f"changes {name}, of which a node holds a newer version")
                self._oracle.people_acted()
                self._centre.workloads.put(key, _chosen_otherwise(there))
                self._oracle.people_acted()

    def _name_what_is_lost(self) -> None:
        """Write once more, and then delete, what is in no space and in no ledger any more.

        Of a SyncTarget or Location that only nodes below know by now, nobody else says it is gone.
        """
        ledger, known = self._centre.desk.ledger.records, self._centre.inventory.objects
        nodes = [h.node for h in self._world.hosts.values() if not h.path.is_root and h.node]
        for held in [held for node in nodes for held in node.records.values()]:
            source = held.record.source
            if held.kind not in ("profile", "location") or source.key in ledger:
                continue
            kind = "synctargets" if held.kind == "profile" else "locations"
            key = ObjectKey(KIND, kind, "", source.name)
            if key not in known and held.has_content:
                self._world.note("user", f"writes {source.name} once more, which is lost")
                if held.kind == "profile":
                    self._centre.inventory.put(*_target(key.name, self._hanging[key.name], ENVS[0]))
                else:
                    self._centre.inventory.put(*location(key.name, {}))
                self._world.after(LOOKED_AT_SECONDS, self._let_go, key)

    def _let_go(self, key: ObjectKey) -> None:
        """Delete it again."""
        if key in self._centre.inventory.objects:
            self._oracle.people_acted()
            self._centre.inventory.delete(key)
            self._oracle.people_acted()

    def _let_in_again(self, path: NodePath) -> None:
        """Add a node once more that runs where the centre, which lost it, knows of none."""
        known = path.is_root or path in self._centre.model.nodes
        if not known and not self.moving.is_leaving(path):
            self._world.note("user", f"adds {path} once more")
            self._centre.put_node(path)

    def _move_on(self, name: str, said: Said) -> None:
        """Do what a lost centre forgot of a move that the inventory says."""
        target, nodes = self._centre.model.targets.get(name), self._centre.model.nodes
        if target is None or target.path != said.path or not self.moving.is_moving(name):
            return
        if said.path not in nodes:
            self._world.note("user", f"makes {said.path} once more")
            self._centre.put_node(said.path)
        hung = {target.path for target in self._centre.model.targets.values()}
        for path in said.former:
            if path not in hung and path in nodes:
                self._world.note("user", f"removes {path} once more")
                self._centre.remove_node(path)

    # Objects.

    def _write(self, key: ObjectKey) -> None:
        self._versions += 1
        self._centre.workloads.put(key, _object(key, self._random, self._versions))

    def _some(self) -> ObjectKey | None:
        there = [key for key in KEYS if key in self._centre.workloads.objects]
        return self._random.choice(there) if there else None

    def _change(self) -> None:
        self._write(self._random.choice(KEYS))

    def _delete(self) -> None:
        """Take away a few objects."""
        for _ in range(self._random.choice((1, 1, 2, 12))):
            key = self._some()
            if key is not None:
                self._centre.workloads.delete(key)

    def _renew(self) -> None:
        """Delete an object, and create it again."""
        key = self._some()
        if key is not None:
            self._centre.workloads.delete(key)
            self._oracle.people_acted()
            self._write(key)

    # Placements.

    def _place(self, name: str) -> None:
        envs = self._random.choice(({}, {}, {"matchLabels": {"env": self._random.choice(ENVS)}}))
        clauses = self._random.sample(CLAUSES, self._random.choice((1, 1, 2)))
        self._centre.workloads.put(*edge_placement(name, envs, clauses))

    def _edit(self) -> None:
        self._place(self._random.choice(NAMES))

    def _unplace(self) -> None:
        key = ObjectKey(KIND, "edgeplacements", "", self._random.choice(NAMES))
        if key in self._centre.workloads.objects:
            self._centre.workloads.delete(key)
            self._oracle.people_acted()
            if self._random.random() < 0.5:
                self._place(key.name)

    # Inventory.

    def _relabel(self) -> None:
        name = self._random.choice(list(self._hanging))
        self.relabel(name, self._random.choice(ENVS))

    def relabel(self, name: str, env: str) -> None:
        """Write a SyncTarget with this label."""
        self._centre.inventory.put(*_target(name, self._hanging[name], env))

    def _register(self) -> None:
        for name, said in self._hanging.items():
            self._centre.inventory.put(*_target(name, said, self._random.choice(ENVS)))

    def _rehang(self) -> None:
        """An edge moves to another parent, with all that it has."""
        self.moving.begin(self._random.choice(list(self._hanging)))

    def _deregister(self) -> None:
        name = self._random.choice(list(self._hanging))
        key = target_key(name)
        if self.moving.is_moving(name):
            return
        if key in self._centre.inventory.objects:
            self._centre.inventory.delete(key)

    def _relocate(self) -> None:
        key, location = _location(self._random.choice(LOCATIONS), self._random)
        if key in self._centre.inventory.objects and self._random.random() < 0.3:
            self._centre.inventory.delete(key)
        else:
            self._centre.inventory.put(key, location)


def another_space() -> dict[ObjectKey, Object]:
    """What stands in the space's place for a time: a placement of its own, and little else."""
    stamp = {"uid": "elsewhere-1", "resourceVersion": "1"}
    key, placement = edge_placement(f"{OF_ELSEWHERE}p", {}, [{"namespaces": ["far"]}])
    far = ObjectKey("", "configmaps", "far", "z")
    found = {key: placement, far: _object(far, Random(0), 0)}
    return {k: {**o, "metadata": {**o["metadata"], **stamp}} for k, o in found.items()}


def _object(key: ObjectKey, random: Random, version: int) -> Object:
    kinds = {
        "configmaps": ("v1", "ConfigMap"),
        "deployments": ("apps/v1", "Deployment"),
        "widgets": ("example.com/v1", "Widget"),
    }
    api, kind = kinds[key.resource]
    metadata = {"name": key.name, "namespace": key.namespace, "labels": {"to": random.choice("xy")}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "data": {"n": str(version)}}


def _crd() -> Object:
    spec = {"group": "example.com", "names": {"plural": "widgets", "kind": "Widget"}}
    api = "apiextensions.k8s.io/v1"
    metadata = {"name": CRD.name}
    return {
        "apiVersion": api,
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def _ours(kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    said = {"name": name, **metadata}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": said, "spec": spec}


def another_object(name: str) -> tuple[ObjectKey, Object]:
    """A ConfigMap beside those that are there."""
    key = ObjectKey("", "configmaps", SHOP, name)
    return key, _object(key, Random(0), 0)


def edge_placement(name: str, selector: Object, clauses: list[Object]) -> tuple[ObjectKey, Object]:
    """An EdgePlacement for the destinations of these Locations."""
    spec = {"locationSelectors": [selector], "downsync": clauses}
    key = ObjectKey(KIND, "edgeplacements", "", name)
    return key, _ours("EdgePlacement", name, spec)


def _chosen_otherwise(placement: Object) -> Object:
    """The same EdgePlacement, which says in other words that it is for the same destinations."""
    spec, nobody = placement["spec"], {"matchLabels": {"env": "none"}}
    chosen = [one for one in spec["locationSelectors"] if one != nobody]
    if len(chosen) == len(spec["locationSelectors"]):
        chosen.append(nobody)
    return {**placement, "spec": {**spec, "locationSelectors": chosen}}


def target_key(name: str) -> ObjectKey:
    return ObjectKey(KIND, "synctargets", "", name)


def _target(name: str, said: Said, env: str) -> tuple[ObjectKey, Object]:
    annotations = {PATH_ANNOTATION: str(said.path)}
    if said.former:
        annotations[MOVED_ANNOTATION] = ",".join(map(str, said.former))
    obj = _ours("SyncTarget", name, {}, labels={"env": env}, annotations=annotations)
    return target_key(name), obj


def _location(name: str, random: Random) -> tuple[ObjectKey, Object]:
    env = random.choice(ENVS)
    return location(name, random.choice(({}, {"matchLabels": {"env": env}})), env)


def location(name: str, selector: Object, env: str = "prod") -> tuple[ObjectKey, Object]:
    """A Location of the SyncTargets that match, labelled with the env."""
    resource = {"group": GROUP, "version": VERSION, "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": selector}
    obj = _ours("Location", name, spec, labels={"env": env})
    return ObjectKey(KIND, "locations", "", name), obj
