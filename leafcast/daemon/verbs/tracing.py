"""The verb `trace`: the way of one change down the tree and back, asked of the nodes on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.ask.api import ApiError, verb
from leafcast.ask.client import CentreAsks, api_error
from leafcast.ask.decode import BadAnswer
from leafcast.centre.centre import Centre, running
from leafcast.daemon.verbs.explaining import named_placement
from leafcast.daemon.verbs.selection import until_seen
from leafcast.explain.waterfall import NodeTrace, next_child, read_trace, waterfall
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from schemas.records.asks import TRACE, AskFault
from schemas.records.placements import title
from schemas.values.identity import MailKey, NodePath
from schemas.values.trace_ids import trace_id

DEPTH_MAX = 32
"""So many nodes are asked on one path: who answers may name children without end."""


@dataclass(frozen=True, slots=True)
class TraceVerbs:
    """Answers where the time of a change went."""

    _centre: Centre
    _asks: CentreAsks
    _clock: Clock

    @verb("trace")
    async def trace(self, placement: str, generation: int = 0, path: str = "") -> dict[str, Any]:
        """The spans of a change on one path: the slowest, unless one is named.

        `{placement, generation, traceId, path, chosen, late, held, generations, nowMs, nodes}`;
        `nodes` are as `waterfall` has them. `chosen` is "named", or why the path's last node was
        the slowest: "late" of one that lacks the change, "last" of the one that was counted last,
        "any" if no node knows. Raises ApiError.
        """
        controllers = running(self._centre.controllers)
        await until_seen(controllers)
        name = named_placement(self._centre, placement)
        key = controllers.translator.source(name).key
        names = NodePath.parse(path).names if path else None
        nodes, chosen = await traced_path(self._asks, self._clock, key, generation, names)
        first = nodes[0].said
        if first is None:
            why = nodes[0].fault.message if nodes[0].fault is not None else "it gave no answer"
            raise ApiError("Unreachable", f"the centre: {why}", "try again in a moment")
        fault = nodes[-1].fault
        if fault is not None and fault.reason == "NoSuchNode":
            raise api_error(fault)
        if not first.generation:
            said = f"{title(name)} was never signed, so there is no trace of it"
            raise ApiError("NotFound", said, f"leafcast status {name} says what it waits for")
        if generation and not any(it.said and it.said.stages for it in nodes):
            raise _no_trace(title(name), generation, first.generations)
        return {
            "placement": title(name),
            "generation": first.generation,
            "traceId": trace_id(key, first.generation).hex(),
            "path": nodes[-1].path,
            "chosen": chosen,
            "late": first.late_count,
            "held": first.held,
            "generations": first.generations,
            "nowMs": self._clock.now().wall_ms,
            "nodes": waterfall(nodes, first.generation),
        }


async def traced_path(
    asks: CentreAsks,
    clock: Clock,
    key: MailKey,
    generation: int = 0,
    names: Sequence[str] | None = None,
) -> tuple[list[NodeTrace], str]:
    """The nodes on a path, the centre first, down to the first that gives no answer, and why those.

    That is the slowest path, unless the `names` of one are said.
    """
    path, nodes, chosen = NodePath(), list[NodeTrace](), "any" if names is None else "named"
    while len(nodes) < DEPTH_MAX:
        node = await _asked(asks, clock, path, key, generation)
        nodes.append(node)
        if node.said is None:
            break
        # The others are asked for what is in force at the centre, whatever they hold.
        generation = generation or node.said.generation
        if names is None:
            child, why = next_child(node.said)
            chosen = why or chosen
        else:
            child = names[len(path.names)] if len(path.names) < len(names) else ""
        if not child:
            break
        path = path.child(child)
    return nodes, chosen


async def _asked(
    asks: CentreAsks, clock: Clock, path: NodePath, key: MailKey, generation: int
) -> NodeTrace:
    said = {"placement": str(key)} | ({"generation": str(generation)} if generation else {})
    before = clock.now().wall_ms
    try:
        answer = read_trace(await asks.ask(path, TRACE, said))
    except AskFailed as failed:
        return NodeTrace(str(path), fault=failed.fault)
    except (BusBroken, BadAnswer) as error:
        return NodeTrace(str(path), fault=AskFault("NoAnswer", str(error), str(path)))
    after = clock.now().wall_ms
    unsure = (after - before + 1) // 2
    return NodeTrace(str(path), answer, answer.now_ms - (before + after) // 2, unsure)


def _no_trace(placement: str, generation: int, noted: list[int]) -> ApiError:
    said = f"no node on the way noted anything of generation {generation} of {placement}"
    listed = ", ".join(map(str, noted))
    remedy = f"the centre noted {listed}" if noted else "the centre noted none since it began"
    return ApiError("NotFound", said, f"{remedy}; without --generation the newest is told")
