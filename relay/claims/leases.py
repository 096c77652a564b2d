"""Leases of a space that others reach, too: who says to work on it, and since when.

A space without leases belongs to its node alone, and needs no claim.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from relay.space_port import Space
from schemas.values.groups import SYSTEM_NAMESPACE

LEASES_NAMESPACE = SYSTEM_NAMESPACE
EDGE_LEASE = "leafcast-edge"


@dataclass(frozen=True, slots=True)
class Lease:
    """One lease as it lies in a space; without a version it is to be created."""

    name: str
    # Who holds it, for people; "" if it was given back.
    holder: str = ""
    # What our own decisions read, by annotation.
    notes: Mapping[str, str] = field(default_factory=dict)
    # RFC 3339, by the clock of the holder: for people.
    acquired: str = ""
    renewed: str = ""
    seconds: int = 0
    version: str = ""
    uid: str = ""


class LeaseStore(Protocol):
    """The leases of one space; all raise SpaceError, and AnotherSpace if it is another now."""

    async def read(self, name: str) -> Lease | None:
        """The lease as it is now; None only if the space says that there is none."""
        ...

    async def write(self, lease: Lease) -> Lease:
        """Create it, or replace the one of its version; as it is then.

        Raises Conflict if someone else was there first.
        """
        ...

    async def delete(self, lease: Lease) -> None:
        """Delete it if it is still of this version; raises Conflict if not. Again is harmless."""
        ...


@runtime_checkable
class SharedSpace(Space, Protocol):
    """A space that others reach, too."""

    @property
    def leases(self) -> LeaseStore: ...


def rfc3339(wall_ms: int) -> str:
    """A time as Kubernetes' MicroTime is written."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def milliseconds(text: str) -> int | None:
    """The same, read; None if it is no time."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(found.timestamp() * 1000) if found.tzinfo is not None else None
