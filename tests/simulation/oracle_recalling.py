"""No deletion from ignorance when a ledger is read back: it is sure with all that could be shown.

Only the centre's own children are asked, and show what they hold. Of a record that a node elsewhere
holds one of them has the same or a newer one, as all that goes down passes through them; but for
what they lost, until a node below has listed it, and for what a machine brought along from where it
hung before.
"""

from __future__ import annotations

from relay.core.records.accepted import Held
from schemas.identity import MailKey, NodePath
from tests.simulation.host import Host
from tests.simulation.losses import Losses
from tests.simulation.oracle import NO_IGNORANCE, NOTES, Oracle
from tests.simulation.places import forget
from tests.simulation.signatures import read_record
from tests.simulation.spaced_centre import SpacedCentre
from tests.simulation.world import LawBroken, World


class RecallOracle(Oracle):
    """The laws of the relay, and beside them what a centre may be sure of."""

    centre: SpacedCentre

    def __init__(self, world: World, centre: SpacedCentre) -> None:
        super().__init__(world, centre)  # type: ignore[arg-type]
        self._losses = Losses()

    # What becomes of disks and machines.

    def disk_lost(self, host: Host) -> None:
        """What a node and one above it lost together nobody can tell it: it begins anew."""
        super().disk_lost(host)
        self._losses.forgot[host.path] = None
        for path in [path for path in self._losses.forgot if host.path.holds(path)]:
            if path in self.world.hosts and path != host.path:
                self._knows_what_it_keeps(self.world.hosts[path], path)
        if any(path != host.path and path.holds(host.path) for path in self._losses.forgot):
            forget(self._highest, host.path)

    def disk_restored(self, host: Host) -> None:
        super().disk_restored(host)
        self._losses.put_back(host.path, self.world.now)

    def arrived(self, host: Host, old: NodePath, *, keeps: bool) -> None:
        super().arrived(host, old, keeps=keeps)
        held = {key: kept for (path, key), kept in self._highest.items() if path == host.path}
        self._losses.arrived(host.path, held)

    def settled(self, *, leftovers: bool = False) -> None:
        super().settled(leftovers=leftovers)
        below = [host for path, host in self.world.hosts.items() if len(path.names) > 1]
        self._losses.clear({host.path: self._has_alone(host) for host in below})

    def _has_alone(self, host: Host) -> dict[str, int]:
        """What the centre's child above it forgot, and has not heard of by its list yet.

        That goes with a heartbeat, and nothing that counts waits for it.
        """
        above = _kept(self.world.hosts[NodePath(host.path.names[:1])])
        forgot = self._losses.above(host.path)
        return {
            key: generation
            for key, generation in _kept(host).items()
            if above.get(key, 0) < generation
            if forgot or generation <= self._losses.left(host.path, key)
        }

    # The law.

    def lacks_nothing(self) -> None:
        """Nothing that a node holds is missing from the ledger, which is sure now."""
        ledger = self.centre.desk.ledger.records
        for host in self.world.hosts.values():
            # Who was lied to may hold what his parent was never sent.
            node = None if host.path.is_root or self.world.lied else host.node
            if node is None or self._need_not_show(host):
                continue
            for key, held in node.records.items():
                known = ledger.get(key)
                lacks = known is None or known.generation < held.generation
                says = held.kind in ("delta", "profile", "location") and held.has_content
                if lacks and says and not self._has_elsewhere(host, key, held):
                    what = f"the ledger is sure without {held.record.source.name}, as {host.path}"
                    raise LawBroken(NO_IGNORANCE, f"{what} holds it")

    def _need_not_show(self, host: Host) -> bool:
        """Whether nobody could ask this node, or who is above it, for what it holds."""
        return (
            self._is_gone_on_without(host)
            or self._is_older(host)
            or self._has_left(host)
            or self._is_cut_off(host)
        )

    def _has_elsewhere(self, host: Host, key: MailKey, held: Held) -> bool:
        """Whether it holds what the centre's child above it need not have."""
        hung = {target.path for target in self.centre.model.targets.values()}
        if held.kind == "delta" and host.attached and host.path not in hung:
            # It keeps until it moves on what its parent was told to let go of.
            return True
        if held.generation <= self._losses.left(host.path, key):
            return True
        return self._was_brought(host, key, held.generation)

    def _is_gone_on_without(self, host: Host) -> bool:
        """Whether someone went on without it, and it showed nothing, or is below one such."""
        reading, (name, *below) = self.centre.desk.reading, host.path.names
        showed = any(item.child == name for item in reading._recalled)
        return reading.is_waived(name) and (bool(below) or not showed)

    def _is_older(self, host: Host) -> bool:
        """Whether it holds by now what the centre's child above, or it itself, could not show."""
        answered = self.centre.desk.answered.get(host.path.names[0], 0.0)
        return self._losses.is_older(host.path, answered)

    def _has_left(self, host: Host) -> bool:
        """Whether it still hangs right below a centre that has no account of it any more.

        Its SyncTarget hangs elsewhere, and it has not gone there: it cannot be reached until then.
        """
        accounts, nodes = self.world.root.streams.children, self.centre.model.nodes
        left = host.path not in nodes and host.path.name not in accounts
        return left and host.path.parent.is_root

    def _is_cut_off(self, host: Host) -> bool:
        """Whether one of the centre's own children, which alone are asked, forgot what this holds.

        What both lost at the same time only the sites below know, and nobody asks these.
        """
        return self._losses.above(host.path)

    def _was_brought(self, host: Host, key: MailKey, generation: int) -> bool:
        """Whether it came with this, which the centre's child above it was never sent.

        Its old parent was the centre, or lost it: it alone has it, and hangs where nobody is asked.
        """
        above = self._highest.get((NodePath(host.path.names[:1]), key), 0)
        return above < generation <= self._losses.brought(host.path, key)


def _kept(host: Host) -> dict[str, int]:
    """The generations of all records in its own store."""
    own = [item for item in host.streams.own.items() if item[0] not in NOTES]
    return {key: read_record(kept.data, 0)[1].generation for key, kept in own}
