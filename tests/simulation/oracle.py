"""The laws, by their names in the architecture: safety at each step, convergence after settling.

| safety property | where it is checked |
| --- | --- |
| 1 Convergence | `settled`; in `rest` also that nothing moves any more |
| 2 No resurrection | `_stored`: no generation goes back, nothing comes that the index had dropped |
| 3 Only signed, only mine | `_stored`, `_kept`, `applying`; `pruning` tells who made an object |
| 4 No loss on reject | `settled`: all else is as it should be, `_untold`: it is said why; |
|   | `Conduct.asked`, `missed`: content is asked for with backoff, and called missing only by |
|   | the word of one who was asked; the worlds `refused`, `lost_content` |
| 5 Bounded | `leftover_faults` at each rest, `World.run`: steps; `soak`: bytes over a year |
| 6 Autonomy | `spaces_as_wanted`, in the worlds where the parent is gone (`test_swarm`) |
| 7 Exactly once counting | `_counted`, and `_summary_faults` once all is settled |
| 8 Least privilege | `Conduct.written`: each child is told of what is its own; the world |
|   | `lying_child`; that the server enforces it: `tests/nats/test_isolation.py` |
| 9 No deletion from ignorance | `pruning`, `_cleared`, `_dropped`, `Conduct.cleared`, `read_on` |
| 10 Withholding is seen | `Conduct.handled`: within 20 minutes by the node's own clock, and |
|   | `view_faults`: only if it is so; the worlds `old_index`, `no_end`, `withheld` |
Besides: what is acknowledged is kept, content comes before its delta, the older session stops.
"""

from __future__ import annotations

from relay.core import effects as fx
from relay.core.tombstones import SWEPT_KEY
from schemas import blobs
from schemas.identity import ContentHash, MailKey, NodePath
from schemas.objects import ObjectKey
from schemas.records import DeltaHead
from schemas.reports import Summary
from schemas.subjects import CURSOR_KEY
from tests.simulation.acknowledging import Acknowledging
from tests.simulation.centre import Centre, arms_of, placement_key
from tests.simulation.conduct import Conduct
from tests.simulation.content import missing
from tests.simulation.host import Host
from tests.simulation.laws import (
    AUTONOMY,
    CONTENT_FIRST,
    CONVERGENCE,
    EXACTLY_ONCE,
    NO_IGNORANCE,
    NO_LOSS,
    NO_RESURRECTION,
    ONLY_SIGNED,
)
from tests.simulation.places import Places, all_of, forget, rename
from tests.simulation.prescribed import (
    arm_for,
    expected_summary,
    is_meant,
    prescribed,
    was_meant,
)
from tests.simulation.signatures import read_record
from tests.simulation.telling import differing, shortened
from tests.simulation.world import LawBroken, Watcher, World

NOTES = (CURSOR_KEY, SWEPT_KEY)
"""What a node keeps in OWN of its own."""


