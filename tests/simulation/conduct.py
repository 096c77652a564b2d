"""Laws on how a node goes about it: with patience, saying what it is not shown, within its subtree.

The oracle asks here at each step. Names of laws are in `laws`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from relay.core import effects as fx
from relay.core import tombstones
from relay.core.freshness import LOOK_SECONDS, STALE_AFTER_SECONDS
from relay.core.node import Node
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey, NodePath
from schemas.records import DeltaHead, NodeRecord, Profile
from schemas.reports import Report, decode_report
from tests.simulation.centre import Centre
from tests.simulation.host import Host
from tests.simulation.laws import (
    BOUNDED,
    LEAST_PRIVILEGE,
    NO_LOSS,
    NO_RESURRECTION,
    WITHHOLDING,
)
from tests.simulation.places import rename
from tests.simulation.world import LawBroken, World

FAILURES_MAX, FAILURES_SECONDS = 40, 10.0
"""So often a blob that is not here may be asked for within so long in one run over one link: with
backoff it is 5 for each placement that asks for it."""
SEEN_AFTER_SECONDS = STALE_AFTER_SECONDS + 2 * LOOK_SECONDS


class Conduct:
    """Watches the nodes of one world."""

    def __init__(self, world: World, centre: Centre) -> None:
        self.world, self.centre = world, centre
        self._shown: dict[NodePath, tuple[Node, int, float]] = {}
        self._gone: dict[tuple[NodePath, str], None] = {}
        self._put_back: dict[NodePath, None] = {}
        self._failures: dict[tuple[NodePath, int, int, str], deque[float]] = {}

    def effect(self, host: Host, effect: object) -> None:
        """What the oracle itself has no law for."""
        match effect:
            case fx.ResetMail():
                self.read_on(host, effect.sequence)
            case fx.LoadBlob():
                self.asked(host, effect.reference.address)
            case fx.Noted() if effect.reason == "MissingBlob":
                self.missed(host, effect)

    def handled(self, host: Host) -> None:
        """A node whose parent shows it no newer index says so within 20 minutes and two looks."""
        node, now = host.node, self.world.now
        if node is None or host.path.is_root:
            return
        generation = node._state.index.generation
        known = self._shown.get(host.path)
        if known is None or known[0] is not node or known[1] != generation:
            self._shown[host.path] = (node, generation, now)
        elif now - known[2] > SEEN_AFTER_SECONDS and not node._state.stale:
            what = f"{host.path} has seen no newer index for {now - known[2]:.0f} s, and is silent"
            raise LawBroken(WITHHOLDING, what)

    def applying(self, host: Host, placements: Iterable[str]) -> None:
        """What an edge has answered for as gone it does not begin until it is told of it anew."""
        for placement in placements:
            if (host.path, placement) in self._gone and not self.world.lied:
                what = f"{host.path} begins {placement}, which it had answered for as gone"
                raise LawBroken(NO_RESURRECTION, what)

    def forgets(self, host: Host) -> None:
        """A node that is put back to an older disk does not know what it answered.

        What its children are told anew lies in their mailboxes, as these were.
        """
        told = {
            (host.path.child(child), MailKey(key)) for (child, key), _ in host.streams.mail.items()
        }
        gone = [at for at in self._gone if at[0] != host.path and at not in told]
        self._gone = dict.fromkeys(gone)
        self._put_back[host.path] = None

    def settled(self) -> None:
        """What an old disk did not know is known again, and all that was withheld is shown."""
        self._put_back.clear()
        self.world.settled()

    def arrived(self, host: Host, old: NodePath) -> None:
        """A machine knows at its new place what it answered, unless it is told anew there."""
        rename(self._gone, old, host.path)
        parent = self.world.hosts.get(host.path.parent)
        for path, key in list(self._gone):
            told = parent is not None and parent.streams.mail.get((host.path.name, key)) is not None
            if path == host.path and told:
                del self._gone[path, key]

    def faults(self) -> list[str]:
        """What is not as it should be after a rest."""
        return [*self.leftover_faults(), *self.view_faults()]

    def view_faults(self) -> list[str]:
        """What nodes say of an old view though nobody shows them one."""
        faults = []
        for host in self.world.hosts.values():
            state = host.node._state if host.node is not None else None
            if state is not None and (state.old_view or state.withheld):
                said = state.old_view or sorted(state.withheld.values())
                faults.append(f"{WITHHOLDING}: {host.path} says {said}")
        return faults

    def leftover_faults(self) -> list[str]:
        """Slots and records of what is gone: memory that would grow with time."""
        faults = []
        live = {key for key, record in self.centre.records.items() if not record.deleted}
        for host in self.world.hosts.values():
            for (child, key), _kept in host.streams.mail.items():  # noqa: PERF102
                if key not in live:
                    faults.append(f"{host.path} keeps mail to {child} of a record that is gone")
            if not host.path.is_root:
                for key in host.streams.own:
                    gone = self.centre.records.get(MailKey(key))
                    if gone is not None and key not in live and isinstance(gone, DeltaHead):
                        name = self.centre.records[MailKey(key)].source
                        faults.append(f"{host.path} keeps {name.api} {name.name}, which is gone")
            elif host.node is None:
                faults.append("the centre does not run")
        counted = Counter(faults)
        return [f"{BOUNDED}: {fault} ({count} times)" for fault, count in counted.items()]

    def asked(self, host: Host, address: str) -> None:
        """What cannot be had is asked for with patience."""
        if address in host.streams.blobs:
            return
        key = (host.path, host.run, host.link_epoch, address)
        times = self._failures.setdefault(key, deque(maxlen=FAILURES_MAX))
        times.append(self.world.now)
        if len(times) == FAILURES_MAX and times[-1] - times[0] < FAILURES_SECONDS:
            what = f"{host.path} asks for {address[:12]} {len(times)} times in {FAILURES_SECONDS} s"
            raise LawBroken(NO_LOSS, what)

    def missed(self, host: Host, noted: fx.Noted) -> None:
        """Content is called missing by the word of one who was asked, not for want of a link.

        A slow node may take in that word after the link is gone that brought it.
        """
        heard = host.denied.pop(noted.subject, -1) >= host.link_epoch - 1
        if not host.path.is_root and not host.linked and not heard:
            what = f"{host.path} says that {noted.subject} is missing, and has no link to ask by"
            raise LawBroken(NO_LOSS, what)

    def written(self, host: Host, write: fx.WriteMail) -> None:
        """A child is told of its own destinations and nodes, and of what it was told before."""
        if self._gone:
            self._gone.pop((host.path.child(write.child), write.key), None)
        if write.child not in host.streams.children:
            what = f"{host.path} writes to {write.child}, which is none of its children"
            raise LawBroken(LEAST_PRIVILEGE, what)
        record = self.centre.records.get(write.key)
        sent = host.streams.mail.get((write.child, str(write.key))) is not None
        if sent or self.world.lied or not isinstance(record, Profile | NodeRecord):
            # Of what a child was told by a liar it asks, and is answered.
            return
        child = host.path.child(write.child)
        below = [host for path, host in self.world.hosts.items() if child.holds(path)]
        if any(write.key in host.streams.own for host in below):
            # Who moved there with it lists it, and each relay on the way asks for it.
            return
        if not any(child.holds(path) for path in self._paths_of(record)):
            what = f"{host.path} tells {write.child} of {record.source.name}, which is elsewhere"
            raise LawBroken(LEAST_PRIVILEGE, what)

    def _paths_of(self, record: Profile | NodeRecord) -> list[NodePath]:
        """Where a record's destination or node hangs, or ever hung."""
        if isinstance(record, NodeRecord):
            return [record.path]
        past = self.centre.past.targets
        named = [p for p, ts in past.items() if any(t.name == record.source.name for t in ts)]
        return [record.path, *named]

    def _knows_it_said(self, host: Host, report: Report, clear: fx.ClearMail) -> bool:
        """Whether the child did not go back to an older disk after it had sent this answer."""
        path = host.path.child(clear.child)
        child = self.world.hosts.get(path)
        same = child is not None and child.node and child.node._state.inbox.epoch == report.epoch
        return path not in self._put_back or bool(same)

    def cleared(self, host: Host, clear: fx.ClearMail) -> None:
        """A tombstone stays until it was answered for or is old, unless a child lied about it."""
        kept = host.streams.mail.get((clear.child, clear.key))
        record = self.centre.records.get(clear.key)
        if kept is None or kept.mail is None or record is None or kept.sequence != clear.sequence:
            return
        if kept.mail.has_body or clear.key in (INDEX_KEY, KEYS_KEY) or host.node is None:
            return
        state = host.node._state
        age = state.now.wall_ms - kept.mail.generation
        child = state.children.get(clear.child)
        if age > tombstones.RETENTION_MS or child is None:
            return
        if isinstance(record, DeltaHead) and clear.key not in state.held:
            # By the index it is gone for all.
            return
        answered = child.cursor
        if isinstance(record, DeltaHead):
            said = host.streams.stat.get((clear.child, clear.key))
            report = decode_report(said.data) if said is not None else None
            answered = report.answered if isinstance(report, Report) else 0
            if (
                isinstance(report, Report)
                and report.gone
                and self._knows_it_said(host, report, clear)
            ):
                self._gone[host.path.child(clear.child), clear.key] = None
        elif host.path.child(clear.child) in self._put_back:
            # It answered, maybe in this very batch, and then began anew on an older cursor.
            return
        if answered < clear.sequence:
            what = f"{host.path} sweeps {record.source.name} before {clear.child} answered for it"
            raise LawBroken(NO_RESURRECTION, what)

    def read_on(self, host: Host, sequence: int) -> None:
        """Whoever has read less than was swept reads in full."""
        parent = self.world.hosts.get(host.path.parent)
        if sequence <= 1 or parent is None or parent.node is None or host.node is None:
            return
        inbox = host.node._state.inbox
        swept = parent.node._state.swept_through
        if inbox.incarnation == parent.incarnation and sequence <= swept:
            what = f"{host.path} reads on from {sequence}, though {swept} was swept"
            raise LawBroken(NO_RESURRECTION, what)
