"""What `leafcast doctor` thinks of placements and of the centre's ledger, each with its remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from leafcast.doctor.findings import (
    Check,
    Facts,
    LedgerFacts,
    PlacementFacts,
    SpaceFact,
    StuckFacts,
)
from leafcast.show.secrets_read import NOT_SEALED, SEAL_CAUSE, SEAL_REMEDY, SEALED
from schemas.placements import short_title, title
from schemas.wording import many, namespace_first

GROUP = "Objects"
OLD_VIEWS = ("StaleView", "Withheld")
"""How the reasons begin that say something of those above an edge, and nothing of an object."""
CONTENT, OVERRIDDEN = "ContentRefused", "Overridden"
FROZEN, CLASH = "Frozen", "Clash"


def placement_checks(facts: Facts) -> Iterator[Check]:
    """What is stuck, placement by placement, and how many are well."""
    judged = [[*_placement(item)] for item in facts.placements]
    for found in judged:
        yield from found
    fine = sum(1 for found in judged if not found)
    if fine or not judged:
        yield Check(GROUP, "ok", f"{many(fine, 'placement')} without anything stuck")
    if facts.sealed:
        yield Check(GROUP, "ok", SEALED)
    else:
        yield Check(GROUP, "warning", NOT_SEALED, SEAL_CAUSE, SEAL_REMEDY)


def ledger_checks(ledger: LedgerFacts) -> Iterator[Check]:
    """What waits for a person's word."""
    if ledger.lost:
        yield Check(
            GROUP,
            "warning",
            ledger.lost,
            "its stream lost records; what nodes hold of them stays in force",
            "apply them again, or let them go: leafcast accept --ledger",
        )
    for space, what in ledger.lost_spaces.items():
        yield Check(
            GROUP,
            "warning",
            f"of a space that is lost: {what}",
            "the centre's objects were lost or restored; what they said stays in force",
            f"apply them again, then let the former go: leafcast accept --space {space}",
        )
    for resource, why in ledger.held.items():
        cause = "a large removal that nobody said is held until a person says so"
        remedy = "apply them again, or let them go: leafcast accept --inventory"
        yield Check(GROUP, "warning", f"{resource}: {why}", cause, remedy, resource)
    for name, why in ledger.unplaced.items():
        cause = "it is no destination: no placement counts it, and nothing is sent there"
        said, _, remedy = why.rpartition("; ")
        yield Check(GROUP, "warning", said, cause, remedy, f"synctarget/{name}")
    for about, why in ledger.wrong.items():
        cause = "it is not used as it is; what it said before stays in force"
        yield Check(GROUP, "failure", f"{about}: {why}", cause, "correct it and apply it", about)


def _placement(item: PlacementFacts) -> Iterator[Check]:
    see, about = f"leafcast status {item.name} --destinations", title(item.name)
    if item.problem:
        cause = "it cannot go out as it is; what went out before stays"
        said = f"{item.name}: {item.problem}"
        yield Check(GROUP, "failure", said, cause, f"correct it and apply it; {see}", about)
    if item.held:
        cause = "a large removal that nobody said is held until a person says so"
        remedy = f"apply the objects again, or let them go: leafcast accept {item.name}"
        yield Check(GROUP, "warning", f"{item.name}: {item.held}", cause, remedy, about)
    if item.lack:
        cause = "so it does not do what it was meant to"
        remedy = f"apply what is missing, or correct it; leafcast describe {short_title(item.name)}"
        yield Check(GROUP, "warning", f"{item.name}: {item.lack}", cause, remedy, about)
    if item.undenatured:
        said, _, remedy = item.undenatured.partition("; ")
        cause = "an API server obeys such an object wherever it lies"
        yield Check(GROUP, "warning", f"{item.name}: {said}", cause, remedy, about)
    for stuck in item.stuck:
        what = ": ".join(filter(None, (namespace_first(stuck.object), stuck.reason)))
        said = f"{item.name}: {what} (at {stuck.count}, e.g. {stuck.path})"
        cause, remedy = _why(stuck, see)
        works_not = stuck.severity >= 2
        yield Check(GROUP, "warning" if works_not else "failure", said, cause, remedy, about)
    if not item.complete and item.blocking:
        yield Check(
            GROUP,
            "warning",
            f"{item.name}: no answer yet from {', '.join(item.blocking)}",
            "a change is on its way, or the node is cut off",
            "look again in a moment; after 90s of silence it counts as unreachable",
            about,
        )


def _why(stuck: StuckFacts, see: str) -> tuple[str, str]:
    """The cause, and the remedy."""
    if stuck.reason.startswith(OLD_VIEWS):
        cause = (
            "a node above withholds what is in force, or shows an old view; it keeps what it has"
        )
        return cause, f"start the relays above {stuck.path} again; if it stays, do not trust them"
    if stuck.reason.startswith(CONTENT):
        cause = "a node above lacks a part of its new content; what was there before stays"
        return cause, "it is asked for again and again; if it stays, apply the placement again"
    if stuck.reason.startswith(OVERRIDDEN):
        cause = "two placements say the same object, from different spaces, and the other counts"
        return cause, f"leafcast accept names spaces that are lost; or rename the object; {see}"
    if stuck.reason.startswith(FROZEN):
        cause = "it cannot be customized there, so all of the placement stays there as it was"
        return cause, f"say what is missing, or mend the object; {see}"
    if stuck.reason.startswith(CLASH):
        cause = "two Locations of one destination disagree on a property that an object uses"
        return cause, "say it in one of them, or as an annotation of the SyncTarget"
    if stuck.severity >= 2 and "/" not in stuck.object:
        cause = "what it asks of the place is not all done there"
        return cause, f"do as it says, if it is not meant so; {see}"
    if stuck.severity >= 2:
        cause = "it was delivered, and does not work there"
        return cause, f"leafcast describe {_described(stuck)} --at {stuck.path}"
    cause = "the cluster refuses it; it is tried again, ever more seldom, and holds up no other"
    return cause, f"mend the object and apply it; {see}"


def _described(stuck: StuckFacts) -> str:
    """`deployments web -n shop` of `deployments.apps/shop/web`."""
    kind, _, name = stuck.object.partition("/")
    namespace, slash, rest = name.partition("/")
    return f"{kind} {rest} -n {namespace}" if slash else f"{kind} {name}"


def space_checks(spaces: Iterable[SpaceFact]) -> Iterator[Check]:
    """What is thought of the centre's spaces on API servers."""
    for fact in spaces:
        if fact.trouble:
            said = f"{fact.title}: {fact.trouble}"
            yield Check("Spaces", "failure", said, fact.cause, fact.remedy)
        else:
            yield Check(
                "Spaces", "ok", f"{fact.title}: its API server answers, and serves all kinds"
            )
        if fact.unread:
            said = f"{fact.title}: what became of its objects is not looked at here"
            cause = "the commands speak with the first space of each sort"
            yield Check("Spaces", "warning", said, cause, "ask there: kubectl get epl,locations")
