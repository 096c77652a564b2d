"""The laws, by their names in the architecture: safety at each step, convergence after settling.

Judged by what the centre's spaces say and by what is in the clusters, never by a node's own words.

| safety property | where it is checked |
| --- | --- |
| 1 Convergence | `settled`; in `rest` also that nothing moves any more |
| 2 No resurrection | `_stored`: no generation goes back, nothing comes that a snapshot dropped |
| 3 Only signed, only mine | `_stored`, `_kept`, `applying`; `pruning` tells who made an object |
| 4 No loss on reject | `settled`, `_untold`, `_asked`; the lives `refused`, `lost_content` |
| 5 Bounded | `leftovers.py` at each rest, `World.run`: steps; `soak`: bytes over a year |
| 6 Autonomy | `spaces_as_wanted`, in the tests where the parent is gone |
| 7 Exactly once counting | `_counted`, and `_count_faults` once all is settled |
| 8 Least privilege | `_written`; the lives of hostile children; `tests/nats/test_isolation.py` |
| 9 No deletion from ignorance | `pruning`, `_cleared`, `_dropped` |
| 10 Withholding is seen | `handled`: within 20 minutes by the node's own clock |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from relay.core import effects as fx
from relay.core.notes import is_note
from relay.core.records.accepted import read_record
from relay.core.view import NodeView
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_of
from schemas.records.records import DeltaHead, LocationRecord, NodeRecord, Profile, Record
from schemas.records.signing import decode_envelope
from schemas.records.snapshots import read_snapshot
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, ContentHash, MailKey, NodePath
from tests.simulation.books import is_signed
from tests.simulation.centre import Centre
from tests.simulation.collected import collected_faults
from tests.simulation.content import missing, said_in
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import (
    AUTONOMY,
    CONTENT_FIRST,
    CONVERGENCE,
    EXACTLY_ONCE,
    LEAST_PRIVILEGE,
    NO_IGNORANCE,
    NO_LOSS,
    NO_RESURRECTION,
    ONLY_SIGNED,
    PLANNED,
    SEALED,
    WITHHOLDING,
)
from tests.simulation.leftovers import leftover_faults
from tests.simulation.model import TIERS, arms_of, placement_key
from tests.simulation.places import Places, all_of, forget, rename
from tests.simulation.planned import Planned
from tests.simulation.prescribed import (
    arm_for,
    expected_summary,
    is_meant,
    prescribed,
    tier_of,
    was_located,
    was_meant,
)
from tests.simulation.sealing import PLAIN_MARK, secrets
from tests.simulation.telling import differing, shortened
from tests.simulation.waves import Waves, by_state, check_exact
from tests.simulation.world import LawBroken, Watcher, World

FAILURES_MAX, FAILURES_SECONDS = 40, 10.0
"""So often a blob that is not here may be asked for within so long in one run over one link."""
SEEN_AFTER_SECONDS = 20 * 60.0 + 2 * 60.0
"""StaleView is said after 20 minutes, looked at each minute."""


class Oracle(Watcher):
    """Watches one world."""

    def __init__(self, world: World, centre: Centre) -> None:
        self.world, self.centre = world, centre
        self.quiet = False
        # The highest generation that each node kept of each key, while its disk lasts.
        self._highest: dict[tuple[NodePath, str], int] = {}
        # The newest snapshot that each node verified; and of those the one that no crash took.
        self._judged_by: dict[NodePath, int] = {}
        self._keeps: dict[NodePath, int] = {}
        # By which one each record was taken that is kept in this batch.
        self._taken_under: dict[tuple[str, bytes], int] = {}
        # Objects in clusters whose edges do not know any more that they made them.
        self._orphans: dict[NodePath, dict[ObjectKey, None]] = {}
        # What was wanted when all was last as it should be, and when it was not wanted since.
        self._held: dict[NodePath, dict[ObjectKey, str]] = {}
        self._not_wanted: dict[tuple[NodePath, ObjectKey], float] = {}
        self._settled_at: float | None = None
        self._places = Places()
        self._waves = Waves(centre)
        self._planned = Planned()
        # Since all was as it should be: whose cluster drifted, disk was lost, profile withheld.
        self._disturbed: dict[NodePath, None] = {}
        self._failures: dict[tuple[NodePath, int, int, str], deque[float]] = {}
        # Who says that its view is old.
        self._stale: dict[NodePath, None] = {}
        self._shown: dict[NodePath, tuple[NodeView, int, float]] = {}
        world.watcher = self

    # At every step.

    def started(self, host: Host) -> None:
        """Of what it verified it knows what was kept before the crash, or just then."""
        self._judged_by[host.path] = self._keeps.get(host.path, 0)
        kept = host.streams.own.get(SNAPSHOT_KEY)
        if kept is not None and _generation_of(kept.data) > self._judged_by[host.path]:
            self._judges_by(host, kept.data)

    def decided(self, host: Host, effects: Sequence[object]) -> None:
        """It judged in this order, in whichever it is kept."""
        self._taken_under.clear()
        for effect in effects:
            if not isinstance(effect, fx.StoreOwn) or effect.data is None:
                continue
            if effect.key == SNAPSHOT_KEY:
                self._judges_by(host, effect.data)
            else:
                newest = self._judged_by.get(host.path, 0)
                self._taken_under[effect.key, effect.data] = newest

    def effect(self, host: Host, effect: object) -> None:  # noqa: C901, PLR0912 - one arm for each
        if isinstance(effect, fx.StoreOwn | fx.WriteMail) and effect.data is not None:
            self._reads_none(host, effect.data)
        match effect:
            case fx.StoreOwn() if is_signed(effect.key) and effect.data is not None:
                # What the centre issues is judged as it goes out.
                if not host.path.is_root:
                    self._stored(host, effect.key, effect.data)
            case fx.StoreOwn() if effect.data is None:
                self._let_go(host, effect.key)
            case fx.WriteMail():
                self._written(host, effect)
            case fx.CountChanged():
                self._counted(effect.key)
            case fx.KeepBlob():
                self._kept(host, effect.address, effect.value)
            case fx.DropBlobs() if not self.centre.behind:
                self._dropped(host, effect.addresses)
            case fx.ClearMail():
                self._cleared(host, effect)
            case fx.Noted() if effect.reason in ("StaleView", "FreshView"):
                self._stale.pop(host.path, None)
                if effect.reason == "StaleView":
                    self._stale[host.path] = None
            case fx.LoadBlob():
                self._asked(host, effect.reference.address)
            case fx.Noted() if effect.reason == "MissingBlob":
                self._missed(host, effect)
        if self.quiet:
            self._rests(host, effect)

    def handled(self, host: Host) -> None:
        """A node whose parent shows it no newer snapshot says so within 20 minutes."""
        if host.path.is_root:
            if self.world.checks:
                for name in self.centre.model.placements:
                    self._counted(placement_key(name))
            return
        node, now = host.node, self.world.now
        newest = self._keeps[host.path] = self._judged_by[host.path]
        known = self._shown.get(host.path)
        if node is None or known is None or known[:2] != (node, newest):
            if known is None or node is not known[0]:
                self._stale.pop(host.path, None)
            assert node is not None
            self._shown[host.path] = (node, newest, now)
        elif now - known[2] > SEEN_AFTER_SECONDS and host.path not in self._stale:
            what = f"{host.path} has seen no newer snapshot for {now - known[2]:.0f} s"
            raise LawBroken(WITHHOLDING, f"{what}, and is silent")

    def _judges_by(self, host: Host, data: bytes) -> None:
        """A node verified a snapshot, and keeps it."""
        former, snapshot = self._judged_by[host.path], _generation_of(data)
        if snapshot < former:
            raise LawBroken(NO_RESURRECTION, f"{host.path} goes back to an older snapshot")
        if data in self.centre.issued:
            self._judged_by[host.path] = snapshot

    def _let_go(self, host: Host, key: str) -> None:
        """Who let go of a head that no snapshot listed yet may be shown what was before it.

        Only by a parent that was restored, and until that snapshot comes.
        """
        at = host.path, key
        if self._highest.get(at, 0) > self._judged_by.get(host.path, 0):
            self._highest.pop(at)

    def _stored(self, host: Host, key: str, data: bytes) -> None:
        said = decode_envelope(data).bare().encode() if key == KEYS_KEY else data
        if said not in self.centre.issued:
            raise LawBroken(ONLY_SIGNED, f"{host.path} keeps under {key} what no one issued")
        if key == SNAPSHOT_KEY:
            return
        _, record = read_record(data)
        highest, generation = self._highest.get((host.path, key), 0), record.generation
        judged_by = self._judged_by.get(host.path, 0)
        newest = self._taken_under.get((key, data), judged_by)
        anew = newest > highest and key != KEYS_KEY
        listed = anew and self.centre.listings[newest].get(record.entry_key) == generation
        if generation < highest and not listed:
            what = f"{host.path} goes back from {highest} to {generation} under {key}"
            raise LawBroken(NO_RESURRECTION, what)
        self._highest[host.path, key] = generation
        if key == KEYS_KEY or not record.full or key in host.streams.own:
            return
        if not newest:
            raise LawBroken(NO_RESURRECTION, f"{host.path} takes {key} before any snapshot")
        if self.centre.is_superseded(record.entry_key, generation, newest):
            what = f"{host.path} takes {key} of {generation}, which snapshot {newest} does not list"
            raise LawBroken(NO_RESURRECTION, what)

    def _reads_none(self, host: Host, data: bytes) -> None:
        """No message has a key in clear, and no content."""
        if any(key in data for key in secrets()):
            raise LawBroken(SEALED, f"{host.path} has a key in clear")
        if PLAIN_MARK in data:
            raise LawBroken(SEALED, f"{host.path} has content in clear")

    def _kept(self, host: Host, address: ContentHash, value: bytes) -> None:
        self._reads_none(host, value)
        true = self.world.root.streams.blobs.get(address)
        if true is not None and true != value and said_in(true) != said_in(value):
            raise LawBroken(ONLY_SIGNED, f"{host.path} keeps another value as {address[:12]}")

    def _dropped(self, host: Host, addresses: tuple[ContentHash, ...]) -> None:
        """No blob goes that something in force leads to, at a node that keeps the record."""
        hosts, gone = self.world.hosts, set(addresses)
        last = host.attached and all(p.is_root or p.parent != host.path for p in hosts)
        targets = [t for t in self.centre.model.targets.values() if t.path == host.path]
        for name, placed in self.centre.model.placements.items():
            key = placement_key(name)
            newest = self._highest.get((host.path, key), 0) == self.centre.records[key].generation
            if key not in host.streams.own or not newest:
                continue
            mine = [arm_for(placed, t) for t in targets if is_meant(self.centre.model, placed, t)]
            meant = last or not self._concerns(host, name)
            for arm in mine if meant else arms_of(placed):
                if gone & self.centre.leads_to(name, arm):
                    what = f"{host.path} drops content of {name}, which is in force"
                    raise LawBroken(NO_IGNORANCE, what)

    def _concerns(self, host: Host, name: str) -> bool:
        """Whether a placement is meant for someone at a host or below."""
        model = self.centre.model
        placed = model.placements[name]
        below = [t for t in model.targets.values() if host.path.holds(t.path)]
        return any(is_meant(model, placed, target) for target in below)

    def _cleared(self, host: Host, clear: fx.ClearMail) -> None:
        """No slot is cleared that holds what is in force, and meant there, as the host knows."""
        kept = host.streams.mail.get((clear.child, clear.key))
        record = self.centre.records.get(clear.key)
        if kept is None or kept.mail is None or not isinstance(record, DeltaHead):
            return
        name, path = placement_of(record.source) or "", host.path.child(clear.child)
        newest = kept.mail.generation == record.generation and kept.sequence == clear.sequence
        if not newest or not kept.mail.has_body or name not in self.centre.model.placements:
            return
        if self._knows_inventory(host) and any(
            is_meant(self.centre.model, self.centre.model.placements[name], target)
            for target in self.centre.model.targets.values()
            if path.holds(target.path)
        ):
            what = f"{host.path} takes {name}, which is in force, out of {clear.child}'s mailbox"
            raise LawBroken(NO_IGNORANCE, what)

    def _knows_inventory(self, host: Host) -> bool:
        """Whether a node holds all profiles below it and all Locations, as they are now."""
        if self.centre.behind:
            return False
        own = host.streams.own
        for key, record in self.centre.records.items():
            if isinstance(record, Profile) and not host.path.holds(record.path):
                continue
            if placement_of(record.source) in self.centre.model.placements or key == KEYS_KEY:
                continue
            held = own.get(key)
            if held is None or read_record(held.data)[1].generation != record.generation:
                return False
        return True

    def _written(self, host: Host, write: fx.WriteMail) -> None:
        """A child is told of what is its own, and of content only once that is in the store."""
        if write.child not in host.streams.children:
            what = f"{host.path} writes to {write.child}, which is none of its children"
            raise LawBroken(LEAST_PRIVILEGE, what)
        record = self.centre.records.get(write.key)
        if isinstance(record, Profile | NodeRecord):
            child, past = host.path.child(write.child), self.centre.past.targets
            named = [p for p, ts in past.items() if any(t.name == record.source.name for t in ts)]
            if not any(child.holds(path) for path in (record.path, *named)):
                what = f"{host.path} tells {write.child} of {record.source.name}, elsewhere"
                raise LawBroken(LEAST_PRIVILEGE, what)
        if not isinstance(record, DeltaHead | LocationRecord) or not write.has_body:
            return
        # Of what is kept side by side a crash may leave the mail alone: the next run sees to that.
        if isinstance(record, DeltaHead) and host.armed is None and missing(host, write):
            what = f"{host.path} sends {write.child} a delta before its content"
            raise LawBroken(CONTENT_FIRST, what)
        self._only_theirs(host, write, record)

    def _only_theirs(self, host: Host, write: fx.WriteMail, record: Record) -> None:
        """What a delta or Location says goes to no child of which nobody was ever meant."""
        child, name = host.path.child(write.child), record.source.name
        paths = [path for path in self.centre.past.targets if child.holds(path)]
        delta = isinstance(record, DeltaHead)
        met, said = (was_meant, write.key) if delta else (was_located, name)
        if not met(self.centre, paths, said):
            what = f"{host.path} tells {write.child} what {name} says to others"
            raise LawBroken(LEAST_PRIVILEGE, what)

    def _counted(self, key: MailKey) -> None:
        """An exact count has each destination that is meant once, and none synced that is not."""
        root = self.world.root
        if root.node is None or self.centre.deleting or self._in_flight():
            return
        count = self.world.ports.count(root, key, root.node.count(key))
        record = self.centre.records.get(key)
        name = placement_of(record.source) if record is not None else None
        placed = self.centre.model.placements.get(name or "")
        if not count.exact or placed is None or name is None:
            return
        states, model = count.summary.states, self.centre.model
        targets = [t for t in model.targets.values() if t.path in model.nodes]
        meant = [target for target in targets if is_meant(model, placed, target)]
        counted = sum(states.values()) - states.get("leaving", 0)
        if counted != len(meant):
            what = f"{name}: exactly {dict(states)}, though {len(meant)} destinations are meant"
            raise LawBroken(EXACTLY_ONCE, what)
        holding = sum(1 for target in meant if self._holds(target.path, placed, target))
        wiped = self.world.disturbed or any(t.path in self._disturbed for t in meant)
        if states.get("synced", 0) > holding and not wiped:
            what = f"{name}: exactly {dict(states)}, though {holding} hold it"
            raise LawBroken(EXACTLY_ONCE, what)
        holds = None if wiped else lambda t: self._holds(t.path, placed, t)
        check_exact(name, placed, count.summary, meant, holds)

    def _holds(self, path: NodePath, placed: object, target: object) -> bool:
        """Whether the cluster at a path ever held what a placement brings this destination."""
        host = self.world.hosts.get(path)
        tier = tier_of(self.centre.model, target)  # type: ignore[arg-type]
        contents = arm_for(placed, target).contents  # type: ignore[arg-type]
        forms = [(key, form_of(content.reference, tier)) for key, content in contents]
        return host is not None and all(
            host.space.objects.get(key, ("",))[0] == form
            or self._wins(path, key, form)
            or self._outlives(host, key, placed)
            for key, form in forms
        )

    def _outlives(self, host: Host, key: ObjectKey, placed: object) -> bool:
        """Whether the object there is what another placement brought, now or once.

        A count reflects what was sent of its own placement. That another lost an object which it
        had won there is on its way; what is still so at rest is judged by convergence.
        """
        held, placements = host.space.objects.get(key, ("",))[0], self.centre.model.placements
        own = {placement_key(name) for name, it in placements.items() if it is placed}
        return any(
            held == form_of(content.reference, tier)
            for name, versions in self.centre.past.placements.items()
            if name not in own
            for version in versions
            for arm in arms_of(version)
            for at, content in arm.contents
            if at == key
            for tier in TIERS
        )

    def _wins(self, path: NodePath, key: ObjectKey, address: str) -> bool:
        """Whether another placement brings the object there, as newer or by its key."""
        return prescribed(self.centre).get(path, {}).get(key, address) != address

    def _in_flight(self) -> bool:
        """Whether the root's node has not been told yet of all that was issued, or dropped."""
        root, own = self.world.root.node, self.world.root.streams.own
        assert root is not None
        return any(
            key not in root.records or root.records[key].generation < record.generation
            if key in own
            else key in root.records
            for key, record in self.centre.records.items()
        )

    def _rests(self, host: Host, effect: object) -> None:
        match effect:
            case fx.WriteMail() | fx.StoreOwn() if is_note(effect.key):
                return
            case fx.SendReport() if effect.key == "_progress":
                return
            case fx.WriteMail() | fx.StoreOwn() | fx.ClearMail() | fx.SendReport() | fx.ResetMail():
                does = f"{type(effect).__name__} {getattr(effect, 'key', '')}"
                raise LawBroken(CONVERGENCE, f"no quiescence: {host.path} still does {does}")

    def _asked(self, host: Host, address: str) -> None:
        """What cannot be had is asked for with patience."""
        if address in host.streams.blobs:
            return
        key = (host.path, host.run, host.link_epoch, address)
        times = self._failures.setdefault(key, deque(maxlen=FAILURES_MAX))
        times.append(self.world.now)
        if len(times) == FAILURES_MAX and times[-1] - times[0] < FAILURES_SECONDS:
            what = f"{host.path} asks for {address[:12]} {len(times)} times in {FAILURES_SECONDS} s"
            raise LawBroken(NO_LOSS, what)

    def _missed(self, host: Host, noted: fx.Noted) -> None:
        """Content is called missing by the word of one who was asked, not for want of a link."""
        heard = host.denied.pop(noted.subject, -1) >= host.link_epoch - 1
        if not host.path.is_root and not host.linked and not heard:
            what = f"{host.path} says that {noted.subject} is missing, and has no link to ask by"
            raise LawBroken(NO_LOSS, what)

    # What clusters suffer.

    def applying(self, host: Host, key: ObjectKey, address: str, placements: tuple) -> None:
        self._orphans.get(host.path, {}).pop(key, None)
        paths = all_of(self._places, host.path, host.former)
        for placement in placements:
            said = (placement, key, address) in self.centre.contents
            if said and was_meant(self.centre, paths, placement):
                self._waves.applying(paths, key, address, placements)
                return
        raise LawBroken(ONLY_SIGNED, f"{host.path} applies {key} as no placement ever said there")

    def pruning(self, host: Host, key: ObjectKey, *, made: bool) -> None:
        """What was wanted here all the time since the last rest may not be removed."""
        if not made:
            self._orphans.setdefault(host.path, {})[key] = None
        at = self._places.of(host.path)
        if self._settled_at is None or key not in self._held.get(at, {}):
            return
        if self._not_wanted.get((at, key), -1.0) < self._settled_at:
            what = f"{host.path} removes {key}, which was wanted there all the time"
            raise LawBroken(NO_IGNORANCE, what)

    # Clusters, disks and places.

    def drifted(self, host: Host) -> None:
        """What was counted there is not true until its syncer has seen that."""
        self._disturbed[host.path] = None

    def withheld(self, host: Host, key: MailKey) -> None:
        """A count from below is of the profile or Location before it: a child reads on."""
        if isinstance(self.centre.records.get(key), Profile | LocationRecord):
            below = (path for path in self.world.hosts if host.path.holds(path))
            self._disturbed.update(dict.fromkeys(below))
        elif key not in host.streams.own:
            # Whose disk fell back to before a placement cannot know that it is meant there.
            at, now, said = self._places.of(host.path), self.world.now, self.centre.contents
            self._not_wanted |= {(at, obj): now for placement, obj, _ in said if placement == key}

    def disk_lost(self, host: Host) -> None:
        """Without its record of what it did, an edge leaves what it no longer knows."""
        self._forget(host.path)
        self._orphans.setdefault(host.path, {}).update(dict.fromkeys(host.space.objects))

    def disk_restored(self, host: Host) -> None:
        """A host knows what it knew once."""
        self._forget(host.path)
        for key, kept in host.streams.own.items():
            if key == SNAPSHOT_KEY:
                self._keeps[host.path] = _generation_of(kept.data)
            elif not is_note(key):
                self._highest[host.path, key] = read_record(kept.data)[1].generation

    def _forget(self, path: NodePath) -> None:
        self._disturbed[path] = None
        self._waves.forget(path)
        forget(self._highest, path)
        self._keeps.pop(path, None)

    def said_elsewhere(self, old: NodePath, new: NodePath) -> None:
        """A destination is about to be said to have moved; its machine is where it is."""
        self._places.say(old, new)
        rename(self._held, old, new)
        rename(self._not_wanted, old, new)

    def arrived(self, host: Host, old: NodePath, *, keeps: bool) -> None:
        """A machine has come to another place, with what it knows or without; none runs on it."""
        self._places.arrive(old, host.path)
        rename(self._orphans, old, host.path)
        rename(self._highest, old, host.path)
        rename(self._keeps, old, host.path)
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
        """Everything is as it should be; raises LawBroken with all that is not."""
        wanted = prescribed(self.centre)
        faults = [*self._space_faults(wanted), *self._count_faults()]
        faults = faults or collected_faults(self.centre)
        faults += [*leftover_faults(self.world), *self._stale_words()] if leftovers else []
        if faults:
            raise LawBroken(CONVERGENCE, "\n    ".join(faults[:12]))
        hosts = self.world.hosts.values()
        held = {host: self._counting(host, wanted.get(host.path, {})) for host in hosts}
        if unlike := self._planned.faults(self.centre, held):
            raise LawBroken(PLANNED, "\n    ".join(unlike[:12]))
        self._settled_at = self.world.now
        self._held = wanted
        self._disturbed.clear()

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
                faults += [f"{host.path} does not run"] if host.attached else []
                continue
            refused = host.space.refused_for_good
            held = self._counting(host, want)
            want = {key: address for key, address in want.items() if key not in refused}
            if held != want:
                faults.append(f"{host.path} holds {differing(held, want)}")
        return faults

    def _counting(self, host: Host, want: Mapping[ObjectKey, str]) -> dict[ObjectKey, str]:
        """What a cluster holds, but for what its edge does not know any more or could not write."""
        orphans, refused = self._orphans.get(host.path, {}), host.space.refused_for_good
        return {
            key: address
            for key, (address, _) in host.space.objects.items()
            if (key not in orphans or key in want) and key not in refused
        }

    def _count_faults(self) -> list[str]:
        faults, root = [], self.world.root
        assert root.node is not None
        for name in self.centre.model.placements:
            key = placement_key(name)
            count = self.world.ports.count(root, key, root.node.count(key))
            summary, expected = count.summary, expected_summary(self.centre, name, self._refused())
            states = {state: n for state, n in summary.states.items() if n}
            if not count.exact:
                faults.append(f"count of {name} is not exact: {count.waiting_for} {states}")
            if states != expected.states:
                faults.append(f"{name}: states {states}, truly {expected.states}")
            elif dict(summary.arms) != expected.arms:
                faults.append(
                    f"{name}: arms {shortened(summary.arms)}, truly {shortened(expected.arms)}"
                )
            elif by_state(summary) != expected.waves:
                faults.append(f"{name}: waves {by_state(summary)}, truly {expected.waves}")
            faults += self._untold(name, summary)
        for key, record in self.centre.records.items():
            gone = isinstance(record, DeltaHead) and key not in root.streams.own
            if gone and sum(root.node.count(key).summary.states.values()):
                faults.append(f"deleted {record.source.name} still counts")
        return faults

    def _untold(self, name: str, summary: object) -> list[str]:
        """What a cluster does not take is told with its reason."""
        exceptions = summary.exceptions  # type: ignore[attr-defined]
        told = {item.object for item in exceptions if "Refused" in item.reason}
        placed, model = self.centre.model.placements[name], self.centre.model
        return [
            f"{NO_LOSS}: {target.path} does not take {key.name} of {name}, and no one is told why"
            for target in model.targets.values()
            if target.path in self.world.hosts and is_meant(model, placed, target)
            for key, _ in arm_for(placed, target).contents
            if key in self.world.hosts[target.path].space.refused_for_good and str(key) not in told
        ]

    def _stale_words(self) -> list[str]:
        """Who says that its view is old though nobody shows it one."""
        return [
            f"{WITHHOLDING}: {host.path} says that its view is old"
            for host in self.world.hosts.values()
            if host.path in self._stale
        ]


def _generation_of(snapshot: bytes) -> int:
    return read_snapshot(decode_envelope(snapshot).payload).generation
