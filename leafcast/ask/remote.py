"""What nodes say of themselves and of their children when they are asked, tier by tier."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from leafcast.ask.client import CentreAsks
from relay.core.link.session import CATCHING_UP, ChildStatus
from relay.ports import BusBroken, Clock
from relay.shell.asker import AskFailed
from relay.waiting import some_at_once
from schemas.records.answer_bounds import MOMENT_MAX_MS, TEXT_MAX_CHARACTERS
from schemas.records.asks import NODE, AskFault
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wire import INT_MAX

ASKED_MAX = 500
ASKED_AT_ONCE = 32
ASK_SECONDS_MAX = 8.0
_OWN_FIGURES = (
    "snapshotGeneration",
    "snapshotAgeMs",
    "nowMs",
    "diskFree",
    "storeBytes",
    "serverStarts",
    "serverUpMs",
    "withheld",
    "orphaned",
    "disbelieved",
    "storeRemovals",
    "durable",
    "syncSeconds",
    "objectsApplied",
    "objectsKept",
    "certificateSinceMs",
    "certificateUntilMs",
)
TEXTS_MAX = 16
MEMBERS_SHOWN_MAX = 8
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
AUTHORITIES_MAX_CHARACTERS = 32 * 1024
IN_SESSION = ("up", CATCHING_UP, "stale")
"""The states of nodes that are there."""
_COUNTS = ("destinations", "synced", "healthy")
_MORE_COUNTS = ("failing", "degraded", "unreachable")
"""A relay of a version before does not say these."""

Form = Mapping[str, Any]


async def ask_nodes(
    asks: CentreAsks,
    clock: Clock,
    paths: Iterable[NodePath],
    known: Mapping[NodePath, Form],
    arguments: Mapping[str, str] = NOTHING_MORE,
) -> dict[NodePath, Form | AskFault]:
    """The `node` answers of those of `paths` whose parents reach them, or why there is none.

    `known` are answers that one has already. An answer has in `clockMs` how far the node's clock
    is ahead of ours. At most ASKED_MAX are asked, and for ASK_SECONDS_MAX seconds: who is missing
    was not asked, or was too late.
    """
    found: dict[NodePath, Form | AskFault] = {}

    async def ask(path: NodePath) -> None:
        before = clock.now().wall_ms
        try:
            form = checked_answer(path, await asks.ask(path, NODE, arguments))
        except AskFailed as failed:
            found[path] = failed.fault
        except BusBroken as broken:
            found[path] = AskFault("Restarting", str(broken), str(path))
        else:
            middle = (before + clock.now().wall_ms) // 2
            found[path] = {**form, "clockMs": form.get("nowMs", middle) - middle}

    with suppress(TimeoutError):
        async with asyncio.timeout(ASK_SECONDS_MAX):
            for tier in _tiers(sorted(paths)[:ASKED_MAX]):
                told = {**known, **found}
                reached = [p for p in tier if p.is_root or _reached(p, told.get(p.parent))]
                await some_at_once(reached, ask, ASKED_AT_ONCE)
    return found


async def ask_all_signed(
    asks: CentreAsks, paths: Iterable[NodePath], verb: str, arguments: Mapping[str, str]
) -> dict[NodePath, AskFault]:
    """Ask all of them the same; why not, of those that gave no answer of their own.

    Raises BusBroken.
    """
    failed: dict[NodePath, AskFault] = {}

    async def ask(path: NodePath) -> None:
        try:
            await asks.ask_signed(path, verb, arguments)
        except AskFailed as fault:
            failed[path] = fault.fault

    await some_at_once(list(paths), ask, ASKED_AT_ONCE)
    return failed


def checked_answer(path: NodePath, answer: object) -> dict[str, Any]:
    """What of a `node` answer is as it should be: who gives it may be anyone. Raises AskFailed.

    The figures that are known by name, and the children, each with its state and its counts.
    """
    children = answer.get("children") if isinstance(answer, Mapping) else None
    if not isinstance(answer, Mapping) or not isinstance(children, Mapping):
        said = f"what {path} answers is no answer"
        raise AskFailed(AskFault("BadAnswer", said, str(path)))
    found = {name: _checked_child(child) for name, child in children.items() if _is_name(name)}
    return {
        **_figures(answer, _OWN_FIGURES),
        "role": _text(answer, "role"),
        "claim": _text(answer, "claim"),
        "unclaimed": _text(answer, "unclaimed"),
        "serverVersion": _text(answer, "serverVersion"),
        "leafUrls": _texts(answer, "leafUrls"),
        "authorities": _text(answer, "authorities", AUTHORITIES_MAX_CHARACTERS),
        "certificateRequest": _text(answer, "certificateRequest", AUTHORITIES_MAX_CHARACTERS),
        "members": _checked_members(answer.get("members")),
        "children": {name: child for name, child in found.items() if child is not None},
    }


def _checked_members(listed: object) -> list[dict[str, Any]]:
    """How the members of a node stand that has several: see leafcast.node.member_forms."""
    found = listed[:MEMBERS_SHOWN_MAX] if isinstance(listed, list) else []
    texts, figures = ("name", "role", "server", "version", "clock", "change"), ("seconds", "lag")
    return [
        {**{word: _text(it, word) for word in texts}, **dict.fromkeys(figures, 0)}
        | _figures(it, figures)
        | {"sameChildren": it.get("sameChildren") is True, "encrypted": _flag(it, "encrypted")}
        for it in found
        if isinstance(it, Mapping)
    ]


def _checked_child(child: object) -> dict[str, Any] | None:
    if not isinstance(child, Mapping):
        return None
    since, counts = child.get("silentSinceMs"), child.get("counts")
    said: dict[str, Any] = {
        "silentSinceMs": since if _is_moment(since) else None,
        "inSession": child.get("inSession") is True,
        "inStep": child.get("inStep") is True,
        "left": child.get("left") is True,
        "nkey": _text(child, "nkey"),
        **_figures(child, ("lag", "refused", "contested", "unsaid")),
    }
    if "joined" in child:  # A relay of a version before does not say it.
        said["joined"] = child["joined"] is not False
    figures = _figures(counts, _COUNTS) if isinstance(counts, Mapping) else {}
    if isinstance(counts, Mapping) and len(figures) == len(_COUNTS):
        more = _figures(counts, _MORE_COUNTS)
        said["counts"] = {**figures, **more, "complete": counts.get("complete") is True}
    return said


def standing_of(child: Form) -> ChildStatus:
    """How it is with a child, by what `checked_answer` lets through."""
    joined = child.get("joined", True)
    in_step = child.get("inStep", True)
    return ChildStatus(child["silentSinceMs"], child["left"], child["inSession"], joined, in_step)


def _figures(form: Mapping[Any, Any], names: Iterable[str]) -> dict[str, int]:
    return {name: form[name] for name in names if _is_count(form.get(name))}


def _text(form: Mapping[Any, Any], name: str, most: int = TEXT_MAX_CHARACTERS) -> str:
    text = form.get(name)
    return text if isinstance(text, str) and len(text) <= most else ""


def _flag(form: Mapping[Any, Any], name: str) -> bool | None:
    flag = form.get(name)
    return flag if isinstance(flag, bool) else None


def _texts(form: Mapping[Any, Any], name: str) -> list[str]:
    listed = form.get(name)
    found = listed[:TEXTS_MAX] if isinstance(listed, list) else []
    return [text for text in found if isinstance(text, str) and len(text) <= TEXT_MAX_CHARACTERS]


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= INT_MAX


def _is_moment(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOMENT_MAX_MS


def _is_name(name: object) -> bool:
    try:
        return isinstance(name, str) and bool(NodePath((name,)))
    except BadIdentity:
        return False


def _tiers(paths: list[NodePath]) -> list[list[NodePath]]:
    tiers: dict[int, list[NodePath]] = {}
    for path in paths:
        tiers.setdefault(len(path.names), []).append(path)
    return [tiers[depth] for depth in sorted(tiers)]


def _reached(path: NodePath, above: Form | AskFault | None) -> bool:
    if above is None or isinstance(above, AskFault):
        return False
    child = above["children"].get(path.name)
    return child is not None and child["inSession"] and child["silentSinceMs"] is None
