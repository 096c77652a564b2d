"""What comes back, as status: counts and first errors of a placement, and a singleton's own status.

Counts that are not exact read "at least".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from controllers.core.conditions import STANDING, condition, merged
from controllers.core.status.aggregated import unpacked
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.generations import HubContent, of_one_copy
from controllers.core.status.holds import as_status, holds
from controllers.core.status.readiness import readiness
from controllers.core.status.rollout_holds import kept
from controllers.core.status.traces import traces
from controllers.core.status.unreturned import STATUS_REFUSED
from controllers.core.workloads.missing_references import Lack
from controllers.core.workloads.space import FROZEN
from controllers.core.workloads.unread_kinds import NOT_LISTED
from schemas.api.placement_details import Hold
from schemas.api.shared import Condition
from schemas.objects.annotations import MOVE_DEADLINE, RELEASE_ROLLOUT
from schemas.objects.objects import ObjectKey
from schemas.records.hold_reasons import KIND_UNREADABLE, NOT_AWAITED, ends_by_itself
from schemas.records.placements import kind_of, short_title, title
from schemas.reports.causes import causes_first
from schemas.reports.reports import (
    COUNT_MAX,
    Count,
    ExceptionSample,
    Health,
    ObjectResult,
    State,
    Summary,
)
from schemas.reports.states import AT_WORK, IN_MAINTENANCE, NEVER_JOINED, NOT_WORKING
from schemas.values.faults import told_once
from schemas.values.wire import replace
from schemas.values.wording import all_but, many, namespace_first, some_of

ERRORS_MAX = 20
VALID, SYNCED, HEALTHY = "Valid", "Synced", "Healthy"
REMOVAL_HELD, OBJECTS_REFUSED = "RemovalHeld", "ObjectsRefused"
FAILING = "Failing"
SINGLETON_REPORTED = "SingletonReported"
OBJECTS_SELECTED = "ObjectsSelected"
DESTINATIONS_SELECTED = "DestinationsSelected"
ACTS_AT_CENTRE = "ActsAtCentre"
COLLECTORS_AVAILABLE = "StatusCollectorsAvailable"
ROLLOUT_GONE = "RolloutGone"
WIDE_SELECTION, POLICIES_DIFFER = "WideSelection", "PoliciesDiffer"
CUSTOMIZED = "Customized"
DEPENDENCY_MISSING, DEPENDENCY_CIRCLE = "DependencyMissing", "DependencyCircle"
MOVING = "Moving"
KEYLESS = "SecretsUnopened"
SINGLETONS_NAMED_MAX = 4
OBJECTS_NAMED_MAX = 4
_HAVE = ("has", "have")
_OWNED = (
    VALID,
    SYNCED,
    HEALTHY,
    REMOVAL_HELD,
    OBJECTS_REFUSED,
    SINGLETON_REPORTED,
    OBJECTS_SELECTED,
    DESTINATIONS_SELECTED,
    ACTS_AT_CENTRE,
    COLLECTORS_AVAILABLE,
    *STANDING,
    WIDE_SELECTION,
    POLICIES_DIFFER,
    CUSTOMIZED,
    DEPENDENCY_MISSING,
    DEPENDENCY_CIRCLE,
    MOVING,
    KEYLESS,
    ROLLOUT_GONE,
)


_WRONG = frozenset({FAILING, FROZEN, "Degraded"})
UNCOUNTED = Count(Summary(), exact=False)
"""Nothing is known of a placement yet."""


def placement_status(
    facts: PlacementFacts, count: Count | None, before: object, now_ms: int
) -> dict[str, Any]:
    """The status of a placement; `before` is the one it has now."""
    generation = max(1, facts.generation)
    older = {"specGeneration": generation, "matchingLocationCount": facts.locations}
    count = _counted(facts, count or UNCOUNTED)
    known = count.summary
    # An empty set of objects is everywhere at once, which says nothing.
    counts = facts.selected > 0 or facts.lack is None
    states = known.states if counts else {**known.states, "synced": 0}
    former = before if isinstance(before, Mapping) else {}
    found = holds(facts, count)
    awaited = [hold for hold in found if hold.reason not in NOT_AWAITED]
    return {
        **({} if facts.is_policy else older),
        "observedGeneration": generation,
        "selectedObjects": facts.selected,
        "destinations": known.joined,
        "synced": states.get("synced", 0),
        "pending": states.get("pending", 0),
        "waiting": states.get("waiting", 0),
        "failing": states.get("failing", 0),
        "frozen": states.get("frozen", 0),
        "unreachable": states.get("unreachable", 0),
        "neverJoined": known.never_joined,
        "healthy": known.health.get("healthy", 0) if counts else 0,
        "complete": count.exact,
        "errors": [*_crowded_out(count), *_errors(facts, known.exceptions)][:ERRORS_MAX],
        "held": as_status(found, former.get("held"), now_ms),
        **traces(count, former),
        "conditions": merged(
            former.get("conditions"), _conditions(facts, count, awaited), now_ms, _OWNED
        ),
    }


def _counted(facts: PlacementFacts, count: Count) -> Count:
    """What is counted, where nothing counts as delivered while an object of it is not sent."""
    return undelivered(count) if facts.faults else count


def error_text(sample: ExceptionSample) -> str:
    """One exception for people: `shop/deployments.apps/web: ImagePullBackOff (…)`."""
    where = namespace_first(sample.object)
    what = f"{where}: {sample.reason}" if where else sample.reason
    return f"{what} ({many(sample.count, 'destination')}, e.g. {sample.path})"


@dataclass(frozen=True, slots=True)
class Singleton:
    """What an object's own status shall be: `count` destinations hold it for those who ask."""

    count: int
    # None leaves it as it is, `{}` clears it.
    status: dict[str, Any] | None


