"""The node of which a member is one, as the member runs it, and how the member stands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from leafcast.members.settings import MemberSettings
from leafcast.metrics.reading import MetricReading
from leafcast.node.member_forms import NONE, STUCK
from leafcast.node.options import ActiveMember
from relay.adapters.jetstream.member_presence import ACTIVE, ROLE, STANDBY, MemberPresence
from relay.adapters.server.nats_config import AccountSeeds, Neighbours
from relay.adapters.server.nats_server import EmbeddedServer

SAID_SECONDS = 3.0
"""So long nothing is heard of an active member until one that stands by says so."""
LONE_SECONDS = 30.0
"""So long without a word of an active member: children are better served at another one's."""


class MemberNode(Protocol):
    """The node of which a member is one, as the program runs it."""

    @property
    def folder(self) -> Path:
        """The data directory."""
        ...

    @property
    def server_folder(self) -> Path:
        """Where this member's server keeps its data."""
        ...

    @property
    def state(self) -> Sequence[str]:
        """Patterns of the files below the data directory that are the node's."""
        ...

    @property
    def server_files(self) -> Collection[str]:
        """Of those, the ones that its server reads: it reads anew when they change."""
        ...

    def neighbours(self) -> Neighbours:
        """Whom its server links to, by the files as they are now."""
        ...

    def take(self, settings: MemberSettings) -> None:
        """Be this member from now on: it is the same, and the others may be others."""
        ...

    def listen(self, urls: tuple[str, ...]) -> None:
        """Children dial in at these from now on, at all members; raises OSError."""
        ...

    def why_not(self) -> str:
        """Why this member may not be active, by the files as they are now; "" if it may."""
        ...

    def kept_back_by(self) -> str:
        """The file of the state that another member erases before this one may be active.

        "" if none is waited for.
        """
        ...

    def facts(self) -> Mapping[str, Any]:
        """What this member says to the others of it, beside how it stands."""
        ...

    def why_others(self) -> str:
        """Why another member is to be active rather than this one, "" if none is."""
        ...

    async def stand(
        self,
        server: EmbeddedServer,
        seeds: AccountSeeds,
        standing: Callable[[], Standing],
        presence: MemberPresence,
    ) -> None:
        """What is done beside the node, active or not, until cancelled; the server runs."""
        ...

    def out_of_step(self) -> str:
        """Why a launcher is not to take this member for healthy yet; "" if it may."""
        ...

    def unready(self) -> Mapping[str, str]:
        """What keeps the node from its work now, while `run` is under way: see HealthEndpoint."""
        ...

    async def readings(self) -> Sequence[MetricReading]:
        """The figures of the node, while `run` is under way."""
        ...

    async def run(self, member: ActiveMember) -> None:
        """Run the node until cancelled, made anew of its files and streams."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What a member is now.

    `active_seconds` is for how long it is the active one, None if it is not, and `hears_seconds`
    for how long it has heard all that is asked; `silent_seconds` for how long, as it stands by, it
    has heard nothing of an active one. `stuck` names of each stream that takes no writes, though
    its servers call it healthy, the server that leads it.
    """

    active_seconds: float | None = None
    silent_seconds: float = 0.0
    hears_seconds: float = 0.0
    stuck: Mapping[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """The same, as it is said."""
        if self.active_seconds is not None:
            times = {"activeSeconds": self.active_seconds, "hearsSeconds": self.hears_seconds}
            return {ROLE: ACTIVE, STUCK: dict(self.stuck), **times}
        return {ROLE: STANDBY, "silentSeconds": self.silent_seconds}

    @property
    def role(self) -> str:
        """`active`, `standby`, or `none` where it hears of nobody who is active."""
        if self.active_seconds is not None:
            return ACTIVE
        return STANDBY if self.silent_seconds <= SAID_SECONDS else NONE

    @property
    def is_lone(self) -> bool:
        """Whether what children say to its server may reach nobody."""
        return self.active_seconds is None and self.silent_seconds > LONE_SECONDS
