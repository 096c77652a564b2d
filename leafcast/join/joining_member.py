"""A machine asks to be a member of a node, and becomes one once a person lets the node grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from nacl.public import PrivateKey

from leafcast.centre.copying import put_store_aside
from leafcast.data_dir import DataDir, DataDirUnusable, make_private
from leafcast.join.folder import MEMBER_REQUEST_FILE, node_in
from leafcast.join.invitation import Invitation
from leafcast.join.join_request import JoinRequester
from leafcast.join.joined_node import JoinFailed
from leafcast.machine import host_name
from leafcast.members.addresses import (
    HostRefused,
    MemberHost,
    leaf_port,
    leaf_url,
    member_host,
    route_port,
    served_names,
    shared_port,
)
from leafcast.members.founding import GRANT, read_founding, settle
from leafcast.members.sealed_state import opened
from leafcast.members.settings import MemberSettings, kept_member
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.known_children import KnownChildren
from leafcast.node.listen_settings import ListenRefused, ListenSettings, kept_listen_settings
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.server.ports import ServerPorts, free_ports, keep_ports, kept_ports
from relay.atomic_file import atomic_write, make_folder
from relay.ports import Clock, Dice
from schemas.enrolment.enrolment import SignedRequest
from schemas.enrolment.member_requests import (
    MemberRequest,
    open_member_answer,
    sign_member_request,
)
from schemas.enrolment.tokens import Token
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

_WITHOUT_CHILDREN = (
    "take those nodes out first (`leafcast node remove`) and let them join anew once it has grown"
)
_ROUTE_ATTEMPT = 7
"""Where the port for routes is looked for: behind those for the server's clients and children."""


@dataclass(frozen=True, slots=True)
class MemberReach:
    """Where a machine is reached: by the other members, and (at `urls`) by children elsewhere."""

    host: MemberHost
    urls: tuple[str, ...] = ()


def member_reach(host: str, listens: ListenSettings | None) -> MemberReach:
    """What a start line says of both; raises HostRefused or ListenRefused."""
    if listens is not None and listens.is_others:
        reason = "a member shows a certificate that the tree's authority signs for all three"
        remedy = "say --listen NAME[:PORT], without --tls-cert"
        raise ListenRefused(listens.urls[0], reason, remedy)
    own = member_host(host or (listens.hosts[0] if listens is not None else LOOPBACK))
    urls = listens.urls if listens is not None else ()
    if urls and (shared := shared_port(own.host, own.port, urls)):
        raise HostRefused(host, f"{shared}, by --listen")
    if listens is not None:
        if not own.is_away:
            remedy = "say with --member-host where the other members reach this machine"
            raise ListenRefused(listens.urls[0], f"--member-host is {own.host}", remedy)
        return MemberReach(own, listens.urls)
    return MemberReach(own, (leaf_url(own.host),) if own.is_away else ())


@dataclass(frozen=True, slots=True)
class KeptMemberRequest:
    """What a folder remembers of its request: the private key, and the ports of its server.

    `host` is where the others were to reach it as the port for routes was chosen.
    """

    token: str
    key: str = field(repr=False)
    client_port: int
    leaf_port: int
    route_port: int
    host: str = ""


