"""What users do to a simulated tree: a seeded stream of changes, each of them ordinary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.placements import BINDING_POLICIES, kind_of
from schemas.records.records import OVER_LOCATION, OVER_SYNC_TARGET, Alternative
from schemas.values import wire
from schemas.values.identity import NodePath
from tests.simulation.centre import Centre
from tests.simulation.model import LABELS, Arm, Content, Located, Placed, Target
from tests.simulation.moving import Moving
from tests.simulation.oracle import Oracle
from tests.simulation.sizes import Size
from tests.simulation.world import World

PLACEMENTS = (BINDING_POLICIES.named("p1"), "p2", BINDING_POLICIES.named("p3"), "p4")
LOCATIONS = ("l1", "l2", "l3")
OBJECTS = tuple(ObjectKey("", "configmaps", "default", name) for name in "abcdef")


class Workload:
    """Builds a tree and changes what is wanted of it."""

    def __init__(self, world: World, centre: Centre, oracle: Oracle, size: Size) -> None:
        self._world, self._centre, self._oracle, self._size = world, centre, oracle, size
        self._random = world.random
        self._latest: dict[ObjectKey, Content] = {}
        self._names = 0
        self._objects = OBJECTS[: size.objects_max]
        self._locations = LOCATIONS[: size.locations[1]]
        self._names_of_placements = PLACEMENTS[: size.placements_max]
        self._moving = Moving(world, centre, oracle, size.gap_seconds)

    def build(self) -> None:
        """Nodes, destinations, locations, placements."""
        random, size = self._random, self._size
        if not size.depths[1]:
            for _ in range(random.randint(*size.edges)):
                self._add_edge(NodePath())
        else:
            least, most = size.depths
            for region in range(random.randint(*size.regions)):
                below = random.randint(least - 1, most - 1) if most > 1 else 0
                self._add_relay(NodePath((f"r{region}",)), below)
        for name in LOCATIONS[: random.randint(*size.locations)]:
            self._centre.put_location(name, self._located())
        for name in PLACEMENTS[: random.randint(*size.placements)]:
            self._centre.put_placement(name, self._placed(name))

    def judge_settled(self) -> None:
        """Raise LawBroken unless what users began is at its end, or waits for them."""

    def change(self) -> None:
        """One ordinary change, if the centre is up to take it."""
        if not self._centre.ready:
            return
        size = self._size
        moving = self._world.faults.moving if size.depths[1] else 0.0
        if moving and self._random.random() < moving:
            self._do(self._rehang)
        else:
            self._do(self._random.choice(self._acts()))

    def do(self, name: str) -> None:
        """The change of this name, if the centre is up to take it."""
        if self._centre.ready:
            self._do(getattr(self, f"_{name}"))

    def rename(self, names: str) -> None:
        """Call by other names, from now on, what is put."""
        self._objects = tuple(wire.replace(key, name=f"{key.name}-{names}") for key in OBJECTS[:3])
        self._locations = (f"l-{names}",)
        self._names_of_placements = tuple(BINDING_POLICIES.named(f"{it}-{names}") for it in "pq")
        self._latest.clear()

    def fill(self) -> None:
        """Have all placements in force, each with all objects, everywhere: as much at any time."""
        self._do(self._fill)

    def _fill(self) -> None:
        everyone = LabelSelector()
        for name in self._locations:
            self._centre.put_location(name, Located((), everyone))
            self._oracle.model_changed()
        for name in self._names_of_placements:
            alternatives = (Alternative(_over(name), everyone),)
            self._centre.put_placement(name, Placed(alternatives, self._arm(list(self._objects))))
            self._oracle.model_changed()

    def _do(self, act: Callable[[], None]) -> None:
        self._world.note("user", act.__name__)
        self._oracle.model_changed()
        act()
        self._oracle.model_changed()

    def _acts(self) -> list:
        acts = [self._put, self._put, self._edit, self._edit, self._regain, self._move]
        acts += [self._new_version, self._new_version, self._select, self._delete]
        acts += [self._relabel, self._relabel, self._relocate, self._unlocate]
        acts += [self._grow, self._shrink, self._move_target]
        return [*acts, self._put_soon, self._put_soon] if self._size.brief else acts

    # Inventory.

    def _add_relay(self, path: NodePath, below: int) -> None:
        self._world.add(path, attached=self._random.random() < self._size.attached)
        self._centre.put_node(path)
        if self._world.hosts[path].attached:
            self._add_target(path)
        for _ in range(self._random.randint(*self._size.edges)):
            self._add_edge(path)
        if below:
            self._add_relay(path.child("s0"), below - 1)

    def _add_edge(self, relay: NodePath) -> None:
        self._names += 1
        path = relay.child(f"e{self._names}")
        first = self._random.random() < 0.5
        if first:
            self._world.add(path, attached=True)
        self._centre.put_node(path)
        self._add_target(path)
        if not first:
            self._world.add(path, attached=True)

    def _add_target(self, path: NodePath) -> None:
        self._names += 1
        self._centre.put_target(Target(f"t{self._names}", path, self._labels()))

    def _relabel(self) -> None:
        target = self._some_target()
        if target is not None:
            self._centre.put_target(replace(target, labels=self._labels()))

    def _relocate(self) -> None:
        self._centre.put_location(self._random.choice(self._locations), self._located())

    def _unlocate(self) -> None:
        name = self._random.choice(self._locations)
        if name in self._centre.model.locations:
            self._centre.put_location(name, None)

    def _grow(self) -> None:
        nodes, least = self._centre.model.nodes, 1 if self._size.depths[1] else 0
        relays = sorted({p.parent for p in nodes if len(p.names) > least})
        if relays and len(self._centre.model.targets) < self._size.edges_max:
            self._add_edge(self._random.choice(relays))

    def _shrink(self) -> None:
        """Take an edge away: its destination, then its node."""
        target = self._some_target()
        if target is not None and target.path.name.startswith("e"):
            self._centre.put_target(target, deleted=True)
            self._oracle.model_changed()
            self._centre.put_node(target.path, deleted=True)
            self._world.remove(self._moving.end(target.name, target.path))

    def _move_target(self) -> None:
        """A destination comes to hang at another edge, which had one of its own."""
        first, second = self._some_target(), self._some_target()
        if first is None or second is None or first == second:
            return
        if self._moving.is_moving(first.name) or self._moving.is_moving(second.name):
            return
        self._centre.put_target(second, deleted=True)
        self._oracle.model_changed()
        self._centre.put_target(replace(first, path=second.path))

    def _rehang(self) -> None:
        """An edge moves to another parent, with all that it has."""
        target = self._some_target()
        if target is not None:
            self._moving.begin(target.name)

    def _some_target(self) -> Target | None:
        targets = list(self._centre.model.targets.values())
        return self._random.choice(targets) if targets else None

    def _labels(self) -> tuple[tuple[str, str], ...]:
        some = [key for key in LABELS if self._random.random() < 0.8]
        return tuple((key, self._random.choice(LABELS[key])) for key in some)

    def _located(self) -> Located:
        return Located(self._labels(), self._selector())

    def _selector(self) -> LabelSelector:
        key = self._random.choice(list(LABELS))
        match self._random.randint(0, 5):
            case 0:
                return LabelSelector()
            case 1:
                return LabelSelector((Requirement(key, "Exists"),))
            case 2:
                return LabelSelector((Requirement(key, "NotIn", (LABELS[key][0],)),))
            case 3:
                return LabelSelector((Requirement(key, "DoesNotExist"),))
            case _:
                return LabelSelector((Requirement(key, "In", (self._random.choice(LABELS[key]),)),))

    # Workloads.

    def _placed(self, name: str) -> Placed:
        keys = self._random.sample(self._objects, self._random.randint(1, 3))
        return Placed(self._alternatives(name), self._arm(keys))

    def _alternatives(self, name: str) -> tuple[Alternative, ...]:
        count = self._random.choice((1, 1, 2))
        return tuple(Alternative(_over(name), self._selector()) for _ in range(count))

    def _arm(self, keys: list[ObjectKey]) -> Arm:
        return self._centre.arm({key: self._content(key) for key in sorted(keys)})

    def _content(self, key: ObjectKey) -> Content:
        if key not in self._latest:
            self._latest[key] = self._centre.content(key.name)
        return self._latest[key]

    def _some_placement(self) -> str | None:
        names = list(self._centre.model.placements)
        return self._random.choice(names) if names else None

    def _put(self) -> None:
        """A placement under some name: new, re-created or replaced."""
        name = self._random.choice(self._names_of_placements)
        self._centre.put_placement(name, self._placed(name))

    def _put_soon(self) -> None:
        """Delete a placement, and create it again while that is on its way."""
        name = self._some_placement()
        if name is not None:
            placed = self._centre.model.placements[name]
            self._centre.put_placement(name, None)
            soon = self._random.expovariate(1 / (4 * self._world.faults.delay_mean))
            self._world.after(soon, self._put_again, name, placed)

    def _put_again(self, name: str, placed: Placed) -> None:
        if self._centre.ready and name not in self._centre.model.placements:
            self._world.note("user", f"puts {name} again")
            self._oracle.model_changed()
            self._centre.put_placement(name, placed)
            self._oracle.model_changed()

    def _delete(self) -> None:
        name = self._some_placement()
        if name is not None:
            self._centre.put_placement(name, None)

    def _select(self) -> None:
        name = self._some_placement()
        if name is not None:
            placed = self._centre.model.placements[name]
            placed = replace(placed, alternatives=self._alternatives(name))
            self._centre.put_placement(name, placed)

    def _edit(self) -> None:
        """Add objects to a placement, or remove some."""
        name = self._some_placement()
        if name is None:
            return
        placed = self._centre.model.placements[name]
        keys = {key for key, _ in placed.arm.contents} ^ {self._random.choice(self._objects)}
        self._centre.put_placement(name, replace(placed, arm=self._arm(list(keys))))

    def _regain(self) -> None:
        """Delete a placement, and create it again at once with other content."""
        name = self._some_placement()
        if name is not None:
            placed = self._centre.model.placements[name]
            self._centre.put_placement(name, None)
            self._oracle.model_changed()
            keys = self._random.sample(self._objects, 2)
            self._centre.put_placement(name, replace(placed, arm=self._arm(keys)))

    def _move(self) -> None:
        """An object goes from one placement to another, in either order of the file."""
        model = self._centre.model
        if len(model.placements) < 2:
            return
        source, target = self._random.sample(sorted(model.placements), 2)
        given = [key for key, _ in model.placements[source].arm.contents]
        if not given:
            return
        key = self._random.choice(given)
        held = [k for k, _ in model.placements[target].arm.contents]
        both = {target: {*held, key}, source: {*given} - {key}}
        names = self._random.sample(list(both), 2)
        self._centre.put_together(
            {
                name: replace(model.placements[name], arm=self._arm(list(both[name])))
                for name in names
            }
        )

    def _new_version(self) -> None:
        """An object changes in its source: all placements that hold it say so."""
        key = self._random.choice(self._objects)
        self._latest[key] = self._centre.content(key.name)
        for name, placed in list(self._centre.model.placements.items()):
            keys = [k for k, _ in placed.arm.contents]
            if key in keys:
                self._centre.put_placement(name, replace(placed, arm=self._arm(keys)))
                self._oracle.model_changed()


def _over(name: str) -> str:
    """What a placement of this name selects by."""
    return OVER_SYNC_TARGET if kind_of(name) is BINDING_POLICIES else OVER_LOCATION
