"""What `leafcast doctor` thinks of a tree: facts in, checks out, each failure with its remedy.

Pure: the facts are gathered elsewhere (leafcast.diagnosing), times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from leafcast.durations import span_text

State = Literal["ok", "warning", "failure"]

FREE_BYTES_MIN, FREE_BYTES_FEW = 200_000_000, 2_000_000_000
LAG_MESSAGES_MAX = 100
CLOCK_MS_MAX = 5_000
CLOCK_MS_REFUSED = 60_000
"""From here on a node refuses questions, and its view of the index cannot be judged."""
INDEX_MS_MAX = 20 * 60_000
OLD_VIEWS = ("StaleView", "Withheld")
"""How the reasons begin that say something of those above an edge, and nothing of an object."""
NAMED_MAX = 8


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `cause` and `remedy` are there unless it is ok."""

    group: str
    state: State
    said: str
    cause: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node: what its parent says of it, and what it says itself, if it `answers`.

    `refusal` is why it does not answer, if it should. `starts` is how often its server was started
    in this run of ours, None where someone else runs it. `clock_ms` is how much its clock is ahead
    of ours. `index_age_ms` is None where there is no index yet.
    """

    path: str
    role: str
    state: str
    since_ms: int | None = None
    destinations: int = 0
    lag: int = 0
    answers: bool = False
    refusal: str = ""
    starts: int | None = None
    free_bytes: int | None = None
    store_bytes: int | None = None
    clock_ms: int = 0
    index_age_ms: int | None = None
    withheld: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class StuckFacts:
    """Something wrong with an object: why, at how many destinations, and one of them."""

    severity: int
    object: str
    reason: str
    count: int
    path: str


@dataclass(frozen=True, slots=True)
class PlacementFacts:
    """One placement as the centre counts it; `problem` is why it cannot be issued as it is."""

    name: str
    destinations: int
    unreachable: int
    complete: bool
    problem: str = ""
    held: str = ""
    blocking: Sequence[str] = ()
    stuck: Sequence[StuckFacts] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was gathered at `now_ms`; `not_running` says why no tree answers, "" if one does.

    `ahead_ms` is how far the newest generation is ahead of the centre's clock.
    """

    now_ms: int
    folder: str
    free_bytes: int
    not_running: str = ""
    up_ms: int = 0
    ahead_ms: int = 0
    nodes: Sequence[NodeFacts] = ()
    placements: Sequence[PlacementFacts] = field(default=())


def checks(facts: Facts) -> list[Check]:
    """All checks, group by group; those of a tree only if one answers."""
    found = [*_machine(facts)]
    if not facts.not_running:
        for group in (_servers, _links, _lag, _clock, _disk, _staleness, _placements):
            found += group(facts)
    return found


def exit_code(found: Iterable[Check]) -> int:
    """1 if something failed; warnings do not count."""
    return int(any(check.state == "failure" for check in found))


def _machine(facts: Facts) -> Iterator[Check]:
    group = "Here"
    if facts.not_running:
        yield Check(
            group,
            "failure",
            facts.not_running,
            "it was not started, it was stopped, or it ended: then its log says why",
            f"leafcast up; if it does not start: {facts.folder}/daemon.log",
        )
    else:
        yield Check(group, "ok", f"a tree runs on {facts.folder}")
    yield _room(group, "the data directory's disk", facts.free_bytes)


def _servers(facts: Facts) -> Iterator[Check]:
    mute = {node.path for node in facts.nodes if not node.answers}

    def judge(node: NodeFacts) -> Check | None:
        if not node.answers and node.state == "up" and not _behind(node.path, mute):
            return Check(
                "Servers",
                "failure",
                f"{node.path} does not answer: {node.refusal or 'no answer in time'}",
                "its program hangs or is overloaded, or its clock is more than a minute off",
                "look at the program and its log where the node runs; start it again",
            )
        if node.starts is not None and node.starts > 1:
            return Check(
                "Servers",
                "warning",
                f"the nats-server of {node.path} was started {node.starts} times",
                "it ended by itself or was killed; it was brought back each time",
                f"{facts.folder}/daemon.log says when; look for the machine's out-of-memory log",
            )
        return None

    answering = sum(1 for node in facts.nodes if node.answers)
    yield from _each("Servers", facts.nodes, judge, f"{_many(answering, 'node')} answer")


