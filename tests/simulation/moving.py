"""Edges move to other parents as `node move` and `join` have them do it, each step in its own time.

A place is made, the SyncTarget says it, the process ends, its streams are carried over, and it goes
on there. Anything may happen between: crashes, cuts of both parents, another move, back even.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from schemas.records.moves import MOVED_ANNOTATION, after_move
from schemas.values.identity import NodePath
from tests.doubles.memory.streams import MemoryStreams
from tests.simulation.centre import Centre
from tests.simulation.host import Host
from tests.simulation.model import Target
from tests.simulation.oracle import Oracle
from tests.simulation.world import World

TRIES_MAX = 12
"""So often the new parent is looked at, whether it has let the node in."""
CUT, BY_HAND, KILLED = 0.5, 0.2, 0.2
"""Chances: that a parent is cut off meanwhile, that nobody waits until the new one has let the node
in, that carrying over is broken off."""


@dataclass
class Move:
    """One call of `node move`: which SyncTarget, and where to."""

    name: str
    path: NodePath
    old: NodePath
    tries: int = TRIES_MAX
    waits: bool = True


@dataclass
class Mover:
    """Whose machine it is, and how many moves of it are not over."""

    host: Host
    moves: int = 0
    carrying: bool = field(default=False)


class Moving:
    """The moves of one world; each step takes `pace` seconds on average."""

    def __init__(self, world: World, centre: Centre, oracle: Oracle, pace: float) -> None:
        self._world, self._centre, self._oracle, self._pace = world, centre, oracle, pace
        self._movers: dict[str, Mover] = {}

    def is_moving(self, name: str) -> bool:
        """Whether this SyncTarget's machine has not come to where it is said to be yet."""
        return name in self._movers

    def places(self) -> list[NodePath]:
        """Where an edge may hang below: the centre and all relays."""
        hosts = self._world.hosts
        return sorted(path for path in hosts if path.is_root or not path.name.startswith("e"))

    def begin(self, name: str) -> None:
        """Move the edge of this SyncTarget to another parent, if there is one."""
        said, random = self._said(name), self._world.random
        if said is None or not said.path.name.startswith("e") or not self._centre.ready:
            return
        parents = [path for path in self.places() if path != said.path.parent]
        host = self._world.hosts.get(said.path)
        if not parents or host is None or name in self._movers:
            # Who moves again what is not there yet may have it let go of everything: known limits.
            return
        path = random.choice(parents).child(said.path.name)
        move = Move(name, path, said.path)
        if move.path in self._world.hosts and move.path != host.path:
            return
        self._world.note("user", f"moves {name} from {said.path} to {move.path}")
        self._movers[name] = Mover(host)
        self._movers[name].moves += 1
        move.waits = random.random() >= BY_HAND
        self._centre.put_node(move.path)
        for parent in (said.path.parent, move.path.parent):
            self._maybe_cut(parent)
        self._soon(self._say, move)

    def end(self, name: str, path: NodePath) -> NodePath:
        """Where the machine is of a SyncTarget that goes from a path: whoever moves it gives up."""
        mover = self._movers.pop(name, None)
        return mover.host.path if mover is not None else path

    def _said(self, name: str) -> Target | None:
        """What a SyncTarget says now; None if there is none any more for good."""
        return self._centre.model.targets.get(name)

    def _soon(self, step: Callable[[Move], None], move: Move) -> None:
        self._world.after(self._world.random.expovariate(1 / self._pace), step, move)

    def _maybe_cut(self, path: NodePath) -> None:
        world = self._world
        if path.is_root or world.random.random() >= CUT or world.is_cut(path):
            return
        world.cut(path)
        world.after(world.random.expovariate(1 / (3 * self._pace)), world.heal, path)

    # The steps.

    def _say(self, move: Move) -> None:
        """The SyncTarget is changed once the new parent has let the node in."""
        said, mover = self._said(move.name), self._movers.get(move.name)
        if not self._centre.ready:
            self._soon(self._say, move)
            return
        lacks_place = self._centre.has_left(move.path)
        if said is None or mover is None or said.path != move.old or lacks_place:
            # It was moved elsewhere meanwhile, or the place was taken away again.
            self._give_up(move)
            return
        parent = self._world.hosts.get(move.path.parent)
        if move.waits and (parent is None or move.path.name not in parent.streams.children):
            move.tries -= 1
            if move.tries:
                self._soon(self._say, move)
            else:
                self._give_up(move)
            return
        self._oracle.model_changed()
        self._oracle.said_elsewhere(said.path, move.path)
        moved_from = after_move({MOVED_ANNOTATION: said.moved_from}, said.path, move.path)
        self._centre.put_target(replace(said, path=move.path, moved_from=moved_from))
        self._oracle.model_changed()
        for path in (said.path.parent, move.path.parent):
            self._maybe_cut(path)
        self._soon(self._join, move)

    def _give_up(self, move: Move) -> None:
        """Leave it where it is said to be; takes effect once the centre can be told."""
        said = self._said(move.name)
        if not self._centre.ready:
            self._soon(self._give_up, move)
            return
        self._world.note("user", f"gives up to move {move.name} to {move.path}")
        if said is None or said.path != move.path:
            self._centre.put_node(move.path, deleted=True)
        self._over(move)

    def _over(self, move: Move) -> None:
        mover = self._movers.get(move.name)
        if mover is not None:
            mover.moves -= 1
            if not mover.moves and not mover.carrying:
                del self._movers[move.name]

    def _join(self, move: Move) -> None:
        """The process ends where it is, and what it keeps is carried over; the last token counts.

        One that was made void by a later move is not used.
        """
        mover, said = self._movers.get(move.name), self._said(move.name)
        if mover is not None and mover.carrying:
            self._soon(self._join, move)
            return
        if mover is None or said is None or said.path != move.path or mover.host.path == said.path:
            self._over(move)
            return
        if not self._centre.has_left(move.old):
            self._soon(self._join, move)
            return
        host, mover.carrying = mover.host, True
        host.stop(server_too=True)
        self._world.hosts.pop(host.path)
        self._world.note("user", f"carries {host.path} over to {move.path}")
        self._world.after(
            self._world.delay(), self._carry, move, mover, said.former, MemoryStreams()
        )

    def _carry(
        self, move: Move, mover: Mover, former: tuple[NodePath, ...], arrived: MemoryStreams
    ) -> None:
        """Copy what the node keeps for itself; broken off, it is begun again on what arrived."""
        random, kept = self._world.random, mover.host.streams
        if self._movers.get(move.name) is not mover:
            return
        broken = random.random() < KILLED
        copied = 0
        items = len(kept.blobs) + len(kept.own) + len(kept.done)
        stops_at = random.randint(0, items) if broken else items
        for old, new in (
            (kept.blobs, arrived.blobs),
            (kept.own, arrived.own),
            (kept.done, arrived.done),
        ):
            for key, value in old.items():
                if copied < stops_at:
                    copied += 1
                    new[key] = value  # type: ignore[index]
        if broken:
            self._world.note("user", f"is broken off after {copied} of {items}")
            again = random.expovariate(1 / self._pace)
            self._world.after(again, self._carry, move, mover, former, arrived)
            return
        self._arrive(move, mover, former, arrived)

    def _arrive(
        self, move: Move, mover: Mover, former: tuple[NodePath, ...], arrived: MemoryStreams
    ) -> None:
        host, old, random = mover.host, mover.host.path, self._world.random
        keeps = random.random() >= self._world.faults.disk_loss / 2
        host.hang(move.path, former)
        self._oracle.arrived(host, old, keeps=keeps)
        host.streams = arrived if keeps else MemoryStreams()
        mover.carrying = False
        self._world.hosts[host.path] = host
        host.start()
        self._over(move)
