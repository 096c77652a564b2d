"""What `leafcast doctor` thinks of placements and of the centre's ledger, each with its remedy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from leafcast.doctor.findings import (
    Check,
    CheckState,
    DoctorFacts,
    LedgerFacts,
    PlacementFinding,
    SpaceFact,
)
from leafcast.show.faults import FaultGroup, FaultSample, faults
from leafcast.show.holds import hold_text
from leafcast.show.secrets_read import NOT_SEALED, SEAL_CAUSE, SEAL_REMEDY, SEALED
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    INVALID,
    KIND_UNREADABLE,
    MAINTENANCE,
    NOT_AWAITED,
    OBJECTS_REFUSED,
    OVERRIDDEN,
)
from schemas.records.placements import short_title, title
from schemas.reports.states import NOT_WORKING
from schemas.values.wire import astuple
from schemas.values.wording import many, some_of

GROUP = "Objects"
_warning = partial(Check, GROUP, "warning")
_failure = partial(Check, GROUP, "failure")
FROZEN = "Frozen"
"""How an edge says that it could not customize an object."""
NAMED_MAX = 4
_CAUSE = "destinations keep what they have; so Synced is False"
Form = Mapping[str, Any]


def placement_checks(facts: DoctorFacts) -> Iterator[Check]:
    """What is stuck, placement by placement, and how many are well."""
    fine = 0
    for item in facts.placements:
        found = [*_placement(item)]
        held = [hold for hold in item.held if hold["reason"] not in NOT_AWAITED]
        fine += not (found or item.stuck or held)
        yield from found
    yield from hold_checks(facts.placements)
    yield from map(_fault, faults(_samples(facts.placements)))
    if fine or not facts.placements:
        yield Check(GROUP, "ok", f"{many(fine, 'placement')} without anything stuck")
    if facts.sealed:
        yield Check(GROUP, "ok", SEALED)
    else:
        yield _warning(NOT_SEALED, SEAL_CAUSE, SEAL_REMEDY)


def ledger_checks(ledger: LedgerFacts) -> Iterator[Check]:
    """What waits for a person's word."""
    if ledger.lost:
        yield _warning(
            ledger.lost,
            "its stream lost records; what nodes hold of them stays in force",
            "apply them again, or let them go: leafcast accept --ledger",
        )
    for space, what in ledger.lost_spaces.items():
        yield _warning(
            f"of a space that is lost: {what}",
            "the centre's objects were lost or restored; what they said stays in force",
            f"apply them again, then let the former go: leafcast accept --space {space}",
        )
    for resource, why in ledger.held.items():
        cause = "a large removal that nobody said is held until a person says so"
        remedy = "apply them again, or let them go: leafcast accept --inventory"
        yield _warning(f"{resource}: {why}", cause, remedy, resource)
    for name, why in ledger.unplaced.items():
        cause = "it is no destination: no placement counts it, and nothing is sent there"
        said, _, remedy = why.rpartition("; ")
        yield _warning(said, cause, remedy, f"synctarget/{name}")
    for about, why in ledger.wrong.items():
        cause = "it is not used as it is; what it said before stays in force"
        yield _failure(f"{about}: {why}", cause, "correct it and apply it", about)


def _placement(item: PlacementFinding) -> Iterator[Check]:
    see, about = f"leafcast status {item.name} --destinations", title(item.name)
    if item.problem:
        cause = "it cannot go out as it is; what went out before stays"
        said = f"{item.name}: {item.problem}"
        yield _failure(said, cause, f"correct it and apply it; {see}", about)
    if item.lack:
        cause = "so it does not do what it was meant to"
        remedy = f"apply what is missing, or correct it; leafcast describe {short_title(item.name)}"
        yield _warning(f"{item.name}: {item.lack}", cause, remedy, about)
    if item.nowhere:
        cause = f"{item.nowhere}: it goes nowhere"
        remedy = f"correct it, or the labels of places: leafcast describe {short_title(item.name)}"
        yield _warning(f"{item.name} selects no destination", cause, remedy, about)
    if item.undenatured:
        said, _, remedy = item.undenatured.partition("; ")
        cause = "an API server obeys such an object wherever it lies"
        yield _warning(f"{item.name}: {said}", cause, remedy, about)
    for unreturned in item.unreturned:
        said, _, remedy = unreturned.partition("; ")
        cause = "at the hub these objects show no status, or a former one"
        yield _warning(f"{item.name}: {said}", cause, remedy, about)
    if not item.complete and item.blocking:
        yield _warning(
            f"{item.name}: no answer yet from {', '.join(item.blocking)}",
            "a change is on its way, or the node is cut off",
            "look again in a moment; after 90s of silence it counts as unreachable",
            about,
        )


