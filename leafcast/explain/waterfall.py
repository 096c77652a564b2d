"""The way of one change down a path of the tree and back, from what the nodes on it noted.

Who gives an answer may be anyone: what is not as it should be raises BadAnswer. Times of each node
are put on the centre's clock, where it can be told how far its own is ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from leafcast.ask.decode import BadAnswer, NodeName
from leafcast.show.durations import span_text
from relay.shell.trace_ring import TRACES_MAX, TraceStage
from schemas.records.answer_bounds import MOMENT_MAX_MS
from schemas.records.asks import AskFault
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Meta, Natural, WireRecord, convert, field, replace
from schemas.values.wording import many

Moment = Annotated[int, Meta(ge=0, le=MOMENT_MAX_MS)]
NameOrNone = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?\Z")]
ChildNames = Annotated[list[NodeName], Meta(max_length=32)]

_DOWN_BELOW = [TraceStage.RECEIVED, TraceStage.COMPLETE]
_PASSED_ON = [TraceStage.FIRST_PASSED_ON, TraceStage.LAST_PASSED_ON]
_TOLD = [TraceStage.TOLD_DELIVERED, TraceStage.TOLD_WORKING]
_EXPECTED: dict[str, list[TraceStage]] = {
    "centre": [
        TraceStage.SIGNED,
        TraceStage.ISSUED,
        *_PASSED_ON,
        TraceStage.DELIVERED,
        TraceStage.WORKING,
    ],
    "relay": [*_DOWN_BELOW, *_PASSED_ON, *_TOLD],
    "edge": [
        *_DOWN_BELOW,
        TraceStage.PLANNED,
        TraceStage.FIRST_APPLIED,
        TraceStage.APPLIED,
        TraceStage.HEALTHY,
        *_TOLD,
    ],
}
_ORDER = {stage.value: number for number, stage in enumerate(TraceStage)}
_FOLLOWS = {
    TraceStage.TOLD_DELIVERED.value: TraceStage.TOLD_DELIVERED.value,
    TraceStage.TOLD_WORKING.value: TraceStage.TOLD_WORKING.value,
    TraceStage.DELIVERED.value: TraceStage.TOLD_DELIVERED.value,
    TraceStage.WORKING.value: TraceStage.TOLD_WORKING.value,
}
"""What is counted follows from what the node below reported."""


class TraceSaid(WireRecord, array_like=False, frozen=True):
    """What a node answers of one change: see leafcast.node.trace_answer."""

    now_ms: Moment = field(name="nowMs")
    began_ms: Moment = field(name="beganMs")
    forgotten: Natural
    generation: Natural
    held: Natural
    is_edge: bool = field(name="isEdge")
    stages: Annotated[dict[str, Moment], Meta(max_length=32)]
    hops: Annotated[list[Moment], Meta(max_length=64)]
    generations: Annotated[list[Natural], Meta(max_length=32)]
    late: ChildNames
    late_count: Natural = field(name="lateCount")
    last_child: NameOrNone = field(name="lastChild")
    children: ChildNames


def read_trace(answer: object) -> TraceSaid:
    """Raises BadAnswer."""
    try:
        said = convert(TraceSaid, answer, "its trace")
    except RecordRefused as error:
        raise BadAnswer(str(error)) from error
    # A newer node may note more than this program knows.
    known = {word: at for word, at in said.stages.items() if word in _ORDER}
    return replace(said, stages=known)


@dataclass(frozen=True, slots=True)
class NodeTrace:
    """A node on the path: what it said, or why it said nothing."""

    path: str
    said: TraceSaid | None = None
    # How far its clock is ahead of the centre's, and how sure that is, in ms.
    clock_ms: int = 0
    unsure_ms: int = 0
    fault: AskFault | None = None

    @property
    def corrected_ms(self) -> int:
        """How far its clock is ahead for certain; 0 if it may well be right."""
        return self.clock_ms if abs(self.clock_ms) > self.unsure_ms else 0


def next_child(said: TraceSaid) -> tuple[str, str]:
    """Where the way of a change was slowest below a node, and why that child; "" at its end."""
    if said.late:
        return said.late[0], "late"
    if said.last_child:
        return said.last_child, "last"
    return (said.children[0], "any") if said.children else ("", "")


def waterfall(nodes: Sequence[NodeTrace], generation: int) -> list[dict[str, Any]]:
    """Of each node, the centre first: its spans on the centre's clock, and what is missing.

    `{path, clockMs, unsureMs, correctedMs, gap, waits, spans: [{stage, startMs, endMs}]}`: `gap`
    says why nothing, or not all, is known of it; `waits` is the stage that has not come yet.
    """
    moments = [_moments(node) for node in nodes]
    _add_signed(nodes, moments)
    began = min((at for each in moments for at in each.values()), default=0)
    forms = []
    for depth, node in enumerate(nodes):
        above = moments[depth - 1] if depth else {}
        below = moments[depth + 1] if depth + 1 < len(moments) else {}
        gap, waits = _lack(node, depth, generation, began)
        forms.append(
            {
                "path": node.path,
                "clockMs": node.clock_ms,
                "unsureMs": node.unsure_ms,
                "correctedMs": node.corrected_ms,
                "gap": gap,
                "waits": waits,
                "spans": list(_spans(moments[depth], above, below)),
            }
        )
    return forms


def _moments(node: NodeTrace) -> dict[str, int]:
    """By stage, on the centre's clock."""
    if node.said is None:
        return {}
    return {word: max(at - node.corrected_ms, 0) for word, at in node.said.stages.items()}


