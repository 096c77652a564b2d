"""`leafcast delete`: objects by name, label or manifest.

What a Namespace holds, or a definition defines, goes with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import click

from leafcast.ask.asked_space import AskedSpace
from leafcast.ask.object_readers import CentreReader, NotFound
from leafcast.ask.resource_names import ResourceKind, ResourceKinds
from leafcast.ask.session import Session
from leafcast.cli.apply.batch import held_together
from leafcast.cli.apply.nodes import refuse_nodes_there
from leafcast.cli.apply.removals import (
    Removals,
    ask_for,
    confirm_removals_option,
    removals_of,
)
from leafcast.cli.apply.rollout_ends import Fate, fate_options, let_go, placements_left
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    dry_run_option,
    load_files,
    meant_by,
    objects_options,
    refusals,
)
from leafcast.cli.resource_arguments import (
    BadArguments,
    ObjectSelection,
    meant_objects,
    with_kinds,
)
from leafcast.cli.session_calls import in_session
from leafcast.show.sanitize import sanitize
from relay.objects.serving import DEFINITIONS, NAMESPACES
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Object
from schemas.objects.annotations import DELETE, ON_REMOVAL
from schemas.objects.manifests import LoadedObject
from schemas.objects.objects import DEFAULT_NAMESPACE, ObjectKey, apply_order
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import placement_at
from schemas.values.groups import GROUP
from schemas.values.wording import some_of

SYNC_TARGETS = (GROUP, "synctargets")
AT_ONCE = 16
"""So many deletions are under way at a time."""
GONE_SECONDS_MAX, LOOK_SECONDS = 15.0, 0.1


@dataclass(frozen=True, slots=True)
class ObjectToDelete:
    """An object to be deleted, which is this one and no later namesake."""

    kind: ResourceKind
    object: Object

    @property
    def key(self) -> ObjectKey:
        metadata = self.object["metadata"]
        return self.kind.key(metadata.get("namespace", ""), metadata["name"])


@dataclass(frozen=True, slots=True)
class Request:
    """What a `delete` asks for; `namespace` "" is all of them."""

    arguments: tuple[str, ...] = ()
    loaded: tuple[LoadedObject, ...] = ()
    namespace: str | None = None
    all_namespaces: bool = False
    selector: LabelSelector | None = None
    every: bool = False
    ignore_not_found: bool = False
    dry: bool = False
    confirmed: bool = False
    force: bool = False
    # What becomes of placements whose Rollout is deleted under way.
    fate: Fate = ""


@click.command()
@objects_options("KIND NAME... | KIND/NAME... | KIND -l SELECTOR")
@click.option("--all", "every", is_flag=True, help="All objects of the kind.")
@click.option("--ignore-not-found", is_flag=True, help="Exit code 0 if an object is not there.")
@dry_run_option("deleted")
@click.option("--force", is_flag=True, help="Also SyncTargets of nodes that are there.")
@confirm_removals_option
@fate_options
@data_dir_option
def delete(  # noqa: PLR0913 - click passes options by name
    *,
    objects: tuple[str, ...],
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    all_namespaces: bool,
    selector: LabelSelector | None,
    every: bool,
    ignore_not_found: bool,
    dry_run: str,
    force: bool,
    confirmed: bool,
    fate: Fate | None,
    data_dir: Path | None,
) -> None:
    """Delete objects at the centre; edges that hold copies delete them in their turn.

    First it says how many copies go at how many destinations, and asks if these are more than ten,
    and more than a fifth of a placement's destinations or objects. A complete Rollout lets its
    placement go; of one under way --freeze or --let-go says what becomes of it.
    """
    if bool(objects) == bool(files):
        raise click.UsageError("name objects, or files with -f; one of the two")
    with refusals():
        loaded = tuple(load_files(files, recursive=recursive)) if files else ()
        request = Request(
            arguments=objects,
            loaded=loaded,
            namespace=namespace,
            all_namespaces=all_namespaces,
            selector=selector,
            every=every,
            ignore_not_found=ignore_not_found,
            dry=dry_run != "none",
            confirmed=confirmed,
            force=force,
            fate=fate or "",
        )
        missing = in_session(data_dir, lambda session: delete_all(session, request))
    if missing and not ignore_not_found:
        raise click.exceptions.Exit(1)


async def delete_all(session: Session, request: Request) -> int:
    """Delete what is asked for and tell it; how many named objects are not there.

    Raises SpaceError if the space refuses one: then what others lean on stays.
    """
    found, missing = await objects_to_delete(session, request)
    if not request.force:
        targets = (it.object for it in found if it.kind.group_resource == SYNC_TARGETS)
        await refuse_nodes_there(session, targets)
    left = await placements_left(session, {target.key for target in found}, request.fate)
    if request.dry:
        for target in found:
            click.echo(f"{_told(target)} (dry run)")
        removals = await removals_of(session, {target.key: None for target in found})
        if removals.losses:
            click.echo(f"Note: this {sanitize(str(removals))} (dry run)", err=True)
    elif found:
        removals = await removals_of(session, {target.key: None for target in found})
        ask_for(removals, confirmed=request.confirmed, undone="nothing was deleted", always=True)
        _tell_what_stays(found, removals)
        async with held_together(session) as go_on:
            for _, alike in groupby(found, key=_late_first):
                await _delete_at_once(session, list(alike), go_on)
            await removals.confirm(session)
        await let_go(session, left, request.fate)
        await _until_gone(session, found)
    if not found and not missing:
        click.echo("No resources found", err=True)
    return missing


def _tell_what_stays(found: Sequence[ObjectToDelete], removals: Removals) -> None:
    """Say that Namespaces stay at edges around what is kept there, and how they would go."""
    names = [each.key.name for each in found if each.key.group_resource == NAMESPACES]
    if names and removals.kept:
        click.echo(
            f"Note: at edges that keep copies the Namespace {some_of(sorted(names), 1)} stays "
            f"around them; if it shall go, annotate what is kept in it with "
            f"{ON_REMOVAL}: {DELETE} first",
            err=True,
        )


async def objects_to_delete(session: Session, request: Request) -> tuple[list[ObjectToDelete], int]:
    """What goes, in the order in which it does, and how many that are named are not there."""
    found, missing = await _found(session, request)
    return [*await _inside(session, found), *found], missing


async def _delete_at_once(
    session: Session, alike: Sequence[ObjectToDelete], between: Callable[[], Awaitable[None]]
) -> None:
    """Delete objects of which none leans on another; each is told of, in their order.

    Raises the first SpaceError, once what was begun is done; after it no other is begun.
    """
    limit = asyncio.Semaphore(AT_ONCE)
    refused: list[SpaceError] = []

    async def is_gone(target: ObjectToDelete) -> bool:
        async with limit:
            if refused:
                return False
            await between()
            space, uid = session.space_for(target.key), target.object["metadata"]["uid"]
            try:
                await space.delete(target.key, uid)
            except SpaceError as error:
                refused.append(error)
                return False
            return True

    async with asyncio.TaskGroup() as group:
        deletions = [(target, group.create_task(is_gone(target))) for target in alike]
        for target, gone in deletions:
            if await gone:
                click.echo(_told(target))
    if refused:
        raise refused[0]


async def _until_gone(session: Session, found: Sequence[ObjectToDelete]) -> None:
    """Wait a while for placements: on an API server one stays until its deletion is in the ledger.

    What is applied to it until then would go with it.
    """
    left = [one for one in found if placement_at(one.key) is not None]
    until = session.clock.now().seconds + GONE_SECONDS_MAX
    while left and session.clock.now().seconds < until:
        left = [one for one in left if await _is_there(session, one)]
        if left:
            await session.clock.sleep(LOOK_SECONDS)


async def _is_there(session: Session, target: ObjectToDelete) -> bool:
    live = await session.space_for(target.key).get(target.key)
    return live is not None and live["metadata"]["uid"] == target.object["metadata"]["uid"]


def _told(target: ObjectToDelete) -> str:
    return f"{target.kind.quoted(target.key.name)} deleted"


async def _found(session: Session, request: Request) -> tuple[list[ObjectToDelete], int]:
    """The objects meant, what leans on others first, and how many are not there."""
    reader = CentreReader(session)
    found: list[ObjectToDelete] = []
    missing = 0
    for meant, namespace in await _meant(session, request):
        if not meant.names:
            listed = await reader.all_of(meant.kind, namespace, request.selector)
            found += [ObjectToDelete(meant.kind, obj) for obj in listed]
        for name in meant.names:
            try:
                found.append(
                    ObjectToDelete(meant.kind, await reader.get(meant.kind, namespace, name))
                )
            except NotFound as error:
                missing += 1
                if not request.ignore_not_found:
                    click.echo(str(error), err=True)
    return sorted(found, key=_late_first), missing


async def _meant(session: Session, request: Request) -> list[tuple[ObjectSelection, str]]:
    """Kinds and names, each with its namespace; raises BadArguments, BadManifests, UnknownKind."""
    if request.loaded:
        return await meant_by(session, request.loaded, request.namespace)
    meant = await meant_objects(session, request.arguments)
    named = any(one.names for one in meant)
    chosen = request.selector is not None or request.every
    if named and chosen:
        raise BadArguments("a name is given, and a selector or --all; leave out one of them")
    if not named and not chosen:
        raise BadArguments(
            "resource(s) were provided, but no name was specified; name some, or give -l or --all"
        )
    if named and request.all_namespaces:
        raise BadArguments("a resource cannot be deleted by name across all namespaces; use -n")
    where = "" if request.all_namespaces else request.namespace or DEFAULT_NAMESPACE
    return [(one, where) for one in meant]


async def _inside(session: Session, found: Iterable[ObjectToDelete]) -> list[ObjectToDelete]:
    """What the Namespaces among them hold, or definitions define, and is not among them itself."""
    listed = list(found)
    known = {target.object["metadata"]["uid"] for target in listed}
    inside: list[ObjectToDelete] = []
    for target in listed:
        if held := await _held(session.workloads, target):
            kinds = await with_kinds(session, lambda kinds: kinds)
            inside += _fresh(kinds, held, known)
            known |= {obj["metadata"]["uid"] for obj in held}
    return sorted(inside, key=_late_first)


async def _held(space: AskedSpace, target: ObjectToDelete) -> Sequence[Object]:
    """What goes with an object; of a kind that is not served there is nothing."""
    if target.kind.group_resource == NAMESPACES:
        return (await space.list(namespace=target.key.name)).objects
    if target.kind.group_resource != DEFINITIONS:
        return ()
    resource, _, group = target.key.name.partition(".")
    try:
        return (await space.list(group, resource)).objects
    except SpaceError as error:
        if error.reason != NOT_FOUND:
            raise
        return ()


def _fresh(
    kinds: ResourceKinds, objects: Iterable[Object], known: set[str]
) -> list[ObjectToDelete]:
    fresh = [obj for obj in objects if obj["metadata"]["uid"] not in known]
    return [ObjectToDelete(kinds.of(obj), obj) for obj in fresh]


def _late_first(target: ObjectToDelete) -> int:
    return -apply_order(target.kind.group, target.kind.resource)
