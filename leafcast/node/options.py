"""What a node is given: who it is, its way up, the cluster it works on, how children get to it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.member_change import MemberChange
from leafcast.node.member_forms import CHILDREN
from leafcast.space_settings import SpaceSetting
from leafcast.telemetry.process_telemetry import Telemetry, process_telemetry
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.member_presence import MemberPresence
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.durability import DEFAULT_STORE, StoreSettings
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.spaces.simulated_cluster import Settings
from relay.core.effects import Noted
from relay.ports import Clock, Dice
from relay.shell.driver import Driver
from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId

if TYPE_CHECKING:
    from relay.adapters.jetstream.entrance import Decide

LET_IN_SECONDS = 5.0


RunBeside = Callable[[Driver], Coroutine[Any, Any, None]]
"""Work on a node's relay that starts and ends with each of its runs."""


@dataclass(frozen=True, slots=True)
class ActiveMember:
    """A member of a node while it is the active one: its server runs already, and goes on.

    `leaf_urls` are where servers of children dial in: at any member's. `others` are where clients
    reach the other members' servers. `presence` asks the other members; `servers` tells which of
    their servers ended. `hears` is to be called once what is asked is heard here. `replacing` has
    another machine take the place of a lost one. `follows` if another member was active since this
    one's process began.
    """

    tenure: Tenure
    server: EmbeddedServer
    leaf_urls: tuple[str, ...]
    others: tuple[str, ...]
    presence: MemberPresence
    servers: ServerWatch
    hears: Callable[[], None]
    replacing: MemberChange
    follows: bool = False

    async def children_let_in(self) -> None:
        """Wait, if that is soon, until every member that answers lets the same children in."""
        await self.tenure.settled()
        await self.presence.until_alike(CHILDREN, LET_IN_SECONDS)


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What all nodes of one program share; with `member` it is one node, of several members.

    Spans are sent by `telemetry`, if there is one.
    """

    guard: ProcessGuard
    clock: Clock
    dice: Dice
    tree: TreeId
    roots: Roots
    store: StoreSettings = DEFAULT_STORE
    member: ActiveMember | None = None
    telemetry: Telemetry | None = field(default_factory=process_telemetry)

    @property
    def replicas(self) -> int:
        """At how many servers its streams are kept."""
        return MEMBERS if self.member is not None else 1

    async def confirm(self) -> None:
        """Be sure that this is the active member, if it is one of several; raises BusBroken."""
        if self.member is not None:
            await self.member.tenure.confirm()


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """Who a node is, and the folder in which it keeps what it knows.

    `home` tells this folder from another one with the same credentials, "" if that cannot be;
    `former` are the paths at which it hung before. `releases` is the folder that it shares with a
    launcher, if one may run it.
    """

    path: NodePath
    folder: Path
    home: str = ""
    former: tuple[NodePath, ...] = ()
    releases: Path | None = None


@dataclass(frozen=True, slots=True)
class ParentAccess:
    """A node's way to its parent, and how it writes down what changes of that.

    `keep_seed` takes another key, by which the parent is to know the node from the next start on;
    without it the key is not the node's own to change. `keep_authorities` takes PEM text: whom to
    believe at the parent.
    """

    link: ParentRemote
    keep_seed: Callable[[str], None] | None = None
    keep_authorities: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class EdgeCluster:
    """The cluster that an edge works on; with `take_over` it may be that of a silent edge."""

    setting: Settings | SpaceSetting
    take_over: bool = False


@dataclass(frozen=True, slots=True)
class Listening:
    """How children elsewhere get to a server of ours, and (PEM text) whom they are to believe.

    `certificate` is the one that the tree's authority signs, if that does.
    """

    leaf_address: LeafAddress | None = None
    authorities: str = ""
    certificate: NodeCertificate | None = None


@dataclass(frozen=True, slots=True)
class NodeHooks:
    """What others do when a node starts or changes.

    `set_up` must have succeeded before the first run; it may raise BusBroken, and is tried again.
    `run_task` is work on the relay that starts and ends with each of its runs. `decide` answers, at
    the centre, those who ask to be let in. `note` hears what people may want to know of.
    """

    set_up: Callable[[], Coroutine[Any, Any, None]] | None = None
    run_task: RunBeside | None = None
    decide: Decide | None = None
    changed: Callable[[], None] = lambda: None
    note: Callable[[Noted], None] = lambda _: None