def _add_signed(nodes: Sequence[NodeTrace], moments: Sequence[dict[str, int]]) -> None:
    """Add when the centre signed the record, which says so wherever it is held."""
    hops = next((node.said.hops for node in nodes if node.said and node.said.hops), None)
    if hops:
        moments[0].setdefault(TraceStage.SIGNED.value, hops[0])


def _spans(
    moments: dict[str, int], above: dict[str, int], below: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """Each begins where the one before it ended, here, at the node above or at the one below."""
    written = sorted(above[it.value] for it in _PASSED_ON if it.value in above)
    first = min(moments.values(), default=0)
    # It was written for this child at the earliest for the first one, at the latest for the last.
    last = max((at for at in written if at <= first), default=None)
    for word, end in sorted(moments.items(), key=lambda it: (it[1], _ORDER[it[0]])):
        before = [it for it in (last, below.get(_FOLLOWS.get(word, ""))) if it is not None]
        start = max((it for it in before if it <= end), default=end)
        yield {"stage": word, "startMs": start, "endMs": end}
        last = end


def _lack(node: NodeTrace, depth: int, generation: int, began: int) -> tuple[str, str]:
    """Why not all is known of a node, "" if it is; and the stage that has yet to come there."""
    said = node.said
    if said is None:
        fault = node.fault
        if fault is not None and fault.reason == "UnknownVerb":
            return "no span: its program is older than traces; upgrade it", ""
        why = fault.message if fault is not None and fault.message else "it gave no answer"
        return f"no span: {why}", ""
    if not said.stages and said.held < generation:
        held = f"generation {said.held}" if said.held else "no generation of it"
        return f"no span: it has {held}", TraceStage.RECEIVED.value
    if not said.stages and said.forgotten and said.began_ms < began:
        newer = many(TRACES_MAX, "newer change")
        return f"no span: it keeps {newer}, and this is an older one", ""
    if not said.stages and said.began_ms < began:
        return "no span: it noted nothing of this change", ""
    if not said.stages:
        return f"no span: {_began_anew(said)}", ""
    kind = "centre" if depth == 0 else "edge" if said.is_edge else "relay"
    missing, waits = _not_noted(said.stages, _EXPECTED[kind])
    if waits and said.held > generation:
        return f"generation {said.held} took its place before it was {waits}", ""
    goes_nowhere = depth == 0 and said.held == generation and not said.children
    if goes_nowhere and waits == TraceStage.FIRST_PASSED_ON.value:
        return "it is meant for no destination, so nobody gets it", ""
    if missing and said.began_ms > began:
        return f"no span of {', '.join(missing)}: {_began_anew(said)}", waits
    return "", waits


def _began_anew(said: TraceSaid) -> str:
    """By its own clock."""
    return f"it began anew {span_text(max(said.now_ms - said.began_ms, 0) / 1000)} ago"


def _not_noted(noted: Iterable[str], expected: Sequence[TraceStage]) -> tuple[list[str], str]:
    """What was left out before the last that is noted, and the first that is to come after it."""
    words, there = [stage.value for stage in expected], set(noted)
    last = max((at for at, word in enumerate(words) if word in there), default=-1)
    missing = [word for word in words[:last] if word not in there]
    return missing, words[last + 1] if last + 1 < len(words) else ""
