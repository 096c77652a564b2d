"""How servers of children get to a node's server: by which addresses, and what it shows them."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A server's certificate, with its chain behind it, and its key: files of PEM text."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class LeafAddress:
    """How servers of children elsewhere dial in: the `urls` that they are told."""

    urls: tuple[str, ...]
    # With `tls` on all addresses of this machine; else on 127.0.0.1, of WebSockets that a proxy
    # passes on.
    port: int
    tls: TlsFiles | None = None


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches the host."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
