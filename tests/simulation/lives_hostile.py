"""Lives with a hostile child or a hostile relay: nobody else suffers, and it is seen."""

from __future__ import annotations

from relay.core.events import BlobArrived, Event, MailArrived
from schemas.content.blobs import MANIFEST
from schemas.objects.objects import ObjectKey
from schemas.records.records import Profile
from schemas.reports.link import Hello, Progress
from schemas.reports.reports import Report, Summary
from schemas.values.identity import SNAPSHOT_KEY, MailKey
from schemas.values.wire import decode, encode, replace
from tests.simulation.host import HELLO, Host
from tests.simulation.laws import (
    CONVERGENCE,
    EXACTLY_ONCE,
    LEAST_PRIVILEGE,
    NO_IGNORANCE,
    NO_RESURRECTION,
    WITHHOLDING,
)
from tests.simulation.model import Located, Placed, placement_key
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.scenes import (
    NOBODY,
    NOWHERE,
    P1,
    P2,
    P3,
    A,
    B,
    C,
    D,
    behaving,
    contents,
    edges_of,
    everywhere,
    put,
    region_of,
    relink,
    require,
    until,
)

MINUTE = 60.0


def _say(region: Host, child: Host, key: str, data: bytes) -> None:
    region.streams.stat.put((child.path.name, key), data)
    region.read_reports(region.run)


def _hello_of(region: Host, child: Host) -> Hello:
    kept = region.streams.stat.get((child.path.name, HELLO))
    assert kept is not None
    return decode(Hello, kept.data)


def _box_of_others(region: Host, liar: Host) -> dict[tuple[str, str], object]:
    mail = region.streams.mail.items()
    return {at: kept for at, kept in mail if at[0] != liar.path.name and at[1][0] != "_"}


def hostile_child(one: Run) -> None:
    """An edge reports what it likes of all: it speaks for one destination, its own."""
    liar, others = edges_of(one)[0], edges_of(one)[1:]
    region = region_of(one)
    put(one, P3, Placed(NOWHERE, one.centre.arm(contents(one, D))))
    one.settle()
    run = _hello_of(region, liar).run
    held = {k: own.data for k, own in region.streams.own.items() if k[0] != "_"}
    box = _box_of_others(region, liar)
    arms = {f"{n:064x}": 1 for n in range(64)}
    for name in (P1, P2, P3):
        key, generation = placement_key(name), one.centre.records[placement_key(name)].generation
        many = Summary({"synced": 500}, {"healthy": 500}, arms)
        for gone in (True, False):
            said = Report(key, 0, run, 2**62, generation, gone, 0, many)
            _say(region, liar, key, encode(said))
    _say(region, liar, "_progress", encode(Progress(run, region.incarnation, 2**62, bytes(16))))
    _say(region, liar, "_else", b"no report")
    one.world.run(5)
    require(
        _box_of_others(region, liar) == box,
        LEAST_PRIVILEGE,
        f"{liar.path} moves the mail of {len(others)} others",
    )
    kept = {k: own.data for k, own in region.streams.own.items() if k[0] != "_"}
    require(kept == held, LEAST_PRIVILEGE, f"{liar.path} moves what {region.path} holds")
    root = one.world.root.node
    for name in (P1, P2):
        count = root.count(placement_key(name)) if root else None
        honest = (count is not None and not count.exact) or count is None
        total = sum(count.summary.states.values()) if count else 0
        edges = len(edges_of(one)) + region.attached
        require(honest or total == edges, EXACTLY_ONCE, f"{name} counts {total} of {edges}")
    liar.stop()
    liar.start()


