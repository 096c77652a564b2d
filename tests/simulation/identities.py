"""Lives in which it matters who a node is: twice, elsewhere, away for long, or as it was before."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

from relay.core import tombstones
from relay.core.events import MailArrived
from schemas.identity import NodePath
from schemas.reports import (
    LabelReport,
    Report,
    SessionMessage,
    Summary,
    encode,
)
from schemas.selectors import LabelSelector
from schemas.subjects import LABELS_KEY
from tests.simulation.centre import Located, placement_key
from tests.simulation.chaos import put_back
from tests.simulation.host import Host
from tests.simulation.laws import (
    BOUNDED,
    EXACTLY_ONCE,
    LEAST_PRIVILEGE,
    NO_IGNORANCE,
    NO_RESURRECTION,
    ONE_SESSION,
)
from tests.simulation.run import Run
from tests.simulation.scenes import A, B, D, edges_of, everywhere, put, region_of, relink, require
from tests.simulation.world import CENTRE, Watcher, World

# Who one is.


class Aside:
    """The world of an older process with the same identity: nobody judges what it does."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.watcher = Watcher()

    def __getattr__(self, name: str) -> object:
        return getattr(self._world, name)

    def after(self, seconds: float, action: Callable[..., None], *args: object) -> None:
        if action.__name__ != "_restart":
            self._world.after(seconds, action, *args)


def twins(one: Run) -> None:
    """A second process is started by mistake with the identity of one that runs."""
    _twins(one, deaf=False)


def deaf_twins(one: Run) -> None:
    """The same, and the older one does not hear at once that there is a newer one."""
    _twins(one, deaf=True)


def _twins(one: Run, *, deaf: bool) -> None:
    world, elder = one.world, edges_of(one)[0]
    newer = Host(world, elder.path, attached=elder.attached)
    newer.streams, newer.run = deepcopy(elder.streams), 1000
    newer.space.objects = elder.space.objects
    came, read, hears_from = newer.session_came, newer.read_mail, world.now + (20 if deaf else 0)

    def session_came(message: SessionMessage) -> None:
        came(message)
        if world.now >= hears_from:
            elder.session_came(message)

    def read_mail() -> None:
        read()
        elder.read_mail()

    newer.session_came, newer.read_mail = session_came, read_mail
    elder.world = Aside(world)
    world.hosts[newer.path] = newer
    newer.start()
    world.run(70)
    require(elder.node is None, ONE_SESSION, f"{elder.path} runs twice")
    require(newer.run == 1001, ONE_SESSION, f"the newer process of {newer.path} stopped")
    everywhere(one, "p1", A)


def lying_child(one: Run) -> None:
    """A child says what it likes of all: it speaks for one destination, its own."""
    liar, others = edges_of(one)[0], edges_of(one)[1:]
    region = region_of(one)
    box = {at: kept for at, kept in region.streams.mail.items() if at[0] != liar.path.name}
    held, now = dict(region.streams.own), one.world.instant().wall_ms
    for name in ("p1", "p2", "p3"):
        key = placement_key(name)
        many = Summary({"synced": 500}, {"healthy": 500}, {"arm": 500})
        for gone in (True, False):
            said = Report(key, 0, now, 99, now, region.incarnation, 10**6, gone, 0, many)
            _say(region, liar, key, encode(said))
    labels = LabelReport(now, 99, region.incarnation, 10**6, {})
    _say(region, liar, LABELS_KEY, encode(labels))
    _say(region, liar, "_else", b"no report")
    one.world.run(5)
    after = {at: kept for at, kept in region.streams.mail.items() if at[0] != liar.path.name}
    require(after == box, LEAST_PRIVILEGE, f"{liar.path} moves the mail of {len(others)} others")
    kept = {key: own for key, own in region.streams.own.items() if key in held or key[0] != "_"}
    require(kept == held, LEAST_PRIVILEGE, f"{liar.path} moves what {region.path} holds")
    root = one.world.root.node
    edges = len(edges_of(one)) + region.attached
    for name in ("p1", "p2"):
        count = root.summary(placement_key(name)).destinations if root else 0
        require(count == edges, EXACTLY_ONCE, f"{name} counts {count} destinations of {edges}")
    liar.stop()
    liar.start()