def _links(facts: Facts) -> Iterator[Check]:
    silent = {node.path for node in facts.nodes if node.since_ms is not None}

    def judge(node: NodeFacts) -> Check | None:
        if _behind(node.path, silent) or node.state == "up":
            return None
        since = "" if node.since_ms is None else f" for {span_text(_seconds(facts, node.since_ms))}"
        count = node.destinations
        behind = f"; {count} destinations are behind it" if count > 1 else ""
        if node.state == "stopped":
            return Check(
                "Links",
                "warning",
                f"{node.path} is stopped{since}{behind}",
                "it ended in good order; what it holds stays as it is until it is back",
                "start it again, or `leafcast node remove` it",
            )
        if node.state == "unreachable":
            return Check(
                "Links",
                "failure",
                f"{node.path} is unreachable{since}{behind}",
                "its program or its server is down or frozen, or the network between is cut",
                f"where {node.path} runs: see that it runs, and reaches its parent's leaf port",
            )
        return Check(
            "Links",
            "warning",
            f"{node.path} is not in session yet ({node.state})",
            "it never ran, or starts just now, or its parent is not reached",
            "start it (`leafcast join BUNDLE`), or `leafcast node remove` it",
        )

    reached = sum(1 for node in facts.nodes if node.state == "up")
    yield from _each("Links", facts.nodes, judge, f"{reached} of {len(facts.nodes)} nodes are up")


def _lag(facts: Facts) -> Iterator[Check]:
    def judge(node: NodeFacts) -> Check | None:
        if node.state != "up" or node.lag <= LAG_MESSAGES_MAX:
            return None
        return Check(
            "Lag",
            "warning",
            f"{node.path} has {node.lag} messages to read",
            "its link is slow, it just came back, or it cannot write to its own store",
            "look again in a minute; if the number does not fall: its log, and its disk",
        )

    most = max((node.lag for node in facts.nodes if node.state == "up"), default=0)
    fine = f"at most {_many(most, 'message')} unread" if most else "all mail is read"
    yield from _each("Lag", facts.nodes, judge, fine)


def _clock(facts: Facts) -> Iterator[Check]:
    if facts.ahead_ms > CLOCK_MS_MAX:
        yield Check(
            "Clock",
            "failure",
            f"the centre's clock is {span_text(facts.ahead_ms / 1000)} behind what it signed last",
            "the clock was set back, or it was ahead when records were signed",
            "correct it (NTP); until then changes are in order, but times and ages are wrong",
        )

    def judge(node: NodeFacts) -> Check | None:
        off = abs(node.clock_ms)
        if not node.answers or off <= CLOCK_MS_MAX:
            return None
        word = "ahead of" if node.clock_ms > 0 else "behind"
        return Check(
            "Clock",
            "failure" if off > CLOCK_MS_REFUSED else "warning",
            f"the clock of {node.path} is {span_text(off / 1000)} {word} the centre's",
            "the machine's clock is not kept (no NTP), or was set by hand",
            "correct it there; more than a minute off, a node refuses questions",
        )

    asked = [node for node in facts.nodes if node.answers]
    most = max((abs(node.clock_ms) for node in asked), default=0)
    yield from _each("Clock", asked, judge, f"the nodes that answer differ by {most} ms at most")


def _disk(facts: Facts) -> Iterator[Check]:
    known = [node for node in facts.nodes if node.free_bytes is not None]

    def judge(node: NodeFacts) -> Check | None:
        room = _room("Disk", f"the disk of {node.path}", node.free_bytes or 0)
        return None if room.state == "ok" else room

    stored = sum(node.store_bytes or 0 for node in known)
    said = f"room at {_many(len(known), 'node')}"
    said += f", which store {_bytes(stored)}" if stored else ""
    yield from _each("Disk", known, judge, said)


