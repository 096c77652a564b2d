"""What a node answers when it is asked for the trace of one change: what its ring noted of it."""

from __future__ import annotations

from collections.abc import Mapping

from relay.core.asks.answers import BadAskArguments, Json
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from relay.shell.trace_ring import TraceRing
from schemas.values.identity import check_mail_key
from schemas.values.refusals import BadIdentity

GENERATIONS_MAX = 16
LATE_MAX = 8
_DIGITS_MAX = 19


def trace_answer(
    node: NodeView, traces: TraceRing, arguments: Mapping[str, str], now_ms: int
) -> Json:
    """The moments that this node noted of a change, by its own clock, and who below was slowest.

    Arguments: `placement` (its mail key), `generation` (that in force here, if none is said).
    `held` is the generation in force here, 0 if there is none. `late` are children who lack what
    is in force, those first who can be reached; `lastChild` is whom the node heard last before all
    had it; `children` names one of those that it is meant for. `hops` begin with the moment at
    which it was signed, by the clock of the centre.
    """
    try:
        key = check_mail_key(arguments.get("placement", ""))
    except BadIdentity as error:
        raise BadAskArguments(f"placement: {error}") from error
    record = node.records.get(key)
    held = record.generation if is_delta(record) else 0
    generation = _generation(arguments.get("generation", "")) or held
    is_held = record is not None and generation == held > 0
    counts = node.child_counts(key) if record is not None else {}
    waiting = set(node.count(key).waiting_for) if is_held else set()
    late = [
        (name not in waiting and summary.states.get("unreachable", 0) > 0, name)
        for name, summary in counts.items()
        if name in waiting or summary.states.get("synced", 0) < summary.awaited
    ]
    return {
        "nowMs": now_ms,
        "beganMs": traces.began_ms,
        "forgotten": traces.forgotten,
        "generation": generation,
        "held": held,
        "isEdge": node.is_destination,
        "stages": {stage.value: at for stage, at in traces.of(key, generation).items()},
        "hops": list(record.hops) if record is not None and is_held else [],
        "generations": sorted(traces.generations(key), reverse=True)[:GENERATIONS_MAX],
        "late": [name for _, name in sorted(late)[:LATE_MAX]] if is_held else [],
        "lateCount": len(late) if is_held else 0,
        "lastChild": traces.last_child(key, generation),
        "children": sorted(counts)[:1],
    }


def _generation(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_MAX:
        raise BadAskArguments(f"generation: {text!r} is no number of a generation")
    return int(text)
