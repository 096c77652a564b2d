"""`leafcast place`: an EdgePlacement of just what is in files, to be read, kept or applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import click

from leafcast.ask.session import NotRunning, Session
from leafcast.changes.asked_batches import complete
from leafcast.changes.placements_by_names import placeable, placement_of
from leafcast.changes.wishes import Wish, complete_by
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    files_options,
    load_files,
    namespace_option,
    refusals,
    refuse,
)
from leafcast.cli.options.placing import PLACEMENT_NAME, where_option
from leafcast.cli.session_calls import in_session
from leafcast.manifest_sources import STDIN
from leafcast.show.object_output import document
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import ALWAYS_THERE
from schemas.objects.selectors import LabelSelector
from schemas.values import names

_FALLBACK = "placed"


@click.command()
@files_options(required=True)
@namespace_option
@click.option(
    "--name",
    type=PLACEMENT_NAME,
    help="The placement's name.  [default: that of the namespace of most objects, or of the file]",
)
@where_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="Format.",
)
@data_dir_option
def place(
    *,
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    name: str | None,
    where: LabelSelector | None,
    output: Literal["yaml", "json"],
    data_dir: Path | None,
) -> None:
    """Print an EdgePlacement of just what is in these manifests; change nothing.

    It names each object, and the Namespaces that they lie in. `apply --place NAME` makes such a
    placement, and keeps it in step with the files. Kinds that no definition in the files tells of
    are looked up at the centre, if it runs.
    """
    with refusals():
        loaded = load_files(files, recursive=recursive)
        wishes = _wishes(data_dir, loaded, namespace)
    named = placeable({wish.key: wish.object for wish in wishes})
    if not named:
        refuse(["nothing in the files can be sent; add a workload to them"])
    found = name or _name_for(wishes, files)
    placement = placement_of(found, named, [where.to_kubernetes() if where else {}])
    click.echo(document([placement], output, single=True), nl=False)


def _wishes(
    data_dir: Path | None, loaded: Sequence[LoadedObject], namespace: str | None
) -> list[Wish]:
    """The objects with their keys; without a running tree by what is known of kinds here."""

    async def asked(session: Session) -> list[Wish]:
        return await complete(session, loaded, namespace)

    try:
        return in_session(data_dir, asked)
    except NotRunning:
        return complete_by((), loaded, namespace)


def _name_for(wishes: Iterable[Wish], files: Sequence[str]) -> str:
    """A name that a person might have given."""
    lying = Counter(wish.key.namespace for wish in wishes if wish.key.namespace)
    for namespace, _ in lying.most_common():
        if namespace not in ALWAYS_THERE:
            return namespace
    stem = Path(files[0]).resolve().stem.lower() if files[0] != STDIN else _FALLBACK
    return _FALLBACK if names.subdomain_fault(stem) else stem
