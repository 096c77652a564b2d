"""Lives in which time, place and identity matter: away for long, to and fro, twice the same."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from schemas.values.identity import NodePath
from tests.simulation.chaos import put_back
from tests.simulation.host import Host
from tests.simulation.laws import (
    BOUNDED,
    CONVERGENCE,
    EXACTLY_ONCE,
    NO_IGNORANCE,
    NO_LOSS,
    NO_RESURRECTION,
    ONE_SESSION,
    WITHHOLDING,
)
from tests.simulation.model import placement_key
from tests.simulation.run import Run
from tests.simulation.scenes import (
    P1,
    P2,
    P3,
    A,
    B,
    C,
    D,
    edges_of,
    everywhere,
    put,
    region_of,
    require,
    until,
)

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def month_away(one: Run) -> None:
    """An edge is away for a month, and missed a deletion. Most of it everyone else is down, too."""
    edge, others = edges_of(one)[0], [one.world.root, region_of(one), *edges_of(one)[1:]]
    one.world.cut(edge.path)
    put(one, P2, None)
    everywhere(one, P1, A)
    # By then all content that is not used was swept.
    one.world.run(3 * HOUR)
    for host in others:
        host.stop(server_too=True)
    one.world.run(30 * DAY)
    for host in others:
        host.start()
    one.world.run(5 * MINUTE)
    one.world.heal(edge.path)
    took = until(one, lambda: C not in edge.space.objects, CONVERGENCE, "p2 stays", 30.0)
    require(took < 15.0, CONVERGENCE, f"a deletion is known only after {took:.0f} s")


def region_wiped(one: Run) -> None:
    """A region loses everything while an edge of it is down, and a placement goes meanwhile."""
    edge, region = edges_of(one)[0], region_of(one)
    edge.stop(server_too=True)
    region.stop(keep_disk=False, server_too=True)
    put(one, P2, None)
    region.start()
    one.world.run(2 * MINUTE)
    edge.start()
    one.settle()


def edge_forgot(one: Run) -> None:
    """Edges lose their disks, and their clusters stay: what is wanted there stays all the time.

    It was said after the newest snapshot.
    """
    for edge in edges_of(one):
        edge.stop(keep_disk=False, server_too=True)
    put(one, P2, None)
    for edge in edges_of(one):
        edge.start()
    one.settle()
    for edge in edges_of(one):
        require(C not in edge.space.objects, CONVERGENCE, f"{edge.path} keeps p2's")


def old_relay(one: Run) -> None:
    """A relay is put back to an old copy of its disk: its children know better."""
    region, copy = region_of(one), region_of(one).streams.copy()
    everywhere(one, P3, D)
    put(one, P2, None)
    one.settle()
    everywhere(one, P1, A)
    put(one, P3, None)
    everywhere(one, P2, B)
    one.settle()
    put_back(region, copy)
    one.settle()


def old_view(one: Run) -> None:
    """A relay is put back and cut off, and an edge of it starts again: that knows better."""
    edge, region = edges_of(one)[0], region_of(one)
    copy = region.streams.copy()
    put(one, P2, None)
    one.settle()
    one.world.cut(region.path)
    edge.stop()
    put_back(region, copy)
    edge.start()
    one.world.run(2 * MINUTE)
    require(C not in edge.space.objects, NO_RESURRECTION, f"p2 is back at {edge.path}")


def old_edge(one: Run) -> None:
    """An edge is put back to an old copy of its disk, beside a cluster of today."""
    edge, copy = edges_of(one)[0], edges_of(one)[0].streams.copy()
    everywhere(one, P3, D)
    put(one, P2, None)
    one.settle()
    put_back(edge, copy)
    one.settle()


def slept(one: Run) -> None:
    """A cut-off edge starts again on what it keeps, and says after 20 minutes that it is old."""
    edge = edges_of(one)[0]
    one.world.cut(edge.path)
    edge.stop()
    edge.start()
    for key in list(edge.space.objects):
        edge.space.drift(key, delete=True)
    one.world.run(23 * MINUTE)
    require(len(edge.space.objects) == 3, NO_IGNORANCE, f"{edge.path} does not repair its cluster")
    require(_stale(edge), WITHHOLDING, f"{edge.path} is silent")


def _stale(edge: Host) -> bool:
    return edge.node is not None and bool(edge.node.own_state()["stale"])


def to_and_fro(one: Run) -> None:
    """A destination moves away, back, and away again, each time before all is quiet."""
    edge = edges_of(one)[0]
    target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
    before, name = dict(edge.space.objects), target.name
    for at in range(5):
        old = edge.path
        new = NodePath((old.name,)) if len(old.names) == 2 else region_of(one).path.child(old.name)
        one.oracle.model_changed()
        one.centre.put_node(new)
        one.world.run((0.0, 0.5, 3.0, 20.0, 0.1)[at])
        one.oracle.said_elsewhere(old, new)
        said = one.centre.model.targets[name]
        one.centre.put_target(replace(said, path=new, moved_from=str(old)))
        one.oracle.model_changed()
        one.world.run((0.2, 2.0, 0.0, 30.0, 5.0)[at])
        edge.stop(server_too=True)
        one.world.hosts.pop(old)
        former = (*[path for path in edge.former if path != new], old)
        edge.hang(new, former)
        one.oracle.arrived(edge, old, keeps=True)
        one.world.hosts[new] = edge
        edge.start()
    one.settle()
    require(edge.space.objects == before, NO_IGNORANCE, f"{edge.path} was touched")


def twins(one: Run) -> None:
    """A copy of an edge's disk runs on another machine: only the first does anything."""
    world, first = one.world, edges_of(one)[0]
    copy = Host(world, first.path, attached=True)
    copy.streams, copy.machine, copy.run = deepcopy(first.streams), "another machine", 1000
    world.hosts[first.path] = copy
    copy.start()
    world.run(5 * MINUTE)
    require(copy.node is not None and copy.node.stopped, ONE_SESSION, f"{copy.path} runs twice")
    copy.stop(server_too=True)
    world.hosts[first.path] = first
    first.link_changed(up=False)
    world.links_changed(first.path)