class Oracle(Watcher):
    """Watches one world."""

    def __init__(self, world: World, centre: Centre) -> None:
        self.world, self.centre = world, centre
        self.conduct = Conduct(world, centre)
        self.handled = self.conduct.handled
        self._highest: dict[tuple[NodePath, str], int] = {}
        self.acknowledging = Acknowledging(world, centre, self._highest)
        self._behind: dict[NodePath, None] = {}
        self._wiped: dict[NodePath, None] = {}
        self._orphans: dict[NodePath, dict[ObjectKey, None]] = {}
        self._not_wanted: dict[tuple[NodePath, ObjectKey], float] = {}
        self._settled_at: float | None = None
        self._held: dict[NodePath, dict[ObjectKey, str]] = {}
        self._places = Places()
        self.quiet = False
        world.watcher = self

    # At every step.

    def effect(self, host: Host, effect: object) -> None:
        match effect:
            case fx.StoreOwn() if effect.key not in NOTES and effect.data is not None:
                self._stored(host, effect.key, effect.generation, effect.data)
            case fx.WriteMail():
                self.conduct.written(host, effect)
                if effect.has_body and effect.key in self.centre.records:
                    self._sent(host, effect)
            case fx.SummaryChanged():
                self._counted(effect.key)
            case fx.KeepBlob():
                self._kept(host, effect.address, effect.value)
            case fx.DropBlobs():
                self._dropped(host, effect.addresses)
            case fx.ClearMail():
                self._cleared(host, effect)
                self.conduct.cleared(host, effect)
            case _:
                self.acknowledging.effect(host, effect)
                self.conduct.effect(host, effect)
        if self.quiet:
            self._rests(host, effect)

    def _stored(self, host: Host, key: str, generation: int, data: bytes) -> None:
        if data not in self.centre.issued:
            raise LawBroken(ONLY_SIGNED, f"{host.path} keeps under {key} what no one issued")
        highest = self._highest.get((host.path, key), 0)
        if generation < highest:
            what = f"{host.path} goes back from {highest} to {generation} under {key}"
            raise LawBroken(NO_RESURRECTION, what)
        self._highest[host.path, key] = generation
        record = self.centre.records.get(MailKey(key))  # None: lost, and still on its way.
        if isinstance(record, DeltaHead) and host.node is not None:
            self._not_gone(host, MailKey(key), generation)

    def _not_gone(self, host: Host, key: MailKey, generation: int) -> None:
        """What no index that a node read in this turn lists, and is no newer, is not in force."""
        node = host.node
        assert node is not None
        taken = node.records.get(key)
        if taken is None or not taken.has_body:
            return
        if key in host.streams.own:
            # Newer than what is held of it: that needs no index.
            return
        read = sorted(index for index in host.indexes_read if index)
        if not read:
            raise LawBroken(NO_RESURRECTION, f"{host.path} takes {key} before it saw any index")
        listed = [self.centre.listed(index, key) for index in read]
        if generation <= min(read) and all(at is None or at > generation for at in listed):
            what = f"{host.path} takes {key} of {generation}, its index lists {listed[-1]}"
            raise LawBroken(NO_RESURRECTION, what)

    def _kept(self, host: Host, address: ContentHash, value: bytes) -> None:
        true = self.world.root.streams.blobs.get(address)
        if true is not None and true != value:
            raise LawBroken(ONLY_SIGNED, f"{host.path} keeps another value as {address[:12]}")

    def _dropped(self, host: Host, addresses: tuple[ContentHash, ...]) -> None:
        """No blob goes that something in force leads to, at a node that keeps the record.

        Who has nobody below needs what is meant for its own cluster, of the arm that it is in.
        """
        own, paths = host.streams.own, self.world.hosts
        last = host.attached and all(p.is_root or p.parent != host.path for p in paths)
        targets = [t for t in self.centre.model.targets.values() if t.path == host.path]
        for name, placed in self.centre.model.placements.items():
            if placement_key(name) not in own:
                continue
            mine = [arm_for(placed, t) for t in targets if is_meant(self.centre.model, placed, t)]
            for arm in mine if last else arms_of(placed):
                led = {arm.root.address, *(c.reference.address for _, c in arm.contents)}
                if led & set(addresses) and self._is_newest(host, placement_key(name)):
                    what = f"{host.path} drops content of {name}, which is in force"
                    raise LawBroken(NO_IGNORANCE, what)

    def _is_newest(self, host: Host, key: MailKey) -> bool:
        return self._highest.get((host.path, key), 0) == self.centre.records[key].generation

    def _cleared(self, host: Host, clear: fx.ClearMail) -> None:
        """No slot is cleared that holds what is in force."""
        kept = host.streams.mail.get((clear.child, clear.key))
        record = self.centre.records.get(clear.key)
        if kept is None or kept.mail is None or record is None or kept.sequence != clear.sequence:
            return
        if kept.mail.has_body and kept.mail.generation == record.generation and not record.deleted:
            what = (
                f"{host.path} takes {clear.key}, which is in force, out of {clear.child}'s mailbox"
            )
            raise LawBroken(NO_IGNORANCE, what)

    def _sent(self, host: Host, write: fx.WriteMail) -> None:
        """What a delta leads to is in the sender's own store."""
        for reference in self.centre.records[write.key].references:
            if reference.kind == blobs.MANIFEST and missing(host, write):
                what = f"{host.path} sends {write.child} a delta before its content"
                raise LawBroken(CONTENT_FIRST, what)

    def _counted(self, key: MailKey) -> None:
        """A complete summary has each destination that is meant once; who leaves is extra."""
        node = self.world.root.node
        if node is None or key not in node.records or self.world.withheld:
            return
        summary = node.summary(key)
        states = summary.states
        if not summary.complete or states.get("unreachable") or self.world.lying:
            return
        name = node.records[key].record.source.name
        placed = self.centre.model.placements.get(name)
        issued, held = self.centre.records.get(key), node.records[key]
        stale = issued is None or held.generation != issued.generation
        if placed is None or stale or self._in_flight():
            return
        model = self.centre.model
        targets = [t for t in model.targets.values() if t.path in model.nodes]
        meant = sum(1 for target in targets if is_meant(model, placed, target))
        # Who is meant and gets nothing any more is leaving, too.
        least = summary.destinations - states.get("leaving", 0)
        if not least <= meant <= summary.destinations:
            what = f"{name}: complete with {dict(states)}, though {meant} destinations are meant"
            raise LawBroken(EXACTLY_ONCE, what)

    def _in_flight(self) -> bool:
        """Whether the root's node has not been told yet of all that was issued."""
        root = self.world.root.node
        assert root is not None
        return any(
            key not in root.records or root.records[key].generation < record.generation
            for key, record in self.centre.records.items()
        )

    def _rests(self, host: Host, effect: object) -> None:
        match effect:
            case fx.WriteMail() | fx.StoreOwn() if effect.key in ("_index", CURSOR_KEY):
                return
            case fx.WriteMail() | fx.StoreOwn() | fx.ClearMail() | fx.SendReport() | fx.ResetMail():
                does = f"{type(effect).__name__} {getattr(effect, 'key', '')}"
                raise LawBroken(CONVERGENCE, f"no quiescence: {host.path} still does {does}")
            case _:
                return

    def applying(self, host: Host, key: ObjectKey, address: str, placements: tuple) -> None:
        self._orphans.get(host.path, {}).pop(key, None)
        self.conduct.applying(host, placements)
        paths = all_of(self._places, host.path, host.former)
        for placement in placements:
            if (placement, key, address) in self.centre.contents:
                if self.world.brief and not was_meant(self.centre, paths, placement):
                    break
                return
        raise LawBroken(ONLY_SIGNED, f"{host.path} applies {key} as no placement ever said there")

    def pruning(self, host: Host, key: ObjectKey, *, made: bool) -> None:
        """What was wanted here all the time since the last rest may not be removed."""
        if not made:
            self._orphans.setdefault(host.path, {})[key] = None
        if self.world.lacks(host):
            # Who is shown what takes and not what gives cannot know it.
            return
        at = self._places.of(host.path)
        if self._settled_at is None or key not in self._held.get(at, {}):
            return
        if self._not_wanted.get((at, key), -1.0) < self._settled_at:
            what = f"{host.path} removes {key}, which was wanted there all the time"
            raise LawBroken(NO_IGNORANCE, what)

    def disk_lost(self, host: Host) -> None:
        """Without its record of what it did, an edge leaves what it no longer knows."""
        if host.former or host.path in self._behind or self.world.lied:  # Its parent may know less.
            forget(self._highest, host.path)
        self._wiped[host.path] = None
        self._orphans.setdefault(host.path, {}).update(dict.fromkeys(host.space.objects))

    def disk_restored(self, host: Host) -> None:
        """What nodes here and below may be told again starts from what each of them holds."""
        self.conduct.forgets(host)
        for below in [h for path, h in self.world.hosts.items() if host.path.holds(path)]:
            self._behind[below.path] = None
            self._knows_what_it_keeps(below, below.path)

    def _knows_what_it_keeps(self, host: Host, at: NodePath) -> None:
        forget(self._highest, at)
        for key, kept in host.streams.own.items():
            if key not in NOTES:
                self._highest[at, key] = read_record(kept.data, 0)[1].generation

    def said_elsewhere(self, old: NodePath, new: NodePath) -> None:
        """A destination is about to be said to have moved; its machine is where it is."""
        self._places.say(old, new)
        rename(self._held, old, new)
        rename(self._not_wanted, old, new)

    def arrived(self, host: Host, old: NodePath, *, keeps: bool) -> None:
        """A machine has come to another place, with what it knows or without; none runs on it."""
        self._places.arrive(old, host.path)
        self.conduct.arrived(host, old)
        rename(self._orphans, old, host.path)
        if old in self._wiped:  # Who would have told it anew what it lost is not its parent here.
            del self._wiped[old]
            self._knows_what_it_keeps(host, old)
        rename(self._highest, old, host.path)
        if not keeps:
            self.disk_lost(host)

    def model_changed(self) -> None:
        """Note what is not wanted now; to be called before and after each change."""
        now = prescribed(self.centre)
        for path, held in self._held.items():
            for key in held.keys() - now.get(path, {}).keys():
                self._not_wanted[path, key] = self.world.now

    # After settling.

    def settled(self, *, leftovers: bool = False) -> None:
        """Everything is as it should be; raises LawBroken with all that is not.

        What is gone may be remembered until the next index came, so leftovers are judged last.
        """
        wanted = prescribed(self.centre)
        faults = [*self._space_faults(wanted), *self._summary_faults()]
        faults += self.conduct.faults() if leftovers else []
        if faults:
            raise LawBroken(CONVERGENCE, "\n    ".join(faults[:12]))
        self._settled_at = self.world.now
        self._held = wanted
        self._behind.clear()
        self.conduct.settled()

    def spaces_as_wanted(self) -> None:
        """Every edge that runs holds what is wanted, whatever else is broken."""
        faults = self._space_faults(prescribed(self.centre))
        if faults:
            raise LawBroken(AUTONOMY, "\n    ".join(faults))

    def _refused(self) -> dict[NodePath, dict[ObjectKey, None]]:
        return {h.path: h.space.refused_for_good for h in self.world.hosts.values()}

    def _space_faults(self, wanted: dict[NodePath, dict[ObjectKey, str]]) -> list[str]:
        faults = []
        for host in self.world.hosts.values():
            want = dict(wanted.get(host.path, {}))
            if host.node is None:
                if host.attached:
                    faults.append(f"{host.path} does not run")
                continue
            asked = {k: w.reference.address for k, w in host.node.wanted.items()}
            if asked != want:
                faults.append(f"{host.path} wants {differing(asked, want)}")
            for key in host.space.refused_for_good:
                want.pop(key, None)
            orphans = self._orphans.get(host.path, {})
            held = {
                key: address
                for key, (address, _) in host.space.objects.items()
                if key not in orphans or key in want
            }
            for key in host.space.refused_for_good:
                held.pop(key, None)
            if held != want:
                faults.append(f"{host.path} holds {differing(held, want)}")
        return faults

    def _summary_faults(self) -> list[str]:
        faults = []
        node = self.world.root.node
        assert node is not None
        for name in self.centre.model.placements:
            summary = node.summary(placement_key(name))
            expected = expected_summary(self.centre, name, self._refused())
            if not summary.complete:
                faults.append(f"summary of {name} is not complete: {summary.blocking}")
            if dict(summary.states) != expected.states:
                faults.append(f"{name}: states {dict(summary.states)}, truly {expected.states}")
            elif dict(summary.arms) != expected.arms:
                faults.append(
                    f"{name}: arms {shortened(summary.arms)}, truly {shortened(expected.arms)}"
                )
            faults += self._untold(name, summary)
        for key, record in self.centre.records.items():
            if record.deleted and key in node.records and node.records[key].kind == "delta":
                summary = node.summary(key)
                if summary.destinations or not summary.complete:
                    what = f"{dict(summary.states)} {summary.blocking}"
                    faults.append(f"deleted {record.source.name} counts {what}")
        return faults

    def _untold(self, name: str, summary: Summary) -> list[str]:
        """What a cluster does not take is told with its reason."""
        told = {item.object for item in summary.exceptions if "Refused" in item.reason}
        placed, model = self.centre.model.placements[name], self.centre.model
        return [
            f"{NO_LOSS}: {target.path} does not take {key.name} of {name}, and no one is told why"
            for target in model.targets.values()
            if target.path in self.world.hosts and is_meant(model, placed, target)
            for key, _ in arm_for(placed, target).contents
            if key in self.world.hosts[target.path].space.refused_for_good and str(key) not in told
        ]
