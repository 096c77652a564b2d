"""The rooms of one node, as they are handed to the parts that work across them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relay.core.audience import Audience
from relay.core.collectors.collected_results import CollectedResults
from relay.core.content.content import Content
from relay.core.destination.destination import LocalDestination
from relay.core.effects import Effect
from relay.core.instant import Instant
from relay.core.link.children import Children
from relay.core.link.target import Targets
from relay.core.records.acceptance import Acceptance
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge
from relay.core.records.trust import Trust
from relay.core.releases import Releases
from relay.core.reports.child_reports import ChildReports
from relay.core.reports.sender import ReportSender


@dataclass(frozen=True, slots=True)
class Rooms:
    """Each keeps its own state, and is used by its methods alone."""

    clock: Callable[[], Instant]
    # What is to be done, in order.
    out: list[Effect]
    trust: Trust
    book: RecordBook
    judge: SnapshotJudge
    acceptance: Acceptance
    audience: Audience
    content: Content
    targets: Targets
    children: Children
    reports: ChildReports
    collected: CollectedResults
    sender: ReportSender
    releases: Releases
    # None where no space is attached.
    destination: LocalDestination | None
    # The children of which anything was ever heard, by any run of this node.
    joined: set[str]
    # The keys with which children came first by bundles of a former release, as that noted them.
    first_sessions: dict[str, str]


class RoomsPart:
    """A part that works across the rooms of one node: it has each by its own name."""

    def __init__(self, rooms: Rooms) -> None:
        self._clock = rooms.clock
        self._out = rooms.out
        self._trust = rooms.trust
        self._book = rooms.book
        self._judge = rooms.judge
        self._acceptance = rooms.acceptance
        self._audience = rooms.audience
        self._content = rooms.content
        self._targets = rooms.targets
        self._children = rooms.children
        self._reports = rooms.reports
        self._collected = rooms.collected
        self._sender = rooms.sender
        self._releases = rooms.releases
        self._destination = rooms.destination
        self._joined = rooms.joined
        self._first_sessions = rooms.first_sessions
