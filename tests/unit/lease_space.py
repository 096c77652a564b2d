"""A space whose leases lie in memory, under the concurrency that API servers promise."""

from dataclasses import replace

from relay.claims.leases import Lease
from relay.space_errors import Conflict, SpaceError


class LeaseSpace:
    """What of a shared space a claim needs; `fails` is what it answers instead, once for each."""

    def __init__(self, cluster="one"):
        self.cluster = cluster
        self.held = {}
        self.fails = []
        self.writes = 0
        self.before_write = None
        self.leases = self

    async def identity(self):
        self._fail()
        return self.cluster

    async def read(self, name):
        self._fail()
        return self.held.get(name)

    async def write(self, lease):
        self._fail()
        if (act := self.before_write) is not None:
            self.before_write = None
            act()
        found = self.held.get(lease.name)
        if (found.version if found else "") != lease.version:
            raise Conflict("Conflict", "someone was first")
        return self.put(lease)

    async def delete(self, lease):
        self._fail()
        found = self.held.get(lease.name)
        if found is not None and found.version != lease.version:
            raise Conflict("Conflict", "someone was first")
        self.held.pop(lease.name, None)
        self.writes += 1

    def put(self, lease):
        """Have it lie there, whoever wrote it."""
        self.writes += 1
        self.held[lease.name] = replace(lease, version=str(self.writes), uid=lease.uid or "u")
        return self.held[lease.name]

    def _fail(self):
        if self.fails:
            raise self.fails.pop(0)


def forbidden(said="leases is forbidden"):
    return SpaceError("Forbidden", said)


def away():
    return SpaceError("ServiceUnavailable", "the API server cannot be reached")


def lease(name="leafcast-edge", holder="/r1/s1", **notes):
    """One of another, by its notes."""
    return Lease(name, holder, notes, "2026-01-01T00:00:00.000000Z")
