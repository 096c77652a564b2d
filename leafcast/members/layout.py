"""Data directories of the members of a node on one machine, laid out before their first start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path

from nacl.public import PrivateKey

from leafcast.members.settings import MemberSettings, keep_member
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.server.ports import ServerPorts, free_port, free_ports, keep_ports
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Dice
from schemas.values.identity import NodePath, TreeId

PASSWORD_BYTES = 24
_PORTS = 3


class PortPool:
    """Ports for servers that are all laid out before the first one listens."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def take(self, folder: Path) -> tuple[ServerPorts, int]:
        """Those of one member's server, and the one of its routes; none was given before."""
        for attempt in count():
            ports, route = free_ports(folder, attempt), free_port(folder, attempt + 1)
            wanted = {ports.client, ports.leaf, route}
            if len(wanted) == _PORTS and not wanted & self._given:
                self._given |= wanted
                return ports, route
        raise AssertionError("the ports of a machine are many")


def lay_out_members(
    folders: Mapping[str, Path],
    server: str,
    tree: TreeId,
    path: NodePath,
    dice: Dice,
    pool: PortPool,
) -> None:
    """Make each folder that of one member; `server` is where in it the server's data is.

    Raises OSError.
    """
    password = dice.entropy(PASSWORD_BYTES).hex()
    keys = {name: PrivateKey(dice.entropy(PrivateKey.SIZE)) for name in folders}
    routes: dict[str, int] = {}
    leaf_urls: list[str] = []
    client_urls: dict[str, str] = {}
    for name, folder in folders.items():
        place = folder / server
        make_folder(place)
        ports, routes[name] = pool.take(place)
        keep_ports(place, ports)
        client_urls[name] = f"nats://{LOOPBACK}:{ports.client}"
        leaf_urls.append(f"nats://{LOOPBACK}:{ports.leaf}")
    for name, folder in folders.items():
        others = tuple(f"{LOOPBACK}:{port}" for it, port in routes.items() if it != name)
        cluster = ClusterSettings(tree, name, routes[name], others, password)
        public = {it: bytes(key.public_key) for it, key in keys.items()}
        settings = MemberSettings(
            path, cluster, tuple(leaf_urls), client_urls, public, bytes(keys[name])
        )
        keep_member(folder, settings)


def copy_state(source: Path, target: Path, patterns: Collection[str]) -> None:
    """Have a member's folder hold what is the node's, before its first start; raises OSError."""
    for pattern in patterns:
        for file in source.glob(pattern):
            copy = target / file.relative_to(source)
            make_folder(copy.parent)
            atomic_write(copy, file.read_text(encoding="utf-8"))