def singleton(
    key: ObjectKey, asking: Sequence[tuple[Count | None, Sequence[ObjectResult]]], hub: HubContent
) -> Singleton:
    """Judge one object from the placements that ask for its singleton state.

    A single destination is known by its id, and counts once whoever books it. `hub` is what the
    object is now, by which generations count.
    """
    results = [item for _, listed in asking for item in listed if item.key == key]
    single = {item.destination for item in results if item.count == 1}
    count = len(single) + sum(item.count for item in results if item.count > 1)
    if len(asking) == 1 and asking[0][0] is not None:
        summary = asking[0][0].summary
        count = summary.destinations - summary.states.get("leaving", 0)
    exact = all(counted is not None and counted.exact for counted, _ in asking)
    if count > 1 or (count == 0 and exact):
        return Singleton(count, {})
    if not exact or count == 0:
        return Singleton(count, None)
    return Singleton(count, _status_of(results, hub))


def _status_of(results: Iterable[ObjectResult], hub: HubContent) -> dict[str, Any] | None:
    """The one returned status; `{}` while there is none, None if it is unreadable."""
    for item in results:
        if item.count == 1 and item.status:
            status = unpacked(item.status)
            return of_one_copy(status, item, hub) if isinstance(status, dict) else None
    return {}


def _crowded_out(count: Count) -> list[str]:
    """That some of what copies return is not here, and what to do."""
    if not count.unsaid:
        return []
    said = (
        f"what {many(count.unsaid, 'object')} return found no room on the way and is only counted"
    )
    return [f"{said}: want less back, or look which node is full (leafcast doctor)"]


def _errors(facts: PlacementFacts, samples: Iterable[ExceptionSample]) -> list[str]:
    own = [facts.invalid] if facts.invalid else []
    own += [facts.lack.message] if facts.lack and facts.lack.reason == FROZEN else []
    own += told_once(facts.faults)
    own += [_ambiguous_text(facts)] if facts.ambiguous else []
    own += told_once(facts.unreturned)
    wrong = [sample for sample in _worst_first(samples) if sample.severity < AT_WORK]
    return [*own, *(error_text(sample) for sample in wrong)][:ERRORS_MAX]


def _worst_first(samples: Iterable[ExceptionSample]) -> list[ExceptionSample]:
    return causes_first(samples, lambda it: (it.severity, it.count, it.object, it.reason))


