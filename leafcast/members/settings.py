"""What makes a data directory that of one member of a node: a file of the machine's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leafcast.data_dir import MEMBER_FILE
from leafcast.members.addresses import served_names
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.listen_settings import LEAF_PORT
from relay.adapters.server.cluster_settings import BadClusterSettings, ClusterSettings, RouteTls
from relay.adapters.server.leaf_address import LOOPBACK, LeafAddress, TlsFiles
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json
from schemas.values.identity import NodePath, TreeId

FILE = MEMBER_FILE
MEMBERSHIP_FILE = "membership.json"
"""Who the members are since one of them was replaced: a file of the node's state."""
ROUTES = "routes"
CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE = "certificate.pem", "key.pem", "authority.pem"
"""In the folder `routes` of a member whose routes have certificates of the members' own."""
_ROUTES = re.compile(rf"{ROUTES}(-[0-9]+-[0-9]+)?")
_KEY_BYTES = 32


class MemberUnusable(Exception):
    """A file that should make a folder a member's and does not; names it, and the remedy."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(
            f"{file} cannot be used: {why}; copy it back from a backup of this member's data "
            "directory and start it again: the other two members go on meanwhile"
        )
        self.file = file


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """One member: of which node, how its server reaches the others', and who they are.

    `leaf_urls` are where servers of children dial in, at all members, and `client_urls` where their
    own clients do, by name, of those that this machine reaches; `keys` are the public keys of all
    by name, 32 bytes each, and `key` is this one's private half. `listens` are those of `leaf_urls`
    that lead to this member, where it shows a certificate; none if nobody comes from elsewhere.
    `applied` are number and step of the last change of the members that was carried out here.
    """

    path: NodePath
    cluster: ClusterSettings
    leaf_urls: tuple[str, ...]
    client_urls: Mapping[str, str]
    keys: Mapping[str, bytes]
    key: bytes = field(repr=False)
    listens: tuple[str, ...] = ()
    applied: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The name of this member within its node."""
        return self.cluster.member

    @property
    def others(self) -> tuple[str, ...]:
        """Where clients reach the servers of the other members."""
        return tuple(url for name, url in self.client_urls.items() if name != self.name)

    def certificate(self, server: Path) -> NodeCertificate | None:
        """What its server, whose data lies there, shows to children; None if none come."""
        return NodeCertificate(server, served_names(self.leaf_urls)) if self.listens else None

    def leaf_address(self, server: Path) -> LeafAddress | None:
        """How servers of children elsewhere dial in here; None if none come."""
        shown = self.certificate(server)
        if shown is None:
            return None
        return LeafAddress(self.leaf_urls, urlsplit(self.listens[0]).port or LEAF_PORT, shown.files)


def kept_member(folder: Path) -> MemberSettings | None:
    """What the folder says; None if it is no member's. Raises MemberUnusable."""
    file = folder / FILE
    try:
        return read_member(from_json(file.read_bytes()), folder)
    except FileNotFoundError:
        return None
    except KeyError as error:
        raise MemberUnusable(file, f"it lacks {error}") from error
    except (BadClusterSettings, ValueError, TypeError, AttributeError) as error:
        raise MemberUnusable(file, str(error)) from error


def read_member(form: dict[str, Any], folder: Path) -> MemberSettings:
    """What a form says of the member in a folder; raises as what it is made of."""
    cluster = ClusterSettings(
        TreeId(form["tree"]),
        form["member"],
        form["port"],
        tuple(form["routes"]),
        form["password"],
        form.get("host", LOOPBACK),
        route_tls(folder, form.get("routesIn", ROUTES)) if form.get("tls") else None,
    )
    keys = {name: _key(text) for name, text in form["keys"].items()}
    path, leaf_urls = NodePath.parse(form["path"]), tuple(form["leafUrls"])
    clients = {str(name): str(url) for name, url in form["clientUrls"].items()}
    listens = tuple(map(str, form.get("listens", ())))
    number, step = map(int, form.get("applied", (0, 0)))
    private = _key(form["key"])
    return MemberSettings(path, cluster, leaf_urls, clients, keys, private, listens, (number, step))


def route_tls(folder: Path, name: str) -> RouteTls:
    """What a member shows at its routes, from a folder of this name; raises ValueError."""
    if not _ROUTES.fullmatch(name):
        raise ValueError(f"routesIn {name!r} is no folder of a member's")
    place = folder / name
    files = TlsFiles(place / CERTIFICATE_FILE, place / KEY_FILE)
    return RouteTls(files, place / AUTHORITY_FILE)


def keep_member(folder: Path, settings: MemberSettings) -> None:
    """Make the folder this member's; raises OSError."""
    form = {**member_form(settings), "key": settings.key.hex()}
    atomic_write(folder / FILE, json.dumps(form, indent=2) + "\n")


def member_form(settings: MemberSettings) -> dict[str, Any]:
    """What `read_member` reads, but for the private key."""
    cluster = settings.cluster
    return {
        "tree": cluster.tree,
        "path": str(settings.path),
        "member": cluster.member,
        "host": cluster.host,
        "port": cluster.port,
        "routes": list(cluster.routes),
        "password": cluster.password,
        "tls": cluster.tls is not None,
        "routesIn": cluster.tls.authorities.parent.name if cluster.tls is not None else ROUTES,
        "applied": list(settings.applied),
        "leafUrls": list(settings.leaf_urls),
        "clientUrls": dict(settings.client_urls),
        "listens": list(settings.listens),
        "keys": {name: key.hex() for name, key in settings.keys.items()},
    }


def _key(text: str) -> bytes:
    key = bytes.fromhex(text)
    if len(key) != _KEY_BYTES:
        raise ValueError(f"a key of {len(key)} bytes, where {_KEY_BYTES} are one")
    return key
