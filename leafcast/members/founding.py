"""Three machines become the members of a node: what each is told, made at the centre.

Pure but for the randomness and the moment that come in as arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leafcast.members.addresses import bracketed, leaf_urls_of, served_names
from leafcast.members.layout import PASSWORD_BYTES
from leafcast.members.settings import (
    AUTHORITY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    MEMBERSHIP_FILE,
    ROUTES,
    keep_member,
    read_member,
)
from leafcast.node.credentials.account_seeds import keep_seeds
from leafcast.node.credentials.node_certificate import NodeCertificate
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.leaf_address import LOOPBACK, is_loopback
from relay.adapters.server.nats_config import AccountSeeds
from relay.adapters.tls.authority import Authority, new_key, signing_request, valid_until
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Dice
from schemas.enrolment.member_requests import MemberRequest
from schemas.values.codec import from_json
from schemas.values.identity import NodePath, TreeId

GRANT = "member"
"""The name under which what a member is told is sealed to it."""
EVERYWHERE = "0.0.0.0"  # noqa: S104 - with certificates of the members' own


@dataclass(frozen=True, slots=True)
class Founding:
    """What one member is told: its settings but for its own key, PEM texts, its node's accounts.

    `shown` is what each member shows to children elsewhere, as LeafCertificate has it; {} if none
    come from elsewhere.
    """

    form: Mapping[str, Any]
    certificate: str
    key: str = field(repr=False)
    authority: str
    accounts: Mapping[str, str] = field(repr=False)
    shown: Mapping[str, str] = field(default_factory=dict, repr=False)

    def encoded(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def read_founding(data: bytes) -> Founding:
    """What `encoded` said; raises ValueError, TypeError."""
    return Founding(**from_json(data))


@dataclass(frozen=True, slots=True)
class LeafCertificate:
    """One certificate for all members of a node, by the tree's authority; PEM texts."""

    certificate: str
    key: str = field(repr=False)
    authorities: str


def founded(
    tree: TreeId,
    path: NodePath,
    machines: Mapping[str, MemberRequest],
    shown: LeafCertificate | None,
    accounts: AccountSeeds,
    dice: Dice,
    now_ms: int,
) -> dict[str, Founding]:
    """What the members of a node are told, by name; machines on a network show a certificate."""
    if len(machines) != MEMBERS:
        raise ValueError(f"a node has {MEMBERS} members, and not {len(machines)}")
    authority = Authority.make(f"members of {path} of {tree}"[:64], now_ms)
    until_ms = valid_until(authority.certificate)
    routes = {name: f"{bracketed(it.host)}:{it.route_port}" for name, it in machines.items()}
    shared = {
        "tree": tree,
        "path": str(path),
        "password": dice.entropy(PASSWORD_BYTES).hex(),
        "tls": True,
        "leafUrls": [url for it in machines.values() for url in leaf_urls_of(it)],
        # Clients of a server are on its machine.
        "clientUrls": {
            name: f"nats://{bracketed(it.host)}:{it.client_port}"
            for name, it in machines.items()
            if is_loopback(it.host)
        },
        "keys": {name: it.key.hex() for name, it in machines.items()},
    }
    found = {}
    for name, its in machines.items():
        key = new_key()
        form = {
            **shared,
            "member": name,
            "host": LOOPBACK if is_loopback(its.host) else EVERYWHERE,
            "port": its.route_port,
            "routes": [route for other, route in routes.items() if other != name],
            "listens": list(leaf_urls_of(its)) if shown is not None else [],
        }
        names = list(dict.fromkeys((its.host, LOOPBACK)))
        certificate = authority.issue(signing_request(key, names), now_ms, until_ms)
        found[name] = Founding(
            form,
            certificate,
            key,
            authority.certificate,
            asdict(accounts),
            asdict(shown) if shown is not None else {},
        )
    return found


def settle(founding: Founding, private: bytes, folder: Path, server: Path) -> None:
    """Make a folder the member's, whose server keeps its data in `server`.

    Raises OSError, and what `read_member` raises.
    """
    settings = read_member({**founding.form, "key": private.hex()}, folder)
    routes = folder / ROUTES
    for place in (server, routes):
        make_folder(place)
    atomic_write(routes / KEY_FILE, founding.key)
    atomic_write(routes / CERTIFICATE_FILE, founding.certificate)
    atomic_write(routes / AUTHORITY_FILE, founding.authority)
    keep_seeds(server, AccountSeeds(**founding.accounts))
    if founding.shown:
        shown = LeafCertificate(**founding.shown)
        names = served_names(settings.leaf_urls)
        own = NodeCertificate(server, names)
        own.keep(shown.key, shown.certificate, shown.authorities)
    # What an earlier trio here came to is over.
    (folder / MEMBERSHIP_FILE).unlink(missing_ok=True)
    # Last: from now on the folder is a member's.
    keep_member(folder, settings)
