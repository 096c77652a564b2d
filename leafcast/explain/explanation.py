"""Facts in, one explanation out: the first stage at which a copy stops.

What the centre decides comes first, then each node on the way from above, then the destination.
"""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.doctor.checks import CLOCK_MS_MAX
from leafcast.explain.facts import CopyFacts, CopySaid, Explanation, NodeOnTheWay
from leafcast.explain.leaving import why_there
from leafcast.show.durations import span_text
from leafcast.show.faults import FaultSample, described, faults
from leafcast.show.stages import CopyStage, stage_of
from schemas.reports.states import AT_WORK, IN_MAINTENANCE, MAINTAINED, NEVER_JOINED, NOT_WORKING
from schemas.values.wording import many

EXPIRED = "Expired"
ADDRESS_CHARACTERS = 12
_OF_ALL = ("Waiting", "Sealed")
"""How a reason begins that keeps all of a placement as it was, though nothing is wrong yet."""
_UNSAID = {"frozen": CopyStage.FROZEN, "withheld": CopyStage.WITHHELD}
_SAID_BY_STAGE = (CopyStage.FROZEN, CopyStage.OVERRIDDEN, CopyStage.EARLIER)
"""Stages whose lead says what the reason begins with."""


def explained(facts: CopyFacts) -> Explanation:
    """The first stage that blocks; that all is as it is meant if none does."""
    return next(_stops(facts), None) or _as_meant(facts)


def _stops(facts: CopyFacts) -> Iterator[Explanation]:
    if not facts.meant:
        if not facts.object or (facts.copy is not None and facts.copy.wanted):
            yield from (it for it in facts.decided if it.stage is CopyStage.LEAVING)
        yield from why_there(facts)
        yield from facts.decided
        return
    yield from facts.decided
    yield from _on_the_way(facts)
    yield from _at_the_edge(facts)


def _on_the_way(facts: CopyFacts) -> Iterator[Explanation]:
    """What stops above the destination, and at its door."""
    before: NodeOnTheWay | None = None
    for node in facts.nodes:
        yield from _link(node, facts)
        yield from _record(node, before, facts)
        before = node


def _link(node: NodeOnTheWay, facts: CopyFacts) -> Iterator[Explanation]:
    """Whether mail reaches a node."""
    if node.state == NEVER_JOINED:
        yield Explanation(
            CopyStage.MAILBOX,
            f"{node.path} was added and never joined",
            f"where it belongs: leafcast join with its token; leafcast node add {node.path} "
            "--replace makes another",
            at=node.path,
        )
    elif node.since_ms is not None:
        last = f"; what it said last: {_said_last(facts)}" if _said_last(facts) else ""
        yield Explanation(
            CopyStage.MAILBOX,
            f"{node.path} is {node.state}{last}",
            "start it there again, or mend the network between: leafcast doctor",
            node.since_ms,
            node.path,
        )
    elif node.refusal_reason == EXPIRED:
        yield _clock(f"the clock of {node.path} is more than two minutes ahead of ours", node)
    elif node.refusal:
        said = node.refusal
        yield Explanation(
            CopyStage.MAILBOX,
            said if said.startswith(node.path) else f"{node.path} does not answer: {said}",
            "ask again in a moment; then: leafcast doctor",
            at=node.path,
        )


def _record(
    node: NodeOnTheWay, before: NodeOnTheWay | None, facts: CopyFacts
) -> Iterator[Explanation]:
    """Whether the placement's record and its content are at a node."""
    if node.stale:
        yield Explanation(
            CopyStage.STALE,
            f"{node.path} was shown no newer snapshot for 20 minutes",
            f"start the relays above {node.path} again; if it stays, do not trust them",
            at=node.path,
        )
    if node.orphaned:
        yield Explanation(
            CopyStage.HELD,
            f"at {node.path} a newer version is in force than the centre knows",
            f"apply the placement anew, or: leafcast accept {facts.placement}",
            at=node.path,
        )
    if node.outdated:
        # It was shown a snapshot that lists a newer one, and waited for that: it is no lag.
        yield _withheld("a newer version", node)
    newest = before.generation if before is not None else None
    if newest is not None and (node.generation is None or node.generation < newest):
        waiting = f": {many(node.lag, 'message')} not read" if node.lag else ""
        if before is not None and before.missing:
            return
        yield Explanation(
            CopyStage.MAILBOX,
            f"{node.path} has not read the newest version{waiting}",
            "look again in a moment; then: leafcast doctor",
            at=node.path,
        )
    if node.head_only:
        yield _withheld("its content", node)
    if node.missing:
        yield _content(node, facts)


