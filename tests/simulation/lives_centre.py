"""Lives in which the centre forgets: a lost ledger, an old disk, a clock that is behind."""

from __future__ import annotations

from schemas.objects.objects import ObjectKey
from schemas.values.identity import SNAPSHOT_KEY
from tests.simulation.chaos import put_back
from tests.simulation.customizing import form_of
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, NO_IGNORANCE, NO_RESURRECTION
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
    holding,
    lose_ledger,
    put,
    region_of,
    require,
    until,
)

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


def _orphans(one: Run) -> dict[str, int]:
    found = {}
    for host in one.world.hosts.values():
        if host.node is not None:
            found[str(host.path)] = len(host.node.orphans())
    return found


def ledger_lost(one: Run) -> None:
    """The ledger is lost, not the spaces: nothing is written to any cluster."""
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    lose_ledger(one)
    one.settle()
    for host in edges_of(one):
        require(host.space.objects == before[host.path], NO_IGNORANCE, f"{host.path} was touched")


def ledger_lost_twice(one: Run) -> None:
    """Lost, and lost again; of each loss something is orphaned until a person withdraws it."""
    for name, key in ((P2, C), (P1, B)):
        term = one.centre.terms[-1]
        lose_ledger(one, name)
        one.world.run(3 * MINUTE)
        require(len(holding(one, key)) == len(edges_of(one)), NO_IGNORANCE, f"{name} was pruned")
        require(bool(sum(_orphans(one).values())), CONVERGENCE, "no one tells of orphans")
        one.centre.withdraw(term)
        one.oracle.model_changed()
        until(one, lambda key=key: not holding(one, key), CONVERGENCE, f"{name} stays", 15 * MINUTE)
    one.settle()
    require(not sum(_orphans(one).values()), CONVERGENCE, "orphans stay that were withdrawn")


def disk_rolled_back(one: Run) -> None:
    """The machine of the centre goes back an hour, and nobody notices; its space with it."""
    copy = one.world.root.streams.copy()
    everywhere(one, P3, D)
    one.settle()
    one.world.run(60 * MINUTE)
    one.world.root.stop()
    put(one, P3, None)
    put_back(one.world.root, copy)
    one.world.run(15 * MINUTE)
    require(len(holding(one, D)) == len(edges_of(one)), NO_IGNORANCE, "what it forgot is pruned")
    require(bool(sum(_orphans(one).values())), CONVERGENCE, "no one tells of orphans")
    one.oracle.model_changed()
    for term in one.centre.terms[:-1]:
        one.centre.withdraw(term)
    one.oracle.model_changed()
    one.settle()


def restored_from_backup(one: Run) -> None:
    """The centre's streams are those of yesterday; its spaces are of today.

    Content that is not used was swept since. By night the machines below are off.
    """
    copy = one.world.root.streams.copy()
    everywhere(one, P3, D)
    everywhere(one, P1, A, B)
    put(one, P2, None)
    one.settle()
    one.world.run(3 * HOUR)
    below = [region_of(one), *edges_of(one)]
    for host in below:
        host.stop(server_too=True)
    one.world.run(DAY)
    for host in below:
        host.start()
    one.settle()
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    put_back(one.world.root, copy)
    one.settle()
    for host in edges_of(one):
        require(host.space.objects == before[host.path], NO_IGNORANCE, f"{host.path} was touched")


def million_registered(one: Run) -> None:
    """Generations run 20 minutes ahead of the clock, and then the ledger is lost."""
    one.centre.run_ahead(22 * 60 * 1000)
    everywhere(one, P1, A, B)
    everywhere(one, P3, D)
    one.settle()
    # Nobody is connected while it starts.
    region = region_of(one)
    one.world.cut(region.path)
    lost = one.centre.terms[-1]
    lose_ledger(one, P3)
    one.world.run(25 * MINUTE)
    one.world.heal(region.path)
    one.world.run(25 * MINUTE)
    require(len(holding(one, D)) == len(edges_of(one)), NO_IGNORANCE, "what it forgot is pruned")
    everywhere(one, P2, C)
    one.centre.withdraw(lost)
    one.oracle.model_changed()
    one.settle()


def erased_and_back(one: Run) -> None:
    """What was erased is in the centre's store again after a kill: by the snapshot it is gone."""
    root = one.world.root
    old = dict(root.streams.own)
    put(one, P2, None)
    one.settle()
    root.stop(server_too=True)
    for key, kept in old.items():
        root.streams.own.setdefault(key, kept)
    root.start()
    one.world.run(MINUTE)
    require(not holding(one, C), NO_RESURRECTION, "a deleted placement is applied again")
    one.settle()