def curious_child(one: Run) -> None:
    """An edge asks for all keys there are: it gets what is its own, and heads at most."""
    liar, region = edges_of(one)[0], region_of(one)
    put(one, P3, Placed(NOWHERE, one.centre.arm(contents(one, D))))
    one.centre.put_location("l9", Located((("secret", "yes"),), NOBODY))
    # What takes something away is followed by a snapshot, which lists the others as well.
    put(one, P2, None)
    one.settle()
    hello = _hello_of(region, liar)
    keys = tuple(sorted(one.centre.records))[:900]
    for _ in range(9):
        # The region asks in its turn for what it lacks.
        _say(region, liar, HELLO, encode(replace(hello, wants=keys)))
        one.world.run(5)
    for (child, key), kept in region.streams.mail.items():
        if child == liar.path.name and key == placement_key(P3):
            full = kept.mail is not None and kept.mail.has_body
            require(not full, LEAST_PRIVILEGE, f"{liar.path} gets what p3 brings others")


class Hostile(Ports):
    """A relay that behaves as a life says; all other machines are honest."""

    def __init__(self, relay: Host) -> None:
        self.relay = relay

    def is_shown(self, host: Host) -> bool:
        """Whether this is a child of the relay."""
        return not host.path.is_root and host.path.parent == self.relay.path


class ShowsOldSnapshots(Hostile):
    """Its children get no snapshot newer than those that it had when it was broken into."""

    def heard(self, host: Host, event: Event) -> list[Event]:
        shown = isinstance(event, MailArrived) and event.key == SNAPSHOT_KEY
        if self.is_shown(host) and shown:
            return []
        welcome = getattr(event, "message", None)
        if self.is_shown(host) and welcome is not None:
            event = type(event)(replace(welcome, snapshot=b""))  # type: ignore[call-arg]
        return [event]


def old_snapshots(one: Run) -> None:
    """A relay shows no newer snapshot: nothing is removed, and each edge says so in 20 minutes."""
    with behaving(one, ShowsOldSnapshots(region_of(one))):
        put(one, P2, None)
        one.world.run(35 * MINUTE)
        for edge in edges_of(one):
            require(C in edge.space.objects, NO_RESURRECTION, f"{edge.path} removes without cause")
            stale = edge.node is not None and bool(edge.node.own_state()["stale"])
            require(stale, WITHHOLDING, f"{edge.path} is silent")
    _restart(one)


class WithholdsLeaves(Hostile):
    """Its children get no blob of a snapshot's tree."""

    def heard(self, host: Host, event: Event) -> list[Event]:
        leaf = isinstance(event, BlobArrived) and event.reference.kind in ("sleaf", "sinner")
        if self.is_shown(host) and leaf and not event.local:  # type: ignore[union-attr]
            event = BlobArrived(event.reference, None, local=False)  # type: ignore[union-attr]
        return [event]


def leaf_withheld(one: Run) -> None:
    """A relay withholds leaves: nothing is taken away; when it is honest again, all comes."""
    with behaving(one, WithholdsLeaves(region_of(one))):
        put(one, P2, None)
        everywhere(one, P1, A, B)
        one.world.run(10 * MINUTE)
        for edge in edges_of(one):
            require(C in edge.space.objects, NO_RESURRECTION, f"{edge.path} removes unread")
    _restart(one)


class TellsAll(Hostile):
    """It hands its children every delta in full, whoever is meant."""

    def __init__(self, relay: Host, one: Run) -> None:
        super().__init__(relay)
        self._one = one

    def heard(self, host: Host, event: Event) -> list[Event]:
        if not self.is_shown(host) or not isinstance(event, MailArrived):
            return [event]
        told = [
            MailArrived(event.sequence, MailKey(key), data, event.pending)
            for key, data in self._one.centre.history[-4:]
            if not key.startswith("_")
        ]
        return [*told, event]


def wants_in_full(one: Run) -> None:
    """A relay tells its children what is not meant for them, in full: they do nothing of it."""
    with behaving(one, TellsAll(region_of(one), one)):
        put(one, P3, Placed(NOWHERE, one.centre.arm(contents(one, D))))
        everywhere(one, P1, A)
        one.world.run(2 * MINUTE)
        for edge in edges_of(one):
            require(D not in edge.space.objects, LEAST_PRIVILEGE, f"{edge.path} holds p3's")
    _restart(one)


