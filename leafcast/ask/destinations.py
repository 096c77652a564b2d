"""What became of a placement below nodes that run elsewhere: relay by relay, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any

from leafcast.ask.failures import BadAnswer
from leafcast.ask.pages import (
    AGAIN_SECONDS,
    ATTEMPTS,
    LISTED_MAX,
    WRONG_QUESTION,
    asked_page,
    may_answer_soon,
)
from leafcast.ask.session import CallFailed, Session
from relay.core.asks.answers import destination_row
from relay.core.link.session import ChildStatus
from schemas.records.answer_bounds import MOMENT_MAX_MS
from schemas.records.asks import STATUS
from schemas.reports.states import NEVER_JOINED
from schemas.values.identity import NodePath
from schemas.values.wire import INT_MAX

ASKED_MAX = 2_000
RELAYS_MAX = 100_000
LISTED_SECONDS = 60.0
"""How long it may take to tell of each node."""
_WORDS = ("object", "reason", "path")

Form = dict[str, Any]


async def destinations_below(
    session: Session, key: str, paths: Iterable[str]
) -> tuple[list[Form], list[str]]:
    """A form for each destination below these relays, and the relays that did not answer.

    `key` is the placement's mail key. After LISTED_MAX destinations, or ASKED_MAX questions, the
    relays that are left count as not asked: who answers may be anyone.
    """
    found, silent = await nodes_below(session, key, paths)
    return [_destination(node) for node in found if node["role"] == "edge"], silent


async def nodes_below(
    session: Session, key: str, paths: Iterable[str]
) -> tuple[list[Form], list[str]]:
    """A form for each node below these relays, in the words of `tree_facts`; else as above.

    Who is busy is asked again once all others were.
    """
    found: list[Form] = []
    silent: list[str] = []
    waiting = deque((NodePath.parse(path), "", 0) for path in paths)
    asked = waits = 0
    while waiting and len(found) < LISTED_MAX and asked < ASKED_MAX:
        path, after, refusals = waiting.popleft()
        if refusals > waits:
            await session.clock.sleep(AGAIN_SECONDS * 2**waits)
            waits += 1
        asked += 1
        question: dict[str, Any] = {"placement": key, "after": after}
        try:
            answer = await session.call("ask", path=str(path), verb=STATUS, **question)
            nodes, following = page_of(path, answer)
        except CallFailed as failed:
            if may_answer_soon(failed) and refusals + 1 < ATTEMPTS:
                waiting.append((path, after, refusals + 1))
            else:
                silent.append(str(path))
            continue
        except BadAnswer:
            silent.append(str(path))
            continue
        found += nodes
        relays = (NodePath.parse(node["path"]) for node in nodes if node["role"] == "relay")
        waiting.extend((relay, "", 0) for relay in relays)
        if following > after:
            waiting.appendleft((path, following, 0))
    return found[:LISTED_MAX], [*silent, *dict.fromkeys(str(path) for path, _, _ in waiting)]


async def status_by_node(session: Session, placement: str) -> tuple[Form, list[str]]:
    """The answer of `status` with the nodes of a placement, or of all (""); who did not answer.

    Of one placement its form also has the nodes that run elsewhere. Raises CallFailed.
    """
    status = await session.call("status", placement=placement, by_node=True, seconds=LISTED_SECONDS)
    silent = list[str]()
    for form in status["placements"] if placement else ():
        if form.get("elsewhere"):
            below, unasked = await nodes_below(session, form["key"], form["elsewhere"])
            form["nodes"] = form["nodes"] + below
            silent += unasked
    return status, silent


async def destinations_of_tree(
    session: Session, key: str, missing: dict[NodePath, str], where: str = ""
) -> AsyncGenerator[Form]:
    """A form for each destination of a placement as it is heard of; never more than a page is held.

    `where` is CEL over what a form has, and runs at the destinations' parents. Relays that did not
    answer are put into `missing`, with the reason. Raises CallFailed of a question that nobody can
    answer.
    """
    waiting = [NodePath()]
    while waiting:
        path, after = waiting.pop(), ""
        relays = list[NodePath]()
        while True:
            try:
                question: dict[str, Any] = {"placement": key, "after": after, "filter": where}
                read = partial(page_of, path)
                nodes, following = await asked_page(session, path, STATUS, read, **question)
            except CallFailed as failed:
                if failed.code == WRONG_QUESTION:
                    raise
                missing[path] = str(failed)
                break
            for node in nodes:
                if node["role"] == "edge":
                    yield _destination(node)
                else:
                    relays.append(NodePath.parse(node["path"]))
            if len(waiting) + len(relays) > RELAYS_MAX:
                missing[path] = f"more than {RELAYS_MAX} relays are named"
                return
            if following <= after:
                break
            after = following
        waiting += reversed(relays)


async def destinations_where(
    session: Session, key: str, where: str, limit: int
) -> tuple[list[Form], list[str], bool]:
    """The first destinations of which an expression is true; who did not answer; if more follow."""
    missing: dict[NodePath, str] = {}
    found: list[Form] = []
    async with aclosing(destinations_of_tree(session, key, missing, where)) as forms:
        async for form in forms:
            if len(found) == limit:
                return found, list(map(str, missing)), True
            found.append(form)
    return found, list(map(str, missing)), False


def page_of(path: NodePath, answer: Any) -> tuple[list[Form], str]:
    """The children that a page names, and where the next one begins; raises BadAnswer."""
    try:
        nodes = [_node(path.child(child["name"]), child) for child in answer["children"]]
        return nodes, str(answer["next"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise BadAnswer("it is no page of its children") from error


def tier_of(answer: Any) -> Form:
    """`{known, complete}`: whether who answers holds the placement, and counts exactly."""
    if not isinstance(answer, dict) or not isinstance(answer.get("known"), bool):
        raise BadAnswer("it is no page of its children")
    return {"known": answer["known"], "complete": answer.get("exact") is True}


def _node(path: NodePath, child: Form) -> Form:
    since = child["silentSinceMs"]
    states, health = _counts(child["states"]), _counts(child["health"])
    is_moment = type(since) is int and 0 <= since <= MOMENT_MAX_MS
    silent_ms, left = since if is_moment else None, child.get("left") is True
    joined = child.get("joined") is not False
    standing = ChildStatus(silent_ms, left, in_session=True, joined=joined)
    return {
        "path": str(path),
        "role": "edge" if child["destination"] else "relay",
        "state": standing.word,
        "silent_since_ms": silent_ms,
        "destinations": sum(states.values()) - states.get(NEVER_JOINED, 0),
        "never_joined": states.get(NEVER_JOINED, 0),
        "states": states,
        "health": health,
        "wave": str(child.get("wave", "")) if child["destination"] else "",
        "complete": child["exact"] is True,
        "exceptions": [
            {**_counts({"count": item["count"]}), **{name: str(item[name]) for name in _WORDS}}
            for item in child["exceptions"]
        ],
    }


def _counts(said: Any) -> dict[str, int]:
    """Counts by a word each; raises ValueError for what is no count."""
    if any(type(count) is not int or not 0 <= count <= INT_MAX for count in said.values()):
        raise ValueError(said)
    return {str(word): count for word, count in said.items()}


def _destination(node: Form) -> Form:
    return {
        **destination_row(node["path"], node),
        "silent_since_ms": node["silent_since_ms"],
        "left": node["state"] == "stopped",
    }
