"""Lives in which mail, content or reports are withheld, refused or lost on their way."""

from __future__ import annotations

from dataclasses import replace

from relay.core.children import INDEX_TO_EDGE_SECONDS
from relay.core.effects import WriteMail
from relay.core.events import MailArrived
from relay.core.freshness import LOOK_SECONDS, STALE_AFTER_SECONDS
from schemas.identity import INDEX_KEY
from schemas.signing import Envelope, decode_envelope
from tests.simulation.centre import placement_key
from tests.simulation.chaos import FORGER, newer
from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.laws import (
    CONVERGENCE,
    NO_LOSS,
    NO_RESURRECTION,
)
from tests.simulation.prescribed import prescribed
from tests.simulation.run import Run
from tests.simulation.scenes import (
    NOWHERE,
    A,
    B,
    C,
    all_say,
    edges_of,
    epochs,
    everywhere,
    put,
    region_of,
    relink,
    require,
    says,
    select,
    withholding,
)

TOLD_SECONDS = 90.0

# A relay that was broken into.


def withheld(one: Run) -> None:
    """A relay keeps what takes from its children, and shows them the index."""
    region = region_of(one)
    with withholding(one, lambda host, mail: host is region and not mail.has_body):
        select(one, "p1", NOWHERE)
        put(one, "p2", None)
        one.world.run(INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
        for edge in edges_of(one):
            require(C not in edge.space.objects, NO_RESURRECTION, f"{edge.path} keeps what went")
        all_say(one, "p1", "Withheld")


def outdated(one: Run) -> None:
    """A relay keeps the newer version of a placement from its children, and shows the index."""
    region, key = region_of(one), placement_key("p1")
    with withholding(one, lambda host, mail: host is region and mail.key == key):
        everywhere(one, "p1", A)
        one.world.run(INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
        all_say(one, "p1", "Withheld")


def old_index(one: Run) -> None:
    """A relay shows its children nothing new any more, and their wall clocks are put back."""
    region = region_of(one)
    with withholding(one, lambda host, _mail: host is region, index=True):
        everywhere(one, "p1", A)
        one.world.run(STALE_AFTER_SECONDS / 2)
        for edge in edges_of(one):
            edge.skew_ms -= 3_600_000
        one.world.run(STALE_AFTER_SECONDS / 2 + 4 * LOOK_SECONDS)
        all_say(one, "p1", "StaleView")


def told_lies(one: Run) -> None:
    """A relay shows its children an older index, and what it signed itself."""
    old = next(data for key, data in reversed(one.centre.history) if key == INDEX_KEY)
    everywhere(one, "p1", A)
    one.world.run(INDEX_TO_EDGE_SECONDS + LOOK_SECONDS)
    new = next(data for key, data in reversed(one.centre.history) if key == placement_key("p1"))
    for edge in edges_of(one):
        lies = ((INDEX_KEY, old), (placement_key("p1"), newer(new, FORGER)))
        for key, data in lies:
            edge.receive_mail(MailArrived(edge.read_through, key, data, 0))
    one.world.run(10)


def other_body(one: Run) -> None:
    """A relay hands its children a true head with the body of another one."""
    region, key = region_of(one), placement_key("p1")

    def latest(name: str) -> Envelope:
        wanted = placement_key(name)
        return decode_envelope(next(d for k, d in reversed(one.centre.history) if k == wanted))

    with withholding(one, lambda host, mail: host is region and mail.key == key):
        everywhere(one, "p1", A)
        one.world.run(1)
        data = replace(latest("p1"), body=latest("p2").body).encode()
        for edge in edges_of(one):
            edge.receive_mail(MailArrived(edge.read_through, key, data, 0))
        one.world.run(10)


def no_end(one: Run) -> None:
    """A relay says of its children's mail that more is to come, and nothing comes."""
    region = region_of(one)

    def endless(host: Host, write: WriteMail, sequence: int) -> MailArrived | None:
        return MailArrived(sequence, write.key, write.data, 5) if host is region else None

    one.world.lying, one.world.lied = endless, True
    everywhere(one, "p1", A)
    one.world.run(STALE_AFTER_SECONDS + INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
    all_say(one, "p1", "StaleView")
    one.world.lying = None
    relink(one)
    one.settle()


# What cannot be applied, or is lost on its way.


def refused(one: Run) -> None:
    """A cluster does not take one object: all else goes on, and it is said why."""
    edge = edges_of(one)[0]
    edge.space.refused_for_good[A] = None
    everywhere(one, "p1", A, B)
    everywhere(one, "p2", C)
    one.settle()
    edge.space.refused_for_good.clear()


def lost_content(one: Run) -> None:
    """An object that a new version names is nowhere to be had: the former version stays."""
    before, gone = prescribed(one.centre), {}
    one.world.lying_blobs = lambda _host, what, value: None if what.address in gone else value
    gone[everywhere(one, "p1", A, B)[A].reference.address] = None
    everywhere(one, "p2", C)
    one.world.run(200)
    after = prescribed(one.centre)
    for edge in edges_of(one):
        held = {key: address for key, (address, _) in edge.space.objects.items()}
        asked = {k: w.reference.address for k, w in edge.node.wanted.items()} if edge.node else {}
        want = {A: before[edge.path][A], B: before[edge.path][B], C: after[edge.path][C]}
        require(held == want, NO_LOSS, f"{edge.path} holds {held}, not {want}")
        require(asked == want, NO_LOSS, f"{edge.path} wants {asked}, not {want}")
    require(says(one.world.root, "p1", "ContentRefused"), NO_LOSS, "nobody says why")
    gone.clear()


def lost_reports(one: Run) -> None:
    """Reports that are stored, as the child knows, are lost: no session begins, all is said."""
    edge = edges_of(one)[0]
    edge.space.refusing[A] = None
    edge.space.drift(A, delete=True)
    one.world.run(30)
    before = epochs(one)
    one.world.faults = replace(NO_FAULTS, report_loss=1.0)
    edge.space.refusing.clear()
    one.world.run(20)
    one.world.faults = NO_FAULTS
    one.world.run(4 * TOLD_SECONDS)
    one.oracle.settled()
    require(epochs(one) == before, CONVERGENCE, "a session was begun for it")


def lost_on_the_way(one: Run) -> None:
    """A relay does not hand its children an object that it tells them of."""
    before, gone, region = prescribed(one.centre), {}, region_of(one)
    one.world.lying_blobs = lambda host, what, value: (
        None if host is region and what.address in gone else value
    )
    gone[everywhere(one, "p1", A, B)[A].reference.address] = None
    one.world.run(60)
    for edge in edges_of(one):
        edge.space.drift(B, delete=True)
    one.world.run(60)
    for edge in edges_of(one):
        held = {key: address for key, (address, _) in edge.space.objects.items()}
        want = before[edge.path]
        require(held == want, NO_LOSS, f"{edge.path} holds {held}, not {want}")
        require(says(edge, "p1", "ContentRefused"), NO_LOSS, f"{edge.path} does not say why")
    gone.clear()
