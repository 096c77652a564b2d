"""Data directories of the members of a node on one machine, laid out before their first start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from nacl.public import PrivateKey

from leafcast.members.settings import MemberSettings, keep_member
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.server.ports import free_port, free_ports, keep_ports
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Dice
from schemas.values.identity import NodePath, TreeId

PASSWORD_BYTES = 24


def lay_out_members(
    folders: Mapping[str, Path], server: str, tree: TreeId, path: NodePath, dice: Dice
) -> None:
    """Make each folder that of one member; `server` is where in it the server's data is.

    Raises OSError.
    """
    password = dice.entropy(PASSWORD_BYTES).hex()
    keys = {name: PrivateKey(dice.entropy(PrivateKey.SIZE)) for name in folders}
    routes, leaf_urls = {}, []
    for name, folder in folders.items():
        place = folder / server
        make_folder(place)
        ports = free_ports(place, 0)
        keep_ports(place, ports)
        routes[name] = free_port(place, 1)
        leaf_urls.append(f"nats://{LOOPBACK}:{ports.leaf}")
    for name, folder in folders.items():
        others = tuple(f"{LOOPBACK}:{port}" for it, port in routes.items() if it != name)
        cluster = ClusterSettings(tree, name, routes[name], others, password)
        public = {it: bytes(key.public_key) for it, key in keys.items()}
        settings = MemberSettings(path, cluster, tuple(leaf_urls), public, bytes(keys[name]))
        keep_member(folder, settings)


def copy_state(source: Path, target: Path, patterns: Collection[str]) -> None:
    """Have a member's folder hold what is the node's, before its first start; raises OSError."""
    for pattern in patterns:
        for file in source.glob(pattern):
            copy = target / file.relative_to(source)
            make_folder(copy.parent)
            atomic_write(copy, file.read_text(encoding="utf-8"))