def _staleness(facts: Facts) -> Iterator[Check]:
    def judge(node: NodeFacts) -> Check | None:
        age = node.index_age_ms
        if node.withheld:
            return Check(
                "Staleness",
                "warning",
                f"{node.path} holds {node.withheld} placements that its mailbox lacks",
                "its parent lost its memory, or withholds them; they are kept and enforced",
                "look again in two minutes; if it stays: is its parent what you think it is?",
            )
        if node.answers and age is not None and age > INDEX_MS_MAX:
            return Check(
                "Staleness",
                "failure",
                f"{node.path} was shown no index for {span_text(age / 1000)}",
                "a node above it does not pass on what is new, or shows it an old view",
                f"start the relays above {node.path} again; if it stays, do not trust them",
            )
        return None

    ages = [node.index_age_ms for node in facts.nodes if node.answers and node.index_age_ms]
    said = f"no index is older than {span_text(max(ages, default=0) / 1000)}"
    yield from _each("Staleness", facts.nodes, judge, said)


def _placements(facts: Facts) -> Iterator[Check]:
    wrong = [check for item in facts.placements for check in _placement(item)]
    yield from wrong[:NAMED_MAX]
    if len(wrong) > NAMED_MAX:
        more = f"and {len(wrong) - NAMED_MAX} more"
        yield Check("Objects", "failure", more, "", "leafcast status")
    fine = len(facts.placements) - len(
        {id(item) for item in facts.placements if [*_placement(item)]}
    )
    if fine or not facts.placements:
        yield Check("Objects", "ok", f"{_many(fine, 'placement')} without anything stuck")


def _placement(item: PlacementFacts) -> Iterator[Check]:
    see = f"leafcast status {item.name} --destinations"
    if item.problem:
        yield Check(
            "Objects",
            "failure",
            f"{item.name}: {item.problem}",
            "it cannot go out as it is; what went out before stays",
            f"correct it and apply it; {see}",
        )
    if item.held:
        yield Check(
            "Objects",
            "warning",
            f"{item.name}: {item.held}",
            "a large removal that nobody said is held until a person says so",
            f"leafcast accept {item.name}",
        )
    for stuck in item.stuck:
        what = ": ".join(filter(None, (stuck.object, stuck.reason)))
        said = f"{item.name}: {what} (at {stuck.count}, e.g. {stuck.path})"
        yield Check(
            "Objects", "warning" if stuck.severity >= 2 else "failure", said, *_why(stuck, see)
        )
    if not item.complete and item.blocking:
        yield Check(
            "Objects",
            "warning",
            f"{item.name}: no answer yet from {', '.join(item.blocking)}",
            "a change is on its way, or the node is cut off",
            "look again in a moment; after 90 s of silence it counts as unreachable",
        )


def _why(stuck: StuckFacts, see: str) -> tuple[str, str]:
    """The cause, and the remedy."""
    if stuck.reason.startswith(OLD_VIEWS):
        cause = (
            "a node above withholds what is in force, or shows an old view; it keeps what it has"
        )
        return cause, f"start the relays above {stuck.path} again; if it stays, do not trust them"
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


def _each(
    group: str, nodes: Sequence[NodeFacts], judge: Callable[[NodeFacts], Check | None], fine: str
) -> Iterator[Check]:
    """What is wrong with each node, bounded; or that all is well."""
    wrong = [check for check in map(judge, nodes) if check is not None]
    yield from wrong[:NAMED_MAX]
    if len(wrong) > NAMED_MAX:
        worst: State = "failure" if exit_code(wrong[NAMED_MAX:]) else "warning"
        yield Check(group, worst, f"and {len(wrong) - NAMED_MAX} more", "", "leafcast tree")
    if not wrong or len(wrong) < len(nodes):
        yield Check(group, "ok", fine)


def _room(group: str, what: str, free: int) -> Check:
    said = f"{what} has {_bytes(free)} free"
    if free >= FREE_BYTES_FEW:
        return Check(group, "ok", said)
    return Check(
        group,
        "failure" if free < FREE_BYTES_MIN else "warning",
        said,
        "a server that cannot write refuses changes, and its node begins its run again and again",
        "make room; nothing that was accepted is lost",
    )


def _behind(path: str, silent: set[str]) -> bool:
    above = path.rpartition("/")[0]
    return bool(above) and (above in silent or _behind(above, silent))


def _seconds(facts: Facts, since_ms: int) -> float:
    return (facts.now_ms - since_ms) / 1000


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
