"""Lives of the keys of content: they change, with edges away, and some cannot open what comes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, NO_IGNORANCE, SEALED
from tests.simulation.model import Content, placement_key
from tests.simulation.run import Run
from tests.simulation.scenes import P1, A, B, D, edges_of, everywhere, require, says, until
from tests.simulation.steering import Steered

ROTATIONS = CHANGES = 3


def fleet_rotated(one: Run) -> None:
    """The fleet key changes: nothing is applied again, and nobody is held up by it."""
    everywhere(one, P1, A, B)
    one.settle()
    held = {host.path: dict(host.space.objects) for host in edges_of(one)}
    for _ in range(ROTATIONS):
        one.centre.rotate_fleet()
        until(one, lambda: _has_newest(one), CONVERGENCE, "it does not come", 60.0)
        one.settle()
        for host in edges_of(one):
            require(host.space.objects == held[host.path], SEALED, "it is applied again")
    one.centre.rotate_fleet()
    everywhere(one, P1, A, B)
    until(one, lambda: _has_newest(one), CONVERGENCE, "what is new does not come", 60.0)


def rotated_while_away(one: Run) -> None:
    """An edge is away for three changes of the fleet key, and others go on."""
    edge, *others = edges_of(one)
    edge.stop()
    brought: dict = {}
    for _ in range(ROTATIONS):
        one.centre.rotate_fleet()
        brought = everywhere(one, P1, A, D)
        for host in others:
            until(one, _holds(host, brought), CONVERGENCE, "others wait", 60.0)
    edge.start()
    until(one, _holds(edge, brought), CONVERGENCE, "it stays as it was", 60.0)
    until(one, lambda: B not in edge.space.objects, CONVERGENCE, "B stays for ever", 60.0)


def unopened(one: Run) -> None:
    """The key of a node is not known, so that it can open nothing: it keeps all that it has."""
    edge, *others = edges_of(one)
    everywhere(one, P1, A, B)
    one.settle()
    held = dict(edge.space.objects)
    one.centre.forget_key(edge.path)
    one.centre.rotate_fleet()
    brought = everywhere(one, P1, A, D)
    for host in others:
        until(one, _holds(host, brought), CONVERGENCE, "others stay as they were", 60.0)
    until(one, lambda: says(edge, P1, "Sealed"), CONVERGENCE, "it is not said", 60.0)
    _unchanged(edge, held)
    edge.stop()
    edge.start()
    one.world.run(120.0)
    _unchanged(edge, held)
    until(one, lambda: says(edge, P1, "Sealed"), CONVERGENCE, "it is not said again", 60.0)
    one.centre.forget_key(edge.path, known=True)
    until(one, _holds(edge, brought), CONVERGENCE, "it stays sealed", 60.0)
    until(one, lambda: B not in edge.space.objects, CONVERGENCE, "B stays for ever", 60.0)


def placement_key_changed(one: Run) -> None:
    """A placement gets another key three times while an edge is away.

    The centre starts anew when its file holds the key, and again when its ledger does. Nothing is
    applied again anywhere, and the edge opens all that it missed.
    """
    edge, *others = edges_of(one)
    everywhere(one, P1, A, B)
    one.settle()
    held = {host.path: dict(host.space.objects) for host in edges_of(one)}
    edge.stop(server_too=True)
    for turn in range(CHANGES):
        _change_key(one, crash=turn != 1)
        one.world.root.stop(server_too=True)
        one.world.root.start()
        until(one, lambda: _have_newest(one, others), CONVERGENCE, "it does not come", 60.0)
    edge.start()
    until(one, lambda: _has_newest(one), CONVERGENCE, "it does not come there", 60.0)
    one.settle()
    for host in edges_of(one):
        require(host.space.objects == held[host.path], SEALED, "it is applied again")
    brought = everywhere(one, P1, A, D)
    for host in edges_of(one):
        until(one, _holds(host, brought), CONVERGENCE, "what is new does not come", 60.0)


def kept_under_former_key(one: Run) -> None:
    """What a rollout does not let out stays under its key, and all open it after three others.

    Also who was away meanwhile, and who begins with an empty disk.
    """
    edge, other, *_ = edges_of(one)
    brought = everywhere(one, P1, A, B)
    one.settle()
    Steered(one.world, one.centre, P1, {"waves": [{"name": "all", "percent": 100}]})
    one.settle()
    edge.stop(server_too=True)
    for _ in range(CHANGES):
        _change_key(one)
        one.world.run(60.0)
    other.stop(keep_disk=False, server_too=True)
    for host in (edge, other):
        host.start()
    until(one, lambda: _has_newest(one), CONVERGENCE, "it does not come", 120.0)
    one.settle()
    for host in edges_of(one):
        require(_holds(host, brought)(), SEALED, f"{host.path} does not open what stays")


def _change_key(one: Run, *, crash: bool = False) -> None:
    one.oracle.model_changed()
    one.centre.change_placement_key(P1, crash=crash)
    one.oracle.model_changed()


def _has_newest(one: Run) -> bool:
    """Whether all edges have the delta in force; none may say on the way that it lacks a key."""
    return _have_newest(one, edges_of(one))


def _have_newest(one: Run, hosts: Sequence[Host]) -> bool:
    key = placement_key(P1)
    newest = one.centre.records[key].generation
    for host in hosts:
        require(not says(host, P1, "Sealed"), SEALED, f"{host.path} lacks the new key")
    nodes = [host.node for host in hosts]
    return all(
        n is not None and key in n.records and n.records[key].record.generation == newest
        for n in nodes
    )


def _holds(host: Host, brought: dict[object, Content]):
    def holds() -> bool:
        held = host.space.objects
        return all(
            held.get(key, ("",))[0] == form_of(content.reference, None)
            for key, content in brought.items()
        )

    return holds


def _unchanged(edge: Host, held: dict) -> None:
    require(edge.space.objects == held, NO_IGNORANCE, "something changed where nothing opens")


LIVES = (
    fleet_rotated,
    rotated_while_away,
    unopened,
    placement_key_changed,
    kept_under_former_key,
)