def _withheld(what: str, node: NodeOnTheWay) -> Explanation:
    return Explanation(
        CopyStage.WITHHELD,
        f"{what} is in force, and missing from the mailbox of {node.path} at its parent",
        f"start the relays above {node.path} again; if it stays, do not trust them",
        at=node.path,
    )


def _content(node: NodeOnTheWay, facts: CopyFacts) -> Explanation:
    first = f"blob {node.missing[0][:ADDRESS_CHARACTERS]}..."
    more = node.missing_count - 1
    said = f"{first} and {more} more are not" if more > 0 else f"{first} is not"
    since = facts.now_ms - node.refused_ms if node.refused_ms is not None else None
    return Explanation(
        CopyStage.CONTENT,
        f"{said} at {node.path}",
        "it is asked for again and again; if it stays, apply the placement again"
        if since is not None
        else "it is on its way: look again in a moment",
        since,
        node.path,
    )


def _at_the_edge(facts: CopyFacts) -> Iterator[Explanation]:
    edge = facts.nodes[-1] if facts.nodes else NodeOnTheWay(facts.path)
    if edge.unclaimed:
        yield Explanation(
            CopyStage.SPACE,
            f"{edge.path} may not work on its cluster: {edge.unclaimed}",
            "leafcast doctor says how to hand it over",
            at=edge.path,
        )
    if facts.state == MAINTAINED:
        yield Explanation(
            CopyStage.HELD,
            f"{edge.path} is {IN_MAINTENANCE}: nothing new goes there",
            f"it ends by itself; sooner: leafcast maintenance off {edge.path}",
            at=edge.path,
        )
    yield from _of_placement(facts)
    if facts.state == "waiting":
        yield from _waits(facts, edge)
    if facts.object:
        yield from _of_copy(facts, facts.copy) if facts.copy is not None else _unsaid(facts)
    if facts.state != "synced":
        yield from _not_synced(facts)


def _is_taken(facts: CopyFacts) -> bool:
    """Whether what the edge says of a copy is about the content that it was sent.

    The edge judges a copy by what is in force there. What it has not taken yet has no health; what
    is pending and has some waits for single objects, each of which says so itself.
    """
    if facts.state == "pending":
        return facts.health not in ("unknown", "")
    return facts.state not in ("frozen", "waiting", "withheld", "")


def _of_copy(facts: CopyFacts, copy: CopySaid) -> Iterator[Explanation]:
    """What an edge says of one copy."""
    if copy.claimed and copy.reason:
        severity = 0 if copy.state == "failing" else NOT_WORKING
        said = FaultSample(facts.placement, severity, facts.object, copy.reason, 1, facts.path)
        yield _fault(facts, [said])
    if copy.claimed and copy.state == "pending":
        yield Explanation(
            CopyStage.UNDER_WAY,
            f"{facts.path} is about to apply it",
            "look again in a moment",
            at=facts.path,
        )
    if not _is_taken(facts):
        yield from _not_synced(facts)
    if not copy.claimed:
        yield Explanation(
            CopyStage.UNDER_WAY,
            f"{facts.path} has not taken it up yet",
            "look again in a moment; then: leafcast doctor",
            at=facts.path,
        )
    if copy.state == "synced" and copy.health != "healthy":
        yield Explanation(
            CopyStage.NOT_HEALTHY,
            f"it is {copy.health}",
            f"leafcast describe {described(facts.object)} --at {facts.path}",
            at=facts.path,
        )
    if copy.state == "synced":
        yield _as_meant(facts)
    if not copy.state:
        yield _untold(facts)
    yield Explanation(
        CopyStage.REFUSED if copy.state == "failing" else CopyStage.UNDER_WAY,
        f"{facts.path} says {copy.state}, and not why",
        facts.see,
        at=facts.path,
    )