def replaced(one: Run) -> None:
    """A new machine takes the place of one that is gone for good, once that was silent."""
    world, first = one.world, edges_of(one)[0]
    first.stop(server_too=True)
    newer = Host(world, first.path, attached=True)
    newer.machine, newer.run = "another machine", 1000
    world.hosts[first.path] = newer
    one.oracle.disk_lost(newer)
    newer.start()
    one.settle()
    require(A in newer.space.objects, ONE_SESSION, f"the new {newer.path} gets nothing")


def refused(one: Run) -> None:
    """A cluster does not take an object: all else is there, and it is said why."""
    edge = edges_of(one)[0]
    edge.space.refused_for_good[D] = None
    everywhere(one, P3, D, B)
    one.settle()
    require(D not in edge.space.objects, NO_LOSS, f"{edge.path} holds what it refused")
    edge.space.refused_for_good.clear()


def lost_content(one: Run) -> None:
    """A region lost a blob that an edge needs again: others go on, and it is not asked in haste."""
    held = everywhere(one, P3, D)
    one.settle()
    edge, region = edges_of(one)[0], region_of(one)
    address = one.centre.lies_at(held[D])
    lost = region.streams.blobs.pop(address)
    edge.stop(keep_disk=False)
    edge.space.wipe()
    edge.start()
    everywhere(one, P1, A)
    one.world.run(3 * MINUTE)
    require(A in edge.space.objects, NO_LOSS, f"one lost blob stops all at {edge.path}")
    region.streams.blobs[address] = lost
    one.settle()


def lost_reports(one: Run) -> None:
    """Reports that a child knows to be stored are gone from its parent's stream."""
    one.world.faults = replace(one.world.faults, report_loss=0.6)
    everywhere(one, P1, A)
    one.world.run(30.0)
    one.world.faults = replace(one.world.faults, report_loss=0.0)
    one.settle()


