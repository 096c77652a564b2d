"""Where a machine that is a member of its node is reached: by the other members, and by children.

Pure but for what is asked of the machine's ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from leafcast.node.listen_settings import LEAF_PORT, ListenRefused, listen_settings
from relay.adapters.server.leaf_address import LOOPBACK, is_loopback
from relay.adapters.server.ports import free_port, is_free
from relay.adapters.tls.names import host_form, is_host
from schemas.enrolment.member_requests import MemberRequest
from schemas.values.faults import Unusable

ROUTE_PORT = 6222
"""Where a machine listens for the other members unless it is told, or that is taken."""
PORT_MAX = 65535


class HostRefused(Unusable):
    """What is no address of a machine; names it, and says what one looks like."""

    word = "host "

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text, reason, "name it as in 10.0.0.7, m2.example or m2.example:6222")


@dataclass(frozen=True, slots=True)
class MemberHost:
    """Where the other members reach a machine; with port 0 it takes a free one."""

    host: str = LOOPBACK
    port: int = 0

    @property
    def is_away(self) -> bool:
        """Whether the others may be on other machines."""
        return not is_loopback(self.host)


def member_host(text: str) -> MemberHost:
    """What was said, HOST or HOST:PORT; raises HostRefused."""
    bare = text if text.startswith("[") or text.count(":") < 2 else f"[{text}]"
    try:
        parts = urlsplit(f"//{bare}")
        host, port = host_form(parts.hostname or ""), parts.port
    except ValueError as error:
        raise HostRefused(text, str(error)) from error
    if parts.netloc != bare or parts.username or not is_host(host):
        raise HostRefused(text, "no other machine can call it")
    if port == 0:
        raise HostRefused(text, "nothing listens on port 0")
    return MemberHost(host, port or 0)


def route_port(host: MemberHost, folder: Path, attempt: int, taken: Collection[int]) -> int:
    """Where a machine listens for the other members: as it was told, or where nobody listens.

    `taken` are ports of its own on which its server will listen for others.
    """
    if host.port:
        return host.port
    if host.is_away and ROUTE_PORT not in taken and is_free(ROUTE_PORT):
        return ROUTE_PORT
    found = (free_port(folder, it) for it in count(attempt))
    return next(port for port in found if port not in taken)


def leaf_port(urls: Sequence[str]) -> int:
    """Where a machine listens for children; to the other addresses of it that is forwarded."""
    return urlsplit(urls[0]).port or LEAF_PORT


def shared_port(host: str, route: int, urls: Sequence[str]) -> str:
    """Why the other members cannot reach a machine at this port; "" if children do not."""
    dialled = {(host_form(it.hostname or ""), it.port or LEAF_PORT) for it in map(urlsplit, urls)}
    if route != leaf_port(urls) and (host, route) not in dialled:
        return ""
    return f"port {route} is to be that of children and of the other members"


def bracketed(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def leaf_url(host: str, port: int = LEAF_PORT) -> str:
    """Where servers of children dial in at a machine."""
    return f"{'nats' if is_loopback(host) else 'tls'}://{bracketed(host)}:{port}"


def leaf_urls_of(machine: MemberRequest) -> tuple[str, ...]:
    """Where servers of children dial in at a machine that asked, by what it said."""
    return machine.listens or (leaf_url(machine.host, machine.leaf_port),)


def misfit(machine: MemberRequest) -> str:
    """Why nobody can be told the addresses of a machine that asked; "" if they can be."""
    try:
        if member_host(machine.host).is_away:
            found = listen_settings(leaf_urls_of(machine), "", "", "")
            if found.behind_proxy:
                return "a proxy has the certificate there"
            return shared_port(machine.host, machine.route_port, found.urls)
    except (HostRefused, ListenRefused) as error:
        return str(error)
    return "it listens to other machines, and says no host for them" if machine.listens else ""


def apart(machines: Mapping[str, MemberRequest]) -> str:
    """Why machines cannot reach each other, by what they said; "" if they can."""
    here = [name for name, it in machines.items() if is_loopback(it.host)]
    if not here or len(here) == len(machines):
        return ""
    away = ", ".join(f"{name} at {it.host}" for name, it in machines.items() if name not in here)
    return f"{' and '.join(here)} can be reached on its own machine alone, and {away} is another"


def served_names(urls: Iterable[str]) -> tuple[str, ...]:
    """What a certificate is for that is shown at these URLs, and on the machine itself."""
    hosts = (host_form(urlsplit(url).hostname or "") for url in urls)
    return tuple(dict.fromkeys([*hosts, LOOPBACK]))