class Replays(Hostile):
    """It writes old mail to its children again, after what is newer."""

    def __init__(self, relay: Host, old: list[tuple[MailKey, bytes]]) -> None:
        super().__init__(relay)
        self._old = old

    def heard(self, host: Host, event: Event) -> list[Event]:
        if not self.is_shown(host) or not isinstance(event, MailArrived):
            return [event]
        old = [MailArrived(event.sequence, key, data, event.pending) for key, data in self._old]
        return [event, *old]


def replayed(one: Run) -> None:
    """A relay shows an edge without memory what was deleted: it is not listed, and not taken."""
    old = [(key, data) for key, data in one.centre.history if key == placement_key(P2)]
    put(one, P2, None)
    one.settle()
    edge = edges_of(one)[0]
    with behaving(one, Replays(region_of(one), old)):
        edge.stop(keep_disk=False)
        edge.space.wipe()
        edge.start()
        everywhere(one, P1, A, B)
        one.world.run(2 * MINUTE)
        require(C not in edge.space.objects, NO_RESURRECTION, f"{edge.path} applies p2 again")
    _restart(one)


class Withholds(Hostile):
    """It keeps the mail of one key from its children."""

    def __init__(self, relay: Host, key: ObjectKey | MailKey) -> None:
        super().__init__(relay)
        self._key = key

    def heard(self, host: Host, event: Event) -> list[Event]:
        kept = isinstance(event, MailArrived) and event.key == self._key
        return [] if self.is_shown(host) and kept else [event]


def withheld(one: Run) -> None:
    """A new version is withheld: the old one is enforced, and it is said."""
    with behaving(one, Withholds(region_of(one), placement_key(P1))):
        everywhere(one, P1, A, B)
        put(one, P2, None)
        one.world.run(15 * MINUTE)
        for edge in edges_of(one):
            require(A in edge.space.objects, WITHHOLDING, f"{edge.path} dropped what it had")
            node = edge.node
            exceptions = node.count(placement_key(P1)).summary.exceptions if node else ()
            told = any(item.reason.startswith("Withheld") for item in exceptions)
            require(told, WITHHOLDING, f"{edge.path} does not say that p1 is withheld")
    _restart(one)


def _restart(one: Run) -> None:
    """An honest program runs in the place of the hostile one."""
    region = region_of(one)
    region.stop()
    region.start()
    for edge in edges_of(one):
        relink(one, edge.path)


def profile_kept_back(one: Run) -> None:
    """An edge loses its disk, and is not shown who it is: what it finds in its cluster stays.

    It takes what it finds by its marks for its own, and no placement is meant for nobody.
    """
    edge = edges_of(one)[0]
    profiles = {key for key, it in one.centre.records.items() if isinstance(it, Profile)}
    before = dict(edge.space.objects)
    edge.stop(keep_disk=False)
    one.world.withholds = lambda host, kept: (
        host is region_of(one) and kept.mail is not None and kept.mail.key in profiles
    )
    edge.start()
    one.world.run(3 * MINUTE)
    require(edge.space.objects == before, NO_IGNORANCE, f"{edge.path} does not know who it is")
    one.world.withholds = None
    relink(one, edge.path)


def both_forget(one: Run) -> None:
    """A relay and its edge lose their disks, and the relay gets content late: nothing goes.

    What they had is newer than the last snapshot, which does not list it.
    """
    edge, region = edges_of(one)[0], region_of(one)
    everywhere(one, P3, D)
    until(one, lambda: D in edge.space.objects, CONVERGENCE, "p3 is not there", MINUTE)
    before = dict(edge.space.objects)
    one.world.lying_blobs = lambda host, reference, value: (
        None if host.path.is_root and reference.kind == MANIFEST else value
    )
    for host in (region, edge):
        host.stop(keep_disk=False)
    for host in (region, edge):
        host.start()
    one.world.run(MINUTE / 2)
    require(edge.space.objects == before, NO_IGNORANCE, f"{edge.path} lost what it had")
    one.world.lying_blobs = None


LIVES = (
    both_forget,
    profile_kept_back,
    hostile_child,
    curious_child,
    old_snapshots,
    leaf_withheld,
    wants_in_full,
    replayed,
    withheld,
)