class JoiningMember:
    """One machine that is to be a member of the node of a token; `say` tells how that goes."""

    def __init__(
        self,
        invited: Invitation,
        folder: Path,
        reach: MemberReach,
        clock: Clock,
        dice: Dice,
        say: Callable[[str], None],
    ) -> None:
        self._token, self._path, self._folder = invited.token, invited.path, folder
        self._reach, self._clock, self._dice = reach, clock, dice
        self._requester = JoinRequester(
            invited.urls, invited.token, invited.path, folder, clock, dice, say
        )

    @property
    def server_folder(self) -> Path:
        """Where this member's server keeps its data."""
        return DataDir(self._folder).node(self._path)

    def settled(self) -> MemberSettings | None:
        """What an earlier start came to here; None if it is no member yet.

        Raises DataDirUnusable if it is another's, and MemberUnusable.
        """
        settings = kept_member(self._folder)
        if settings is None:
            return None
        if (settings.cluster.tree, settings.path) != (self._token.tree, self._path):
            reason = f"it is that of member {settings.name} of {settings.path}"
            if settings.cluster.tree != self._token.tree:
                reason += " of another tree"
            raise DataDirUnusable(self._folder, reason, "name another --data-dir")
        return settings

    async def run(self) -> None:
        """Ask until this machine is a member; the folder, which is locked, says so then.

        Raises JoinFailed, DataDirUnusable, OSError.
        """
        make_private(self._folder)
        has_state = self._has_state()
        reach = self._reach
        if has_state:
            self._check_children()
        asked = self._remembered()
        key = PrivateKey(bytes.fromhex(asked.key))
        release, name = version("leafcast"), host_name()

        def request() -> SignedRequest:
            return sign_member_request(
                self._token,
                MemberRequest(
                    self._path,
                    bytes(key.public_key),
                    release,
                    self._clock.now().wall_ms,
                    reach.host.host,
                    reach.host.port or asked.route_port,
                    asked.leaf_port,
                    asked.client_port,
                    name,
                    has_state,
                    reach.urls,
                ),
            )

        answer = await self._requester.ask(request, open_member_answer)
        founding = read_founding(opened(GRANT, answer.settings, GRANT, bytes(key)))
        make_folder(self.server_folder)
        if has_state:
            put_store_aside(self._folder, self.server_folder)
        keep_ports(self.server_folder, ServerPorts(asked.client_port, asked.leaf_port))
        settle(founding, bytes(key), self._folder, self.server_folder)
        (self._folder / MEMBER_REQUEST_FILE).unlink(missing_ok=True)

    def _check_children(self) -> None:
        """Refuse addresses at which children of the node would not find it any more: JoinFailed."""
        if not KnownChildren(self.server_folder).nkeys:
            return
        urls = self._reach.urls
        try:
            kept = kept_listen_settings(self._folder)
        except ListenRefused as error:
            remedy = "run it once more as the relay that it is, with the --listen that it had"
            raise JoinFailed(self._path, str(error), remedy) from error
        if kept is not None and kept.is_others:
            reason = f"its children dial {' and '.join(kept.urls)}, where the certificate is yours"
            remedy = f"members show one of the tree's authority: {_WITHOUT_CHILDREN}"
            raise JoinFailed(self._path, reason, remedy)
        dialled = set(kept.urls if kept is not None else self._certified())
        reached = set(urls if kept is not None else served_names(urls))
        # One machine listens at one port, whatever is forwarded to it.
        is_moved = kept is not None and bool(urls) and leaf_port(urls) != leaf_port(kept.urls)
        if dialled <= reached and bool(dialled) is bool(urls) and not is_moved:
            return
        if dialled:
            listed = ", ".join(kept.urls if kept is not None else sorted(dialled))
            reason = f"its children dial {listed}"
            remedy = "say the --listen that it had, with its port; --member-host may be another"
        else:
            reason = "its children reach it in clear, on this machine alone"
            remedy = f"leave out --member-host and --listen, or {_WITHOUT_CHILDREN}"
        raise JoinFailed(self._path, reason, remedy)

    def _certified(self) -> set[str]:
        """For which hosts it has a certificate of the tree's: former releases noted no more."""
        certificate = NodeCertificate.kept(self.server_folder)
        return set(certificate.names) - {LOOPBACK} if certificate is not None else set()

    def _has_state(self) -> bool:
        """Whether the node runs in this folder; raises DataDirUnusable for another's."""
        found = node_in(DataDir(self._folder), self._token.tree)
        if found is not None and found.path != self._path:
            reason = f"it belongs to {found.path}, not {self._path}"
            raise DataDirUnusable(self._folder, reason, "name another --data-dir")
        return found is not None

    def _remembered(self) -> KeptMemberRequest:
        """The request of an earlier start with this token, or a new one, written down."""
        file, host = self._folder / MEMBER_REQUEST_FILE, self._reach.host
        found = read_member_note(file)
        kept = found if found is not None and found.token == self._token.token_id else None
        # Children know those of a node that runs here.
        ports = kept_ports(self.server_folder) or free_ports(self.server_folder, 0)
        if kept is not None:
            ports = ServerPorts(kept.client_port, kept.leaf_port)
        taken = {ports.client, ports.leaf, *(leaf_port([it]) for it in self._reach.urls)}
        if kept is not None and kept.host == host.host and kept.route_port not in taken:
            return kept
        route = route_port(host, self.server_folder, _ROUTE_ATTEMPT, taken)
        key = kept.key if kept is not None else self._dice.entropy(PrivateKey.SIZE).hex()
        made = KeptMemberRequest(
            self._token.token_id, key, ports.client, ports.leaf, route, host.host
        )
        atomic_write(file, json.dumps(asdict(made), indent=2) + "\n")
        return made


def read_member_note(file: Path) -> KeptMemberRequest | None:
    """What a file of a request says; None if it says nothing: then another one is made."""
    try:
        kept = KeptMemberRequest(**from_json(file.read_bytes()))
        bytes.fromhex(kept.key)
    except (OSError, ValueError, TypeError):
        return None
    ports = (kept.client_port, kept.leaf_port, kept.route_port)
    return kept if all(type(port) is int for port in ports) else None


def default_member_folder(token: Token, path: NodePath) -> Path:
    """Where a member keeps its state unless it is told."""
    return DataDir.default().folder / "members" / f"{token.tree[:8]}-{path.domain}"
