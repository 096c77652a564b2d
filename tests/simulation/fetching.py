"""How a host looks a blob up: in its own store, else at its parent, if that can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay.core.events import BlobArrived
from schemas.blobs import Reference

if TYPE_CHECKING:
    from tests.simulation.host import Host


def looked_up(host: Host, parent: Host | None, reference: Reference) -> BlobArrived:
    """What the host hears of it now: the value, that there is none, or nothing at all."""
    value = host.streams.blobs.get(reference.address)
    if value is not None:
        return BlobArrived(reference, value, local=True)
    if parent is None or not host.linked or host.path in host.world.mute:
        return BlobArrived(reference, None, local=False, unheard=not host.path.is_root)
    value = parent.streams.blobs.get(reference.address)
    if value is not None and host.world.lying_blobs:
        value = host.world.lying_blobs(parent, reference, value)
    return BlobArrived(reference, value, local=False)
