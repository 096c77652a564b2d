"""What a shell offers for arguments: kinds, names, namespaces, placements and paths of the tree.

A completion never fails and never waits long: without a tree there is nothing but what is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from leafcast.ask.object_readers import reader_of
from leafcast.ask.resource_names import ALL, ResourceKinds, UnknownKind
from leafcast.ask.session import CallFailed, NotRunning, Session, open_session
from leafcast.cli.resource_arguments import with_kinds
from leafcast.data_dir import DataDirUnusable
from leafcast.signals import EndedBySignal, run_until_signal
from relay.space_errors import SpaceError
from schemas.objects.objects import DEFAULT_NAMESPACE
from schemas.records.placements import EDGE_PLACEMENTS, KINDS

COMPLETION_SECONDS = 3.0
_NOTHING = (
    NotRunning,
    DataDirUnusable,
    CallFailed,
    UnknownKind,
    SpaceError,
    TimeoutError,
    EndedBySignal,
)
_NAMESPACES = "namespaces"
_ROLLOUTS = "rollouts"

Lookup = Callable[[Session], Coroutine[Any, Any, list[str]]]


def kinds_and_names(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[str]:
    """`deploy`, `deploy,svc`, `deploy web`, `deploy/web`."""
    before: Sequence[str] = context.params.get("objects") or ()
    kind, slash, _ = incomplete.partition("/")
    if slash:
        return _asked(context, lambda session: _titles(session, context, kind), incomplete)
    if not before:
        listed, comma, _ = incomplete.rpartition(",")
        known = _asked(context, _kinds, "") or _names_of_kinds(ResourceKinds())
        return _begun((f"{listed}{comma}{word}" for word in known), incomplete)
    if "/" in before[0]:
        known = _asked(context, _kinds, "") or _names_of_kinds(ResourceKinds())
        return _begun((f"{word}/" for word in known), incomplete)
    found = _asked(context, lambda session: _names(session, context, before[0]), incomplete)
    return [name for name in found if name not in before[1:]]


def namespaces(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The Namespaces at the centre."""
    return _asked(context, lambda session: _names(session, context, _NAMESPACES), incomplete)


def placements(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The EdgePlacements, and BindingPolicies as `bp/NAME`, but those that are named already."""
    before = context.params.get(parameter.name or "") or ()
    found = _asked(context, lambda session: _placements(session, context), incomplete)
    return [name for name in found if name not in before]


def rollouts(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The Rollouts."""
    return _asked(context, lambda session: _names(session, context, _ROLLOUTS), incomplete)


def paths(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The paths of all nodes, the centre first."""
    return _asked(context, _node_paths, incomplete)


def files(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Whatever files the shell finds."""
    return [CompletionItem(incomplete, type="file")]


def _asked(context: click.Context, work: Lookup, incomplete: str) -> list[str]:
    """What the tree that is meant says, as far as it begins so; nothing if it says nothing."""
    data_dir: Path | None = context.params.get("data_dir")

    async def ask() -> list[str]:
        async with asyncio.timeout(COMPLETION_SECONDS), open_session(data_dir) as session:
            return await work(session)

    with suppress(*_NOTHING):
        return _begun(run_until_signal(ask()), incomplete)
    return []


def _begun(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


async def _kinds(session: Session) -> list[str]:
    return await with_kinds(session, _names_of_kinds)


def _names_of_kinds(kinds: ResourceKinds) -> list[str]:
    return [*kinds.resources(), ALL]


async def _titles(session: Session, context: click.Context, kind: str) -> list[str]:
    return [f"{kind}/{name}" for name in await _names(session, context, kind)]


async def _names(session: Session, context: click.Context, word: str) -> list[str]:
    """The names of the objects of a kind, where the options before say that they are looked for."""
    meant = (await with_kinds(session, lambda kinds: kinds.resolve_all(word)))[:1]
    where = context.params.get("namespace") or DEFAULT_NAMESPACE
    if context.params.get("all_namespaces"):
        where = ""
    reader = reader_of(session, context.params.get("at"))
    found = [obj for kind in meant for obj in await reader.all_of(kind, where, None)]
    return sorted({str(obj["metadata"]["name"]) for obj in found})


async def _placements(session: Session, context: click.Context) -> list[str]:
    found: list[str] = []
    for kind in KINDS:
        names = await _names(session, context, f"{kind.resource}.{kind.group}")
        found += [name if kind is EDGE_PLACEMENTS else f"{kind.short}/{name}" for name in names]
    return found


async def _node_paths(session: Session) -> list[str]:
    return [str(node["path"]) for node in (await session.call("tree"))["nodes"]]