def removal_not_seen(one: Run) -> None:
    """The ledger lacks what its last snapshot lists: it is held, and goes when people say so."""
    root = one.world.root
    # A snapshot lists it: what none ever listed is unknown, and not lost.
    one.world.run(11 * MINUTE)
    root.stop(server_too=True)
    put(one, P2, None)
    del root.streams.own[placement_key(P2)]
    root.start()
    one.world.run(15 * MINUTE)
    require(len(holding(one, C)) == len(edges_of(one)), NO_IGNORANCE, "it is not held")
    one.oracle.model_changed()
    one.centre.accept()
    one.oracle.model_changed()
    until(one, lambda: not holding(one, C), CONVERGENCE, "p2 stays", 25 * MINUTE)


def shown_a_newer(one: Run) -> None:
    """The centre goes back, and a child shows a snapshot above all that it knows: it goes above."""
    copy = one.world.root.streams.copy()
    one.centre.run_ahead(3 * 3600 * 1000)
    everywhere(one, P1, A, B)
    # A snapshot is signed that far ahead: without one nothing is shown.
    one.world.run(11 * MINUTE)
    one.settle()
    put_back(one.world.root, copy)
    brought = everywhere(one, P1, A, B)
    one.settle()
    held = {host.space.objects[A][0] for host in edges_of(one)}
    require(
        held == {form_of(brought[A].reference, None)},
        CONVERGENCE,
        "the newer version does not come",
    )


def older_backup_changed(one: Run) -> None:
    """A restored centre forgot a change: nobody goes back, and the next change reaches everyone."""
    _restore_older(one)
    brought = everywhere(one, P1, A, B)
    form = form_of(brought[A].reference, None)
    until(one, lambda: _forms(one, A) == {form}, CONVERGENCE, "the change does not come", HOUR)
    one.centre.withdraw(one.centre.terms[0])
    one.oracle.model_changed()
    one.settle()
    require(not sum(_orphans(one).values()), CONVERGENCE, "orphans stay that were withdrawn")


def older_backup_withdrawn(one: Run) -> None:
    """The same, and people want what the backup says: they withdraw what came after it."""
    _restore_older(one)
    one.centre.relapse()
    one.centre.withdraw(one.centre.terms[0])
    one.oracle.model_changed()
    one.settle()
    require(not sum(_orphans(one).values()), CONVERGENCE, "orphans stay that were withdrawn")


def _restore_older(one: Run) -> None:
    """Put the centre back, its spaces too, to before a change of p1 that every edge holds."""
    root, centre, key = one.world.root, one.centre, placement_key(P1)
    one.settle()
    copy, restore_spaces, record = root.streams.copy(), centre.copied(), centre.records[key]
    one.world.run(2 * MINUTE)
    everywhere(one, P1, A, B)
    one.settle()
    before = {host.path: dict(host.space.objects) for host in edges_of(one)}
    one.oracle.model_changed()
    root.stop()
    restore_spaces()
    centre.records[key] = record
    put_back(root, copy)
    one.world.run(15 * MINUTE)
    for host in edges_of(one):
        require(host.space.objects == before[host.path], NO_RESURRECTION, f"{host.path} went back")
    require(centre.records[key] is record, NO_IGNORANCE, "it is issued anew, and nobody asked")
    assert root.node is not None
    # A relay may be a destination, too.
    count, everyone = root.node.count(key), len(centre.model.targets)
    told = [it for it in count.summary.exceptions if it.reason.startswith("Orphaned")]
    says = f"it counts {count}"
    require(count.exact and bool(told), EXACTLY_ONCE, says)
    require(count.summary.states == {"pending": everyone}, EXACTLY_ONCE, says)
    slots = _slots(one)
    one.world.run(5 * MINUTE)
    require(_slots(one) == slots, CONVERGENCE, "mailboxes are written over and over")


def _slots(one: Run) -> dict[tuple[str, str, str], int]:
    """Where in the streams lies what was written to children, but for snapshots."""
    return {
        (str(host.path), child, key): kept.sequence
        for host in one.world.hosts.values()
        for (child, key), kept in host.streams.mail.items()
        if key != SNAPSHOT_KEY
    }


def _forms(one: Run, key: ObjectKey) -> set[str]:
    return {host.space.objects[key][0] for host in edges_of(one)}


LIVES = (
    ledger_lost,
    ledger_lost_twice,
    disk_rolled_back,
    restored_from_backup,
    older_backup_changed,
    older_backup_withdrawn,
    million_registered,
    erased_and_back,
    removal_not_seen,
    shown_a_newer,
)