def _samples(placements: Iterable[PlacementFinding]) -> Iterator[FaultSample]:
    for item in placements:
        for stuck in item.stuck:
            yield FaultSample(item.name, *astuple(stuck))


def _fault(fault: FaultGroup) -> Check:
    """One block for one cause, whatever it befalls."""
    names = fault.placements
    what = ": ".join(filter(None, (fault.objects, fault.reason)))
    said = f"{', '.join(names)}: {what} (at {fault.count}, e.g. {fault.first.path})"
    remedy = fault.remedy(f"leafcast status {names[0]} --destinations")
    state: CheckState = "warning" if fault.severity >= NOT_WORKING else "failure"
    return Check(
        GROUP, state, said, fault.kind.cause, remedy, title(names[0]) if names[1:] == [] else ""
    )


def space_checks(spaces: Iterable[SpaceFact]) -> Iterator[Check]:
    """What is thought of the centre's spaces on API servers."""
    for fact in spaces:
        if fact.trouble:
            said = f"{fact.title}: {fact.trouble}"
            yield Check("Spaces", "failure", said, fact.cause, fact.remedy)
        else:
            yield Check(
                "Spaces",
                "ok",
                f"{fact.title}: its API server answers, and serves all kinds that Leafcast has",
            )
        if fact.unread:
            said = f"{fact.title}: what became of its objects is not looked at here"
            cause = "the commands speak with the first space of each sort"
            yield Check("Spaces", "warning", said, cause, "ask there: kubectl get epl,locations")


def hold_checks(placements: Sequence[PlacementFinding]) -> Iterator[Check]:
    """What keeps newest content from destinations; what several have in common is told once."""
    by_cause: dict[tuple[str, str], list[tuple[str, Form]]] = defaultdict(list)
    for item in placements:
        told = frozenset(_told(item))
        for hold in item.held:
            if hold["reason"] not in told:
                by_cause[hold["reason"], hold.get("message", "")].append((item.name, hold))
    for found in by_cause.values():
        names = [short_title(name) for name, _ in found]
        who = names[0] if len(found) == 1 else f"{many(len(found), 'placement')} ({_some(names)})"
        first, hold = found[0]
        said = f"{who} held: {hold_text(hold if len(found) == 1 else _uncounted(hold))}"
        about = title(first) if len(found) == 1 else ""
        yield _warning(said, _CAUSE, hold.get("remedy", ""), about)


def _told(item: PlacementFinding) -> Iterator[str]:
    """The reasons of which another finding tells, at more length."""
    if item.problem:
        yield from (INVALID, OBJECTS_REFUSED)
    if item.lack:
        yield from (KIND_UNREADABLE, CUSTOMIZATION_FROZEN)
    # Each place is told of by itself.
    yield MAINTENANCE
    reasons = {stuck.reason.partition(":")[0] for stuck in item.stuck}
    if FROZEN in reasons:
        yield CUSTOMIZATION_FROZEN
    if OVERRIDDEN in reasons:
        yield OVERRIDDEN


def _some(names: Sequence[str]) -> str:
    return some_of(sorted(names), NAMED_MAX)


def _uncounted(hold: Form) -> Form:
    """Without how many destinations of one placement it is."""
    return {name: said for name, said in hold.items() if name != "destinations"}
