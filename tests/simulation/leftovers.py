"""What nodes keep of what is gone: memory that would grow with time."""

from __future__ import annotations

from collections import Counter

from relay.core.notes import is_note
from tests.simulation.laws import BOUNDED
from tests.simulation.world import World


def leftover_faults(world: World) -> list[str]:
    """Slots and records of what is gone, each as a fault and how often it is found."""
    faults, in_force = [], world.root.streams.own
    for host in world.hosts.values():
        for (child, key), _kept in host.streams.mail.items():  # noqa: PERF102
            if key not in in_force:
                faults.append(f"{host.path} keeps mail to {child} of what is gone")
        gone = {key for key in host.streams.own if not is_note(key)} - in_force.keys()
        faults += [f"{host.path} keeps a record of what is gone"] * len(gone)
    return [f"{BOUNDED}: {fault} ({count} times)" for fault, count in Counter(faults).items()]