def _conditions(facts: PlacementFacts, count: Count, found: Sequence[Hold]) -> list[Condition]:
    delivered = _delivered(facts, count, found)
    listed = [_valid(facts), *delivered, *_standing(facts, count, found, delivered)]
    if facts.removal_held:
        listed.append(condition(REMOVAL_HELD, "True", "RemovalHeld", facts.removal_held))
    if facts.faults:
        message = "; ".join(told_once(facts.faults)[:ERRORS_MAX])
        listed.append(condition(OBJECTS_REFUSED, "True", "ObjectsRefused", message))
    listed += _returned(facts, count)
    listed += _asked_for(facts)
    listed += _waited_for(facts)
    if facts.undenatured:
        listed.append(condition(ACTS_AT_CENTRE, "True", "NotDenatured", facts.undenatured))
    if facts.empty_selectors:
        message = "; ".join(facts.empty_selectors[:ERRORS_MAX])
        listed.append(condition(DESTINATIONS_SELECTED, "False", "MatchNobody", message))
    if facts.wide:
        selected, known = facts.wide
        message = (
            f"it selects {selected} of the {known} objects that there are; if that is not meant, "
            "narrow spec.downsync"
        )
        listed.append(condition(WIDE_SELECTION, "True", "AlmostAllObjects", message))
    if facts.differing:
        message = "; ".join(
            f"{title(other)} says createOnly otherwise of {_named(keys)}: where both go, the copy "
            "is kept in step; say the same in both"
            for other, keys in islice(facts.differing.items(), ERRORS_MAX)
        )
        listed.append(condition(POLICIES_DIFFER, "True", "CreateOnly", message))
    return listed


def _returned(facts: PlacementFacts, count: Count) -> Iterator[Condition]:
    """That statuses which are asked for do not come back, and why."""
    told = [_ambiguous_text(facts)] if facts.ambiguous else []
    reason = "NotOneDestination" if told else STATUS_REFUSED if facts.unreturned else "NoRoom"
    told += told_once(facts.unreturned)[:ERRORS_MAX]
    if told := [*told, *_crowded_out(count)]:
        yield condition(SINGLETON_REPORTED, "False", reason, "; ".join(told))


def standing(facts: PlacementFacts, count: Count) -> tuple[Condition, ...]:
    """Whether it is ready, and else whether it goes on by itself or needs a person."""
    count = _counted(facts, count)
    found = holds(facts, count)
    return _standing(facts, count, found, _delivered(facts, count, found))


def _standing(
    facts: PlacementFacts, count: Count, found: Sequence[Hold], delivered: Iterable[Condition]
) -> tuple[Condition, ...]:
    by_type = {item.type: item for item in delivered}
    return readiness(facts, count, found, by_type[SYNCED], by_type[HEALTHY])


def _asked_for(facts: PlacementFacts) -> Iterator[Condition]:
    """What of that which it names has no effect, or is not there."""
    if facts.missing_collectors is not None:
        yield _collectors(facts, facts.missing_collectors)
    # While it is frozen nothing goes out as it is written: one condition says that.
    if facts.uncustomized and not (facts.lack and facts.lack.reason == FROZEN):
        message = "; ".join(facts.uncustomized[:ERRORS_MAX])
        yield condition(CUSTOMIZED, "False", "CustomizerMissing", message)
    # One that is there, and cannot be read, says so itself.
    if facts.is_gone and not (facts.steered is not None and facts.steered.rollout):
        news = facts.steered.news if facts.steered is not None else ""
        sends = f"this sends everyone {news}" if news else "nothing differs now"
        message = (
            "the Rollout that steered it is gone: it stays as it is; create a Rollout, or let it "
            f"go: leafcast rollout release {short_title(facts.name)}, or the annotation "
            f'{RELEASE_ROLLOUT}: "true" on it ({sends})'
        )
        if facts.steered is not None and facts.steered.release_counted:
            message += "; the one on it counted for a former Rollout: take it off, and set it again"
        yield condition(ROLLOUT_GONE, "True", "Frozen", message)


def _waited_for(facts: PlacementFacts) -> Iterator[Condition]:
    """What it cannot wait for, and for what it waits."""
    if facts.absent:
        named = ", ".join(map(title, facts.absent))
        message = f"{named}: not there, so nothing waits for it; apply it, or do not name it"
        yield condition(DEPENDENCY_MISSING, "True", DEPENDENCY_MISSING, message)
    if facts.circle:
        named = ", ".join(map(title, facts.circle))
        message = f"{named} wait for each other, so none of them does; take one out of the circle"
        yield condition(DEPENDENCY_CIRCLE, "True", DEPENDENCY_CIRCLE, message)
    if facts.keeping:
        message = f"{facts.keeping_text}, or {MOVE_DEADLINE} is over"
        yield condition(MOVING, "True", "MakeBeforeBreak", message)
    if facts.keyless:
        count = len(facts.keyless)
        message = (
            f"{_destinations(count, _HAVE)} no key, so no Secret opens there: "
            f'"{facts.keyless[0]}"; let their nodes join (leafcast node add)'
        )
        yield condition(KEYLESS, "True", "NoKey", message)