def content_swept(one: Run) -> None:
    """The content of a former version leaves every store, not before an hour is over."""
    old = one.centre.lies_at(everywhere(one, P1, A, B)[A])
    one.settle()
    holders = [host for host in one.world.hosts.values() if old in host.streams.blobs]
    require(len(holders) > 2, NO_LOSS, "the former version did not come to every store")
    everywhere(one, P1, A, B)
    one.settle()
    one.world.run(6 * HOUR)
    for host in holders:
        require(old not in host.streams.blobs, BOUNDED, f"{host.path} keeps what nobody wants")


def deaf_edge(one: Run) -> None:
    """One edge says hello and never reads: no other placement's count waits for it."""
    deaf, *others = edges_of(one)
    put(one, P3, None)
    deaf.deaf = True
    everywhere(one, P1, A, B)
    one.world.run(4 * MINUTE)
    target = next(t for t in one.centre.model.targets.values() if t.path == others[0].path)
    one.oracle.model_changed()
    one.centre.put_target(replace(target, labels=(("only", "here"),)))
    one.oracle.model_changed()
    root, key = one.world.root, placement_key(P1)

    def exact() -> bool:
        count = root.node.count(key) if root.node is not None else None
        return count is not None and count.exact

    until(one, exact, EXACTLY_ONCE, "p1 is never exact", 5 * MINUTE)
    count = root.node.count(key).summary.states if root.node is not None else {}
    require(count.get("pending") == 1, EXACTLY_ONCE, f"p1 counts {dict(count)}")
    deaf.deaf = False
    deaf.link_changed(up=False)
    one.world.links_changed(deaf.path)


def resurrected_mail(one: Run) -> None:
    """Old messages lie in a mailbox again, and the edge reads it from the start."""
    edge, region = edges_of(one)[0], region_of(one)
    old = {slot: kept for slot, kept in region.streams.mail.items() if slot[0] == edge.path.name}
    put(one, P2, None)
    everywhere(one, P1, A)
    one.settle()
    region.stop(server_too=True)
    edge.stop(keep_disk=False)
    edge.space.wipe()
    for slot, kept in old.items():
        if region.streams.mail.get(slot) is None:
            region.streams.mail.put(slot, kept.data, kept.mail)
    edge.start()
    region.start()
    one.world.run(MINUTE)
    require(C not in edge.space.objects, NO_RESURRECTION, "a deleted placement is applied")
    one.settle()


def node_removed(one: Run) -> None:
    """A node is removed: its parent keeps no account, mail or report of it."""
    edge, region = edges_of(one)[0], region_of(one)
    target = next(t for t in one.centre.model.targets.values() if t.path == edge.path)
    one.oracle.model_changed()
    one.centre.put_target(target, deleted=True)
    one.centre.put_node(edge.path, deleted=True)
    one.oracle.model_changed()
    one.world.remove(edge.path)
    one.settle()
    one.world.run(15 * MINUTE)
    name = edge.path.name
    kept = [at for at, _ in (*region.streams.mail.items(), *region.streams.stat.items())]
    require(name not in region.streams.children, BOUNDED, f"{name} keeps its account")
    require(name not in {child for child, _ in kept}, BOUNDED, f"{name} keeps its mailbox")


def relay_alone(one: Run) -> None:
    """The centre is gone, a region starts again, and serves an edge that lost everything."""
    edge, region = edges_of(one)[0], region_of(one)
    one.world.root.stop(server_too=True)
    region.stop()
    region.start()
    edge.stop(keep_disk=False)
    edge.space.wipe()
    edge.start()
    one.world.run(5 * MINUTE)
    one.oracle.spaces_as_wanted()
    one.world.root.start()


LIVES = (
    month_away,
    region_wiped,
    edge_forgot,
    old_relay,
    old_view,
    old_edge,
    slept,
    to_and_fro,
    twins,
    replaced,
    refused,
    lost_content,
    lost_reports,
    content_swept,
    deaf_edge,
    resurrected_mail,
    node_removed,
    relay_alone,
)