def _unsaid(facts: CopyFacts) -> Iterator[Explanation]:
    """Of a copy of which the edge says nothing: what it reports of the object."""
    own = [it for it in facts.samples if it.object == facts.object]
    if own:
        yield _fault(facts, own)
    yield _untold(facts)


def _untold(facts: CopyFacts) -> Explanation:
    return Explanation(
        CopyStage.UNKNOWN,
        f"{facts.path} does not say what became of it",
        "look again in a moment; if it stays, its program is of a version before: upgrade it",
        at=facts.path,
    )


def _of_placement(facts: CopyFacts) -> Iterator[Explanation]:
    """What an edge says is wrong with the placement: the cause, before what follows from it."""
    found = list(facts.samples)
    if facts.object:
        # What is about others keeps this one only if all of the placement stays for it.
        found = [it for it in found if _keeps_all(it)]
    if facts.state == "synced" and facts.health == "healthy":
        found = [it for it in found if it.severity < NOT_WORKING]
    if found:
        yield _fault(facts, found)


def _keeps_all(sample: FaultSample) -> bool:
    if sample.object:
        return sample.reason.startswith("Frozen")
    return sample.severity < NOT_WORKING or sample.reason.startswith(_OF_ALL)


def _fault(facts: CopyFacts, samples: list[FaultSample]) -> Explanation:
    first = faults(samples)[0]
    stage = stage_of(first.kind, first.severity)
    # What keeps all of a placement may be about another object than the one that is asked about.
    said = first.reason if first.first.object == facts.object else first.line
    if stage in _SAID_BY_STAGE:
        said = said.replace(f"{first.kind.name}: ", "", 1)
    if first.severity >= AT_WORK and stage is CopyStage.NOT_HEALTHY:
        said = f"{said} (it may be at work still)"
    return Explanation(stage, said, first.remedy(facts.see), at=facts.path)


def _waits(facts: CopyFacts, edge: NodeOnTheWay) -> Iterator[Explanation]:
    """The centre lets it have the content, and it does not take it."""
    if abs(edge.clock_ms) > CLOCK_MS_MAX:
        way = "ahead of" if edge.clock_ms > 0 else "behind"
        off = span_text(abs(edge.clock_ms) / 1000)
        yield _clock(f"the clock of {edge.path} is {off} {way} ours, so a window seems shut", edge)
    yield Explanation(
        CopyStage.WINDOW,
        f"{edge.path} waits for a window, by its own clock",
        f"leafcast status {facts.placement}",
        at=edge.path,
    )


def _clock(said: str, node: NodeOnTheWay) -> Explanation:
    return Explanation(CopyStage.CLOCK, said, "set it right there (NTP)", at=node.path)


def _not_synced(facts: CopyFacts) -> Iterator[Explanation]:
    if not facts.state:
        yield _untold(facts)
    yield Explanation(
        _UNSAID.get(facts.state, CopyStage.UNDER_WAY),
        f"{facts.path} says {facts.state}, and not why",
        "look again in a moment",
        at=facts.path,
    )


def _as_meant(facts: CopyFacts) -> Explanation:
    health = facts.copy.health if facts.copy is not None and facts.object else facts.health
    if not facts.meant:
        return Explanation(CopyStage.AS_MEANT, "it is not meant to be there, and it is not")
    if not facts.object and health not in ("healthy", ""):
        return Explanation(CopyStage.NOT_HEALTHY, f"it is {health}", facts.see, at=facts.path)
    return Explanation(CopyStage.AS_MEANT, f"applied, and {health or 'not judged'}", at=facts.path)


def _said_last(facts: CopyFacts) -> str:
    return ", ".join(filter(None, (facts.state, facts.health)))