def _collectors(facts: PlacementFacts, missing: Sequence[str]) -> Condition:
    """Whether all collectors that are named are there, and heard; one that is invalid is not."""
    told = [f"Missing StatusCollector(s) [{' '.join(missing)}]"] if missing else []
    if sourceless := facts.sourceless_collectors:
        remedy = "name them in spec.downsync, or write their spec.source"
        told.append(f"StatusCollector(s) [{' '.join(sourceless)}] have no source: {remedy}")
    told += facts.left_out_collectors[:ERRORS_MAX]
    if facts.uncombined:
        told.append(f"a CombinedStatus was refused: {facts.uncombined}")
    if told:
        message = "; ".join(told)
        return condition(COLLECTORS_AVAILABLE, "False", "ReconcileError", message)
    message = "All StatusCollector(s) are available"
    return condition(COLLECTORS_AVAILABLE, "True", "ReconcileSuccess", message)


def _named(keys: Sequence[ObjectKey]) -> str:
    return some_of([namespace_first(str(key)) for key in keys], OBJECTS_NAMED_MAX)


def _delivered(facts: PlacementFacts, count: Count, found: Sequence[Hold]) -> list[Condition]:
    """Whether it is where it should be, and works; what lacks something is neither."""
    lack = facts.lack
    if facts.invalid and not facts.in_force:
        # Nothing is under way, so no report is waited for.
        both = (SYNCED, HEALTHY)
        return [condition(type_, "False", "Invalid", facts.invalid_text) for type_ in both]
    if lack is None and found:
        return [_held(said, found[0]) for said in (_synced(count), _healthy(count))]
    if lack is None and facts.steered is not None and (number := kept(facts.steered, count)) != 0:
        return [*_going_out(count, number)]
    if lack is None:
        return [_synced(count), _healthy(count)]
    if lack.reason == FROZEN:
        frozen = [condition(type_, "False", FROZEN, lack.message) for type_ in (SYNCED, CUSTOMIZED)]
        return [*frozen, _healthy(count)]
    if lack.reason in (KIND_UNREADABLE, NOT_LISTED):
        selected = condition(OBJECTS_SELECTED, "False", lack.reason, lack.message)
        return [*(_unread(said, lack) for said in (_synced(count), _healthy(count))), selected]
    types = (SYNCED, HEALTHY, OBJECTS_SELECTED)
    return [condition(type_, "False", lack.reason, lack.message) for type_ in types]


def _going_out(count: Count, number: int | None) -> Iterator[Condition]:
    """What goes out by waves is not everywhere before the last one.

    Who has nothing before its wave counts as waiting, and works as nobody can tell.
    """
    synced, healthy = _synced(count), _healthy(count)
    for said in (synced, healthy):
        is_waiting = synced.reason == "Waiting" and said.reason in ("Waiting", "Progressing")
        if said.status == "True" or is_waiting:
            left = many(number, "destination") if number is not None else "others"
            message = f"{said.message}; {left} still to get the newest content by the waves"
            yield condition(said.type, "False", "RollingOut", message)
        else:
            yield said


def _held(said: Condition, hold: Hold) -> Condition:
    """What is held is not delivered, however many hold exactly what may go out.

    What is wrong goes before what ends by itself.
    """
    passes = ends_by_itself(hold.reason, hold.until) and said.reason in _WRONG
    reason = said.reason if passes else hold.reason
    return condition(said.type, "False", reason, f"{said.message}; held: {hold.message}")


def _unread(said: Condition, lack: Lack) -> Condition:
    """What may select more than is seen is not delivered; what else is wrong goes first."""
    if said.status == "False":
        return condition(said.type, "False", said.reason, f"{said.message}; {lack.message}")
    return condition(said.type, "False", lack.reason, lack.message)


def _ambiguous_text(facts: PlacementFacts) -> str:
    """That a status cannot be returned, for which objects (some of them), and what to do."""
    named = [
        f"{namespace_first(str(key))} ({facts.ambiguous[key]})" for key in sorted(facts.ambiguous)
    ]
    selectors = kind_of(facts.name).selectors
    return (
        "singleton status is asked for, and not exactly one destination has these objects: "
        f"{some_of(named, SINGLETONS_NAMED_MAX)}; narrow {selectors} to one, "
        "or do not ask for it"
    )


