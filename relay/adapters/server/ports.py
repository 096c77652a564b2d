"""A server keeps its ports for the life of its folder, because its children know the leaf port.

Candidates lie below the range from which systems take ports for outgoing connections: otherwise
such a connection could sit on a server's port while the server restarts.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from relay.adapters.server.port_holder import Holder
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

_FIRST, _COUNT = 20_000, 12_000
_FILE = "ports.json"


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """TCP ports on the loopback address: for clients, and for the children's leaf links."""

    client: int
    leaf: int


class PortTaken(OSError):
    """A port that must not change is used by someone else: `holder`, if that is known."""

    def __init__(self, ports: ServerPorts, folder: Path, holder: Holder | None = None) -> None:
        otherwise = f"or remove {folder / _FILE} if no child was given the address yet"
        if holder is None:
            what = f"port {ports.client} or {ports.leaf} is in use"
            remedy = f"does another Leafcast run on {folder}? Stop it, {otherwise}"
        else:
            if holder.port not in (ports.client, ports.leaf):
                otherwise = "or say another --listen"
            what, remedy = f"port {holder.port} is in use by {holder}", f"stop that, {otherwise}"
        super().__init__(f"{what}: {remedy}")
        self.ports = ports
        self.folder = folder
        self.holder = holder


class PortsDamaged(ValueError):
    """A file of ports that holds none; names it, and the remedy."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            f"{file} is damaged: it should hold a client and a leaf port; restore it, or remove it "
            "for new ports (children that joined need new tokens then)"
        )
        self.file = file


def kept_ports(folder: Path) -> ServerPorts | None:
    """The ports this folder's server had, None if it never ran; raises PortsDamaged."""
    file = folder / _FILE
    try:
        ports = ServerPorts(**from_json(file.read_bytes()))
        _check(ports)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise PortsDamaged(file) from error
    return ports


def _check(ports: ServerPorts) -> None:
    if not all(type(port) is int and 0 < port < 2**16 for port in (ports.client, ports.leaf)):
        raise TypeError(ports)


def keep_ports(folder: Path, ports: ServerPorts) -> None:
    """Remember them for the next start."""
    atomic_write(folder / _FILE, json.dumps(asdict(ports)))


def free_ports(folder: Path, attempt: int) -> ServerPorts:
    """Two ports nobody listens on now; folders and attempts differ in where they begin to look."""
    free = (port for port in _candidates(folder, attempt) if is_free(port))
    return ServerPorts(client=next(free), leaf=next(free))


def free_port(folder: Path, attempt: int) -> int:
    """One port, as `free_ports`."""
    return next(port for port in _candidates(folder, attempt) if is_free(port))


def _candidates(folder: Path, attempt: int) -> Iterator[int]:
    seed = hashlib.sha256(os.fsencode(folder.resolve()) + bytes([attempt])).digest()
    begin = int.from_bytes(seed[:8], "big")
    return (_FIRST + (begin + step) % _COUNT for step in range(_COUNT))


def is_free(port: int) -> bool:
    """Whether nobody listens there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
