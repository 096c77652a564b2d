"""`leafcast apply`: a batch of manifests is judged whole, then written, and each object told of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from leafcast.ask.session import NotRunning, Session
from leafcast.changes.asked_batches import PlannedBatch, judged
from leafcast.changes.forms import ApplyBatch, Placing
from leafcast.changes.removals import Removals, changes_that_may_remove
from leafcast.changes.wishes import VERBS, PlannedWrite
from leafcast.cli.apply.removals import (
    ask_for,
    confirm_removals_option,
    removals_of,
    tell_if_held,
)
from leafcast.cli.apply.warnings import warnings
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    create_namespaces_option,
    dry_run_option,
    files_options,
    load_files,
    namespace_option,
    refuse,
)
from leafcast.cli.options.placing import placing_options
from leafcast.cli.options.traceparent import traceparent_option
from leafcast.cli.session_calls import in_session
from leafcast.manifest_sources import BadManifests
from leafcast.show.object_output import document
from leafcast.show.sanitize import sanitize
from schemas.objects.manifest_files import LoadedObject
from schemas.values.wording import many

DryRunMode = Literal["none", "client", "server"]
OutputForm = Literal["yaml", "json", "name"]
_NOTHING = "nothing was applied; correct this, and apply again"
_NOT_MEANT = "nothing was applied"
_NOT_LINKED = "Warning: the centre is of an older release, and links no --traceparent"
_DRY: dict[DryRunMode, str] = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


@click.command()
@files_options(required=True)
@namespace_option
@dry_run_option("done")
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), help="Format.")
@click.option("-q", "--quiet", is_flag=True, help="One line: how many were created, and so on.")
@placing_options
@create_namespaces_option
@confirm_removals_option
@traceparent_option
@data_dir_option
def apply(  # noqa: PLR0913 - click passes options by name
    *,
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    dry_run: DryRunMode,
    output: OutputForm | None,
    quiet: bool,
    placing: Placing | None,
    create_namespaces: bool,
    confirmed: bool,
    traceparent: str,
    data_dir: Path | None,
) -> None:
    """Create or update the objects of these manifests at the centre.

    All of them are checked before anything is changed. Objects lie still at the centre: an
    EdgePlacement says which go where, and --place makes one of just these objects. What takes more
    than ten copies, and more than a fifth of a placement's destinations or objects, off edges is
    asked for first.
    """
    if quiet and output is not None:
        raise click.UsageError("--quiet prints no objects; leave it out, or -o")
    said: OutputForm | Literal["total"] | None = "total" if quiet else output
    unread: tuple[str, ...] = ()
    try:
        try:
            loaded: Sequence[LoadedObject] = load_files(files, recursive=recursive)
        except BadManifests as bad:
            loaded, unread = bad.loaded, bad.faults
            if not loaded:
                raise
        asked = ApplyBatch(
            loaded,
            namespace,
            placing=placing,
            create_namespaces=create_namespaces,
            traceparent=traceparent,
        )
        refused = in_session(
            data_dir,
            lambda session: apply_all(session, asked, dry_run, said, unread, confirmed=confirmed),
        )
    except BadManifests as error:
        refuse([*error.faults, _NOTHING])
    except NotRunning:
        if not unread:
            raise
        refuse([*unread, _NOTHING])
    if refused:
        raise click.exceptions.Exit(1)


async def apply_all(
    session: Session,
    asked: ApplyBatch,
    dry_run: DryRunMode = "none",
    output: OutputForm | Literal["total"] | None = None,
    unread: Sequence[str] = (),
    *,
    confirmed: bool = False,
) -> int:
    """Apply the objects and tell what came of each; how many the space refused after all.

    Raises BadManifests, nothing being changed, if anything of the batch cannot be applied: with all
    that is wrong, also what was `unread`.
    """
    dry, placing = dry_run != "none", asked.placing
    async with judged(session, asked, unread, dry=dry) as batch:
        if asked.traceparent and not batch.is_traced:
            click.echo(_NOT_LINKED, err=True)
        if dry:
            made = list(batch.writes)
            for write in made:
                _tell(write, dry_run, output)
        else:
            removals = await removals_of(session, changes_that_may_remove(batch.writes))
            gives_up = placing is not None and placing.prune_all and removals.are_of(placing.name)
            ask_for(removals, confirmed=confirmed or gives_up, undone=_NOT_MEANT)
            made = await _make_all(session, batch, removals, output)
    if output in ("yaml", "json") and made:
        results = [change.after for change in made]
        click.echo(document(results, output, single=len(results) == 1), nl=False)
    if output == "total":
        click.echo(f"{_total(made)}{_DRY[dry_run]}")
    for line in await warnings(session, made, dry=dry, placing=placing):
        click.echo(sanitize(line), err=True)
    return len(batch.writes) - len(made)


def _total(made: Sequence[PlannedWrite]) -> str:
    """`16 objects: 2 created, 14 unchanged`."""
    counts = Counter(change.verb for change in made)
    said = ", ".join(f"{counts[verb]} {verb}" for verb in VERBS if counts[verb])
    return f"{many(len(made), 'object')}: {said}" if said else many(0, "object")


async def _make_all(
    session: Session,
    batch: PlannedBatch,
    removals: Removals,
    output: OutputForm | Literal["total"] | None,
) -> list[PlannedWrite]:
    """What was written; each object is told of, and why it was refused."""
    made: list[PlannedWrite] = []
    async for write, error in batch.written(removals.confirmed):
        if error is None:
            made.append(write)
            _tell(write, "none", output)
        else:
            why = session.why(error).removeprefix(f"{write.wish.key}: ")
            click.echo(f"Error from server ({error.reason}): {write.wish.title}: {why}", err=True)
    tell_if_held(batch.batch.warning)
    return made


def _tell(
    write: PlannedWrite, dry_run: DryRunMode, output: OutputForm | Literal["total"] | None
) -> None:
    if output is None:
        click.echo(f"{write.wish.title} {write.verb}{_DRY[dry_run]}")
    elif output == "name":
        click.echo(write.wish.title)
