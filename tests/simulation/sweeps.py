"""Lives in which it matters which content a node lets go of, and in which mail comes late."""

from __future__ import annotations

from relay.core.events import MailArrived
from schemas.identity import MailKey
from tests.simulation.laws import BOUNDED, NO_LOSS
from tests.simulation.run import Run
from tests.simulation.scenes import A, B, edges_of, everywhere, put, region_of, require

HOUR = 3600.0


def superseded(one: Run) -> None:
    """The content of a former version stays for an hour, and then leaves every store."""
    old = everywhere(one, "p1", A, B)[A].reference.address
    one.settle()
    one.world.run(HOUR / 2)
    holders = [host for host in one.world.hosts.values() if old in host.streams.blobs]
    require(len(holders) > 2, NO_LOSS, "the former version did not come to every store")
    everywhere(one, "p1", A, B)
    one.settle()
    one.world.run(HOUR - 60)
    for host in holders:
        require(old in host.streams.blobs, NO_LOSS, f"{host.path} let it go within the hour")
    one.world.run(2 * HOUR)
    for host in holders:
        require(old not in host.streams.blobs, BOUNDED, f"{host.path} keeps what nobody wants")


def come_again(one: Run) -> None:
    """Mail that was read long ago comes once more, after what is newer."""
    everywhere(one, "p1", A)
    put(one, "p2", None)
    one.settle()
    for host in (region_of(one), *edges_of(one)):
        parent = one.world.hosts[host.path.parent]
        for (_, key), kept in parent.streams.mail.after(0, host.path.name):
            host.receive_mail(MailArrived(kept.sequence, MailKey(key), kept.data, 0))
    one.world.run(5.0)
    one.oracle.settled()
