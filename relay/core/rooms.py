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
    # None where no space is attached.
    destination: LocalDestination | None
    # The children of which anything was ever heard, by any run of this node.
    joined: set[str]
    # The keys with which children came first by bundles of a former release, as that noted them.
    first_sessions: dict[str, str]
