"""A server as one of three members of a node: how they reach each other, and whom they let in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from relay.adapters.server.leaf_address import LOOPBACK, TlsFiles, is_loopback
from schemas.values.identity import NodePath, TreeId

MEMBERS = 3
"""JetStream keeps each message at this many servers, and goes on while two of them run."""
MEMBER_NAME_CHARACTERS_MAX = 32
PASSWORD_CHARACTERS_MIN = 32
ROUTE_USER = "member"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_PASSWORD = re.compile(r"[A-Za-z0-9]+")
_ROUTE = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")
_PORT_MAX = 65535


class BadClusterSettings(ValueError):
    """A setting by which no server can be a member; names it, its value, and the rule."""

    def __init__(self, setting: str, value: object, rule: str) -> None:
        super().__init__(f"the cluster setting {setting} {value!r} is not usable: {rule}")
        self.setting = setting


@dataclass(frozen=True, slots=True)
class RouteTls:
    """What a member shows at a route, and a PEM file with who signs for its members only."""

    files: TlsFiles
    authorities: Path


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Which member of which node a server is; raises BadClusterSettings.

    `host` and `port` are where it listens for the others, whose routes are each HOST:PORT. Beyond
    this machine they need `tls`.
    """

    tree: TreeId
    # Of this server, within its node: a DNS label.
    member: str
    port: int
    routes: tuple[str, ...]
    # Letters and digits: it stands in URLs. All members have the same.
    password: str = field(repr=False)
    host: str = LOOPBACK
    tls: RouteTls | None = None

    def __post_init__(self) -> None:
        check_member_name(self.member)
        if not 0 < self.port <= _PORT_MAX:
            raise BadClusterSettings("port", self.port, f"a port is 1 to {_PORT_MAX}")
        if len(self.routes) != MEMBERS - 1:
            rule = f"a member has {MEMBERS - 1} others: name the address of each"
            raise BadClusterSettings("routes", ", ".join(self.routes), rule)
        hosts = {self.host, *map(_route_host, self.routes)}
        if self.tls is None and (away := next((it for it in hosts if not is_loopback(it)), None)):
            rule = "it is on another machine, which needs certificates of the members' own"
            raise BadClusterSettings("routes", away, rule)
        if not _PASSWORD.fullmatch(self.password) or len(self.password) < PASSWORD_CHARACTERS_MIN:
            rule = f"it is {PASSWORD_CHARACTERS_MIN} or more letters and digits"
            raise BadClusterSettings("password", "...", rule)

    def cluster_name(self, path: NodePath) -> str:
        """What tells the cluster of this node from any other, in all trees."""
        return f"{self.tree}-{path.domain}"

    def server_name(self, path: NodePath) -> str:
        """The member's own: a cluster knows its peers, and a parent its links, by name."""
        return f"{path.domain}.{self.member}"

    @property
    def route_urls(self) -> tuple[str, ...]:
        """Where the server dials the others; they hold the password."""
        return tuple(f"nats-route://{ROUTE_USER}:{self.password}@{at}" for at in self.routes)


def check_member_name(name: str) -> None:
    """Refuse what is no name of a member; raises BadClusterSettings."""
    if not _NAME.fullmatch(name) or len(name) > MEMBER_NAME_CHARACTERS_MAX:
        rule = f"it is up to {MEMBER_NAME_CHARACTERS_MAX} of a-z, 0-9 and -, as in machine-2"
        raise BadClusterSettings("member", name, rule)


def _route_host(route: str) -> str:
    parts = _ROUTE.fullmatch(route)
    if parts is None or not 0 < int(parts["port"]) <= _PORT_MAX:
        raise BadClusterSettings("routes", route, "a route is HOST:PORT")
    return parts["host"]