def _destinations(count: int, verbs: tuple[str, str] = ("is", "are")) -> str:
    return f"{many(count, 'destination')} {verbs[count != 1]}"


def _valid(facts: PlacementFacts) -> Condition:
    if facts.invalid:
        return condition(VALID, "False", "Invalid", facts.invalid_text)
    return condition(VALID, "True", "Valid", "")


def _synced(count: Count) -> Condition:
    summary = count.summary
    synced, whole, awaited = summary.states.get("synced", 0), summary.joined, summary.awaited
    pending = summary.states.get("pending", 0)
    message = f"{synced} of {_destinations(whole)} synced"
    if not count.exact:
        waiting = ", ".join(count.waiting_for) or "the first reports"
        return condition(
            SYNCED, "Unknown", "Incomplete", f"at least {message}; waiting for {waiting}"
        )
    if not whole:
        return condition(SYNCED, "False", *_nobody(summary))
    if synced == awaited:
        return condition(SYNCED, "True", "Synced", message + _absent(summary))
    word = "Waiting" if summary.states.get("waiting") and not pending else "Pending"
    reason = _if_silent(summary, word)
    if summary.states.get("frozen"):
        reason = FROZEN
    if summary.states.get("failing"):
        reason = FAILING
    message += all_but(summary.states, "synced")
    failures = [each for each in summary.exceptions if each.severity < NOT_WORKING]
    return condition(SYNCED, "False", reason, _with_worst(message, failures))


def _healthy(count: Count) -> Condition:
    summary = count.summary
    healthy, whole, awaited = summary.health.get("healthy", 0), summary.joined, summary.awaited
    message = f"{healthy} of {_destinations(whole)} healthy"
    if not count.exact:
        return condition(HEALTHY, "Unknown", "Incomplete", f"at least {message}")
    if not whole:
        return condition(HEALTHY, "False", *_nobody(summary))
    if healthy == awaited:
        return condition(HEALTHY, "True", "Healthy", message + _absent(summary))
    reason = "Degraded" if summary.health.get("degraded") else _if_silent(summary, "Progressing")
    message += all_but(summary.health, "healthy")
    works_not = [each for each in summary.exceptions if each.severity >= NOT_WORKING]
    return condition(HEALTHY, "False", reason, _with_worst(message, works_not))


def _with_worst(message: str, samples: Iterable[ExceptionSample]) -> str:
    """What is counted, and the worst of what is behind it."""
    return ": ".join([message, *map(error_text, _worst_first(samples)[:1])])


def _nobody(summary: Summary) -> tuple[str, str]:
    """Why nothing can be everywhere: nobody is meant, or nobody who is has ever joined."""
    absent = summary.never_joined
    if not absent:
        return "NoDestinations", "no destination is selected"
    return "NeverJoined", f"{_destinations(absent, _HAVE)} never joined, and no other is selected"


def _absent(summary: Summary) -> str:
    absent = [(summary.never_joined, NEVER_JOINED), (summary.maintained, IN_MAINTENANCE)]
    said = ", ".join(f"{count} {words}" for count, words in absent if count)
    return f" ({said})" if said else ""


def _if_silent(summary: Summary, word: str) -> str:
    """`Unreachable` where nothing is missing but from those that cannot be reached."""
    silent = summary.states.get("unreachable", 0)
    missing = summary.awaited - summary.states.get("synced", 0)
    working = summary.health.get("progressing", 0)
    return "Unreachable" if silent and silent == missing and not working else word


_LACKING: State = "failing"
_NOT_WELL: Health = "unknown"


def undelivered(count: Count) -> Count:
    """The count of a placement whose newest content is at nobody's, as part of it is not sent."""
    states, health = dict(count.summary.states), dict(count.summary.health)
    _move(states, "synced", _LACKING)
    _move(health, "healthy", _NOT_WELL)
    summary = replace(count.summary, states=states, health=health)
    return Count(summary, count.exact, count.waiting_for, count.generation, count.unsaid)


def _move(counts: dict[str, int], before: str, after: str) -> None:
    if moved := counts.pop(before, 0):
        counts[after] = min(counts.get(after, 0) + moved, COUNT_MAX)