def _say(region: Host, child: Host, key: str, data: bytes) -> None:
    region.streams.stat.put((child.path.name, key), data)
    region.read_reports(region.run)


def moved(one: Run) -> None:
    """An edge is taken from one parent and hung under another, with all it has."""
    world, centre, old = one.world, one.centre, edges_of(one)[0]
    target = next(t for t in centre.model.targets.values() if t.path == old.path)
    before = dict(old.space.objects)
    old.stop()
    path = NodePath((old.path.name,))
    one.oracle.model_changed()
    centre.put_node(path)
    new = Host(world, path, attached=True)
    new.streams, new.former = deepcopy(old.streams), (old.path,)
    new.space.objects = old.space.objects
    world.hosts[path] = new
    one.oracle.disk_restored(new)
    new.start()
    world.run(world.random.uniform(1, 5))
    counted = new.node.summary(placement_key("p1")).destinations if new.node else 0
    require(
        not counted, EXACTLY_ONCE, f"{path} counts, though its record says that it is elsewhere"
    )
    centre.put_target(replace(target, path=path))
    one.oracle.model_changed()
    world.run(world.random.uniform(0, 5))
    centre.put_node(old.path, deleted=True)
    world.remove(old.path)
    one.settle()
    require(new.space.objects == before, NO_IGNORANCE, f"{path} did not keep what it had")


# Time and place.


def away(one: Run) -> None:
    """An edge is away for hours, and things go meanwhile."""
    edge = edges_of(one)[0]
    one.world.cut(edge.path)
    put(one, "p1", None)
    one.world.run(3 * tombstones.EVERY_SECONDS)
    one.world.heal(edge.path)
    one.settle()


def old_backup(one: Run) -> None:
    """An edge is put back to an old copy of its disk, and its parent tells it what was once."""
    edge, copy = edges_of(one)[0], deepcopy(edges_of(one)[0].streams)
    one.centre.put_location("l1", Located((), LabelSelector()))
    everywhere(one, "p3", D)
    old = next(data for key, data in one.centre.history if key == placement_key("p3"))
    one.settle()
    put(one, "p3", None)
    one.settle()
    one.world.lied = True
    one.world.withholds = lambda host, _kept: host.path == edge.path.parent
    put_back(edge, copy)
    edge.space.objects.pop(D, None)
    one.world.run(1)
    edge.receive_mail(MailArrived(edge.read_through, placement_key("p3"), old, 0))
    one.world.run(5)
    require(D not in edge.space.objects, NO_RESURRECTION, f"{edge.path} brings p3 back")
    one.world.withholds = None
    one.world.withheld[CENTRE] = None
    relink(one)


def old_relay(one: Run) -> None:
    """A relay is put back to an old copy of its disk: its children know better."""
    region, copy = region_of(one), deepcopy(region_of(one).streams)
    everywhere(one, "p3", D)
    put(one, "p2", None)
    one.settle()
    everywhere(one, "p1", A)
    put(one, "p3", None)
    everywhere(one, "p2", B)
    one.settle()
    put_back(region, copy)
    one.settle()


def swept(one: Run) -> None:
    """An edge is away for longer than tombstones are kept."""
    edge, retention = edges_of(one)[0], tombstones.RETENTION_MS
    one.world.run(tombstones.EVERY_SECONDS)
    one.world.cut(edge.path)
    tombstones.RETENTION_MS = 600_000
    try:
        put(one, "p1", None)
        for name in list(one.centre.model.locations):
            one.centre.put_location(name, None)
        one.world.run(2 * tombstones.EVERY_SECONDS)
        slot = (edge.path.name, placement_key("p1"))
        kept = one.world.hosts[edge.path.parent].streams.mail.get(slot)
        require(kept is None, BOUNDED, f"the tombstone for {edge.path} is kept for ever")
        everywhere(one, "p2", B)
        one.world.heal(edge.path)
        one.settle()
    finally:
        tombstones.RETENTION_MS = retention
