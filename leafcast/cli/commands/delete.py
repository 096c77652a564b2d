"""`leafcast delete`: objects by name, label or manifest.

What a Namespace holds, or a definition defines, goes with it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.object_readers import CentreReader
from leafcast.ask.session import Session
from leafcast.changes.forms import DELETE
from leafcast.changes.judged_batch import JudgedBatch, asked_to_judge
from leafcast.changes.removals import Removals
from leafcast.changes.targets import Fate, ObjectToDelete, rollouts_of
from leafcast.cli.apply.removals import (
    ask_for,
    confirm_removals_option,
    removals_of,
    tell_if_held,
)
from leafcast.cli.apply.rollout_ends import fate_options, let_go, placements_left
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    dry_run_option,
    load_files,
    meant_by,
    objects_options,
    refusals,
    refuse,
)
from leafcast.cli.resource_arguments import (
    BadResourceArguments,
    ObjectSelection,
    found_objects,
    meant_objects,
)
from leafcast.cli.session_calls import in_session
from leafcast.show.sanitize import sanitize
from relay.space_errors import SpaceError
from schemas.objects.annotations import DELETE as DELETE_ANYWAY
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import DEFAULT_NAMESPACE, NAMESPACES
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import placement_at
from schemas.values.wire import convert
from schemas.values.wording import some_of

GONE_SECONDS_MAX, LOOK_SECONDS = 15.0, 0.1


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """What a `delete` asks for; `namespace` "" is all of them."""

    objects: tuple[str, ...] = ()
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
@objects_options("KIND NAME... | KIND/NAME... | KIND -l SELECTOR", changes=True)
@click.option("--all", "every", is_flag=True, help="All objects of the kind.")
@click.option("--ignore-not-found", is_flag=True, help="Exit code 0 if an object is not there.")
@dry_run_option("deleted")
@click.option("--force", is_flag=True, help="Also SyncTargets of nodes that are there.")
@confirm_removals_option
@fate_options
@data_dir_option
def delete(
    *,
    files: Sequence[str],
    recursive: bool,
    dry_run: str,
    fate: Fate | None,
    data_dir: Path | None,
    **said: Any,
) -> None:
    """Delete objects at the centre; edges that hold copies delete them in their turn.

    First it says how many copies go at how many destinations, and asks if these are more than ten,
    and more than a fifth of a placement's destinations or objects. A complete Rollout lets its
    placement go; of one under way --freeze or --let-go says what becomes of it.
    """
    if bool(said["objects"]) == bool(files):
        raise click.UsageError("name objects, or files with -f; one of the two")
    with refusals():
        loaded = tuple(load_files(files, recursive=recursive)) if files else ()
        request = DeleteRequest(loaded=loaded, dry=dry_run != "none", fate=fate or "", **said)
        missing = in_session(data_dir, lambda session: delete_all(session, request))
    if missing and not request.ignore_not_found:
        raise click.exceptions.Exit(1)


async def delete_all(session: Session, request: DeleteRequest) -> int:
    """Delete what is asked for and tell it; how many named objects are not there.

    Raises SpaceError if the space refuses one: then what others lean on stays.
    """
    async with judged_deletion(session, request) as deletion:
        targets, missing = deletion.targets, deletion.missing
        refuse_nodes_there(deletion.nodes, deletion.unsure)
        left = placements_left(rollouts_of(targets), deletion.keeping, request.fate)
        if request.dry:
            for target in targets:
                click.echo(f"{_told(target)} (dry run)")
        removals = await removals_of(session, {target.key: None for target in targets})
        if request.dry and removals.losses:
            click.echo(f"Note: this {sanitize(str(removals))} (dry run)", err=True)
        elif targets and not request.dry:
            undone = "nothing was deleted"
            ask_for(removals, confirmed=request.confirmed, undone=undone, always=True)
            _tell_what_stays(targets, removals)
            await _delete(deletion, removals)
            await let_go(session, left, request.fate)
            await _until_gone(session, targets)
    if not targets and not missing:
        click.echo("No resources found", err=True)
    return missing


@dataclass(frozen=True, slots=True)
class JudgedDeletion:
    """What goes, in the order in which it does, and what speaks against it.

    `nodes` are the SyncTargets of nodes that are there, by path, `unsure` why that cannot be told;
    `keeping` is what Rollouts among the targets keep back.
    """

    targets: Sequence[ObjectToDelete]
    # How many that are named are not there.
    missing: int
    batch: JudgedBatch
    nodes: Mapping[str, str] = field(default_factory=dict)
    unsure: str = ""
    keeping: Sequence[Mapping[str, Any]] = ()


@asynccontextmanager
async def judged_deletion(
    session: Session, request: DeleteRequest, *, force: bool = False
) -> AsyncIterator[JudgedDeletion]:
    """What would go, judged by the centre; with `force` whatever nodes are there.

    Raises BadResourceArguments, BadManifests, UnknownKind, CallFailed, SpaceError.
    """
    found, missing = await _found(session, request)
    if not found:
        yield JudgedDeletion((), missing, JudgedBatch(session, ""))
        return
    answer = await asked_to_judge(
        session,
        DELETE,
        objects=[[*key_form(target.key), target.uid] for target in found],
        fate=request.fate,
        force=force or request.force,
        dry=request.dry,
    )
    targets = [convert(ObjectToDelete, form, "a target") for form in answer["targets"]]
    async with aclosing(JudgedBatch(session, answer["batch"])) as batch:
        told = (answer[name] for name in ("nodes", "unsure", "keeping"))
        yield JudgedDeletion(targets, missing, batch, *told)


def _tell_what_stays(found: Sequence[ObjectToDelete], removals: Removals) -> None:
    """Say that Namespaces stay at edges around what is kept there, and how they would go."""
    names = [each.key.name for each in found if each.key.group_resource == NAMESPACES]
    if names and removals.kept:
        click.echo(
            f"Note: at edges that keep copies the Namespace {some_of(sorted(names), 1)} stays "
            f"around them; if it shall go, annotate what is kept in it with "
            f"{ON_REMOVAL}: {DELETE_ANYWAY} first",
            err=True,
        )


async def _delete(deletion: JudgedDeletion, removals: Removals) -> None:
    """Have them deleted; each is told of, in their order. Raises the first SpaceError."""
    refused: list[SpaceError] = []
    async for number, error in deletion.batch.written(removals.confirmed):
        if isinstance(error, SpaceError):
            refused.append(error)
        else:
            click.echo(_told(deletion.targets[number]))
    tell_if_held(deletion.batch.warning)
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
    return live is not None and live["metadata"]["uid"] == target.uid


def _told(target: ObjectToDelete) -> str:
    return f"{target.kind.quoted(target.key.name)} deleted"


async def _found(session: Session, request: DeleteRequest) -> tuple[list[ObjectToDelete], int]:
    """The objects meant, and how many are not there."""
    meant, is_quiet = await _meant(session, request), request.ignore_not_found
    found, missing = await found_objects(
        CentreReader(session), meant, request.selector, is_quiet=is_quiet
    )
    targets = [ObjectToDelete.of(kind, obj) for kind, obj in found]
    return sorted(targets, key=lambda target: target.rank), missing


async def _meant(session: Session, request: DeleteRequest) -> list[tuple[ObjectSelection, str]]:
    """Kinds, names and namespaces; raises BadResourceArguments, BadManifests, UnknownKind."""
    if request.loaded:
        return await meant_by(session, request.loaded, request.namespace)
    meant = await meant_objects(session, request.objects)
    named = any(one.names for one in meant)
    chosen = request.selector is not None or request.every
    if named and chosen:
        raise BadResourceArguments(
            "a name is given, and a selector or --all; leave out one of them"
        )
    if not named and not chosen:
        raise BadResourceArguments(
            "resource(s) were provided, but no name was specified; name some, or give -l or --all"
        )
    if named and request.all_namespaces:
        raise BadResourceArguments(
            "a resource cannot be deleted by name across all namespaces; use -n"
        )
    where = "" if request.all_namespaces else request.namespace or DEFAULT_NAMESPACE
    return [(one, where) for one in meant]


NODES_NAMED_MAX = 10


def refuse_nodes_there(by_path: Mapping[str, str], unsure: str) -> None:
    """End with exit code 1 if there are SyncTargets of nodes in the tree, by their paths.

    Or if the centre cannot tell, and says why.
    """
    if unsure:
        refuse(
            [f"nobody can tell whether its node is there: {unsure}", "try again, or say --force"]
        )
    there = list(by_path)
    if not there:
        return
    faults = [
        f'synctarget "{by_path[path]}" is the destination of {path}, which is there and would be '
        f"emptied; if the node is to go: leafcast node remove {path}; else say --force"
        for path in there[:NODES_NAMED_MAX]
    ]
    more = len(there) - NODES_NAMED_MAX
    refuse([*faults, *([f"and {more} more"] if more > 0 else []), "nothing was deleted"])
