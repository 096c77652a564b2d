"""Whether a placement is ready, as tools that wait ask it (kstatus: Flux, Helm, Argo CD, kubectl).

Ready asks only for those that can be reached: of many destinations some are always away. What is
not ready either goes on by itself (Reconciling), or no waiting helps (Stalled).
"""

from __future__ import annotations

from collections.abc import Sequence

from controllers.core.conditions import ready, reconciling, stalled
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.rollout_holds import kept
from controllers.core.workloads.missing_references import NOTHING_SELECTED
from schemas.api.placement_details import Hold
from schemas.api.shared import Condition
from schemas.records.hold_reasons import ends_by_itself
from schemas.records.shares import at_most
from schemas.reports.reports import Count, Summary
from schemas.reports.states import IN_MAINTENANCE, NEVER_JOINED, NOT_WORKING
from schemas.values.wording import many, some_of

AWAY_NAMED_MAX = 4
AVAILABLE, UNAVAILABLE = "Available", "Unavailable"
"""The words of KubeStellar's BindingPolicy."""
EMPTY, ROLLING_OUT, UNREACHABLE = "Empty", "RollingOut", "Unreachable"
_UNDER_WAY = ("pending", "waiting", "leaving")
_MAY_PASS = frozenset(
    {
        "ContentMissing",
        "InternalError",
        "NotFound",
        "ServerTimeout",
        "ServiceUnavailable",
        "Terminating",
        "Timeout",
        "TooManyRequests",
    }
)
"""Errors of an edge's API server that may pass without anyone's help; each is tried again."""


def readiness(
    facts: PlacementFacts,
    count: Count,
    held: Sequence[Hold],
    synced: Condition,
    healthy: Condition,
) -> tuple[Condition, ...]:
    """Ready, and Reconciling or Stalled if it is not; `held` has who needs a person first."""
    if facts.invalid:
        return stalled(UNAVAILABLE if facts.is_policy else "Invalid", facts.invalid)
    if held:
        passes = ends_by_itself(held[0].reason, held[0].until)
        made = reconciling if passes else stalled
        said = held[0].message.removesuffix(".") if held[0].remedy else held[0].message
        return made(held[0].reason, "; ".join(filter(None, (said, held[0].remedy))))
    if allowed := _allowed_to_be_empty(facts, count):
        return ready(EMPTY, f"{allowed}, as spec.readiness.allowEmpty allows")
    if synced.status == "Unknown":
        return reconciling(synced.reason, synced.message, known=False)
    if facts.lack is not None or not count.summary.joined:
        return reconciling(synced.reason, synced.message)
    if facts.steered is not None and kept(facts.steered, count) != 0:
        waves = facts.steered.state.message if facts.steered.state is not None else ""
        return reconciling(ROLLING_OUT, "; ".join(filter(None, (synced.message, waves))))
    return _reached(facts, count.summary, synced, healthy)


def _reached(
    facts: PlacementFacts, summary: Summary, synced: Condition, healthy: Condition
) -> tuple[Condition, ...]:
    """Whether all who can be reached have it, and enough can be."""
    whole, away = summary.joined, summary.states.get("unreachable", 0)
    reachable = summary.awaited - away
    if summary.states.get("synced", 0) < reachable:
        made = stalled if _is_refused(summary) else reconciling
        return made(synced.reason, synced.message)
    if summary.health.get("healthy", 0) < reachable:
        return reconciling(healthy.reason, healthy.message)
    good = f"{reachable} of {many(whole, 'destination')}"
    absent = f"; {summary.never_joined} {NEVER_JOINED}" if summary.never_joined else ""
    absent += f"; {summary.maintained} {IN_MAINTENANCE}" if summary.maintained else ""
    if not away:
        return ready(AVAILABLE, f"{good} {_are(reachable)} synced and healthy{absent}")
    tolerated = at_most(facts.readiness.max_unavailable, whole)
    unreached = f"{away} cannot be reached, and {tolerated} may be away{_where(facts.away)}{absent}"
    if away > tolerated or not reachable:
        return reconciling(UNREACHABLE, f"{good} {_are(reachable)} synced and healthy; {unreached}")
    return ready(AVAILABLE, f"{good} {_are(reachable)} synced and healthy; {unreached}")


def _allowed_to_be_empty(facts: PlacementFacts, count: Count) -> str:
    """What is empty of a placement that may be; "" if nothing is, or it may not."""
    if not facts.readiness.allow_empty:
        return ""
    if facts.lack is not None:
        return "no object is selected" if facts.lack.reason == NOTHING_SELECTED else ""
    nobody = count.exact and not count.summary.destinations
    return "no destination is selected" if nobody else ""


def _is_refused(summary: Summary) -> bool:
    """Whether an edge cannot apply something, and nothing else is still on its way."""
    if any(summary.states.get(state) for state in _UNDER_WAY):
        return False
    failing = (each.reason for each in summary.exceptions if each.severity < NOT_WORKING)
    return any(reason.partition(":")[0] not in _MAY_PASS for reason in failing)


def _where(places: Sequence[str]) -> str:
    return f": {some_of(places, AWAY_NAMED_MAX)}" if places else ""


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
