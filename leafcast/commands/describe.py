"""`leafcast describe`: objects told at length, at the centre or at one edge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from leafcast.commands import completing
from leafcast.commands.object_options import (
    all_namespaces_option,
    at_option,
    namespace_option,
    refuse,
    selector_option,
)
from leafcast.commands.options import data_dir_option
from leafcast.commands.running import in_session
from leafcast.describing import described
from leafcast.harmless import harmless
from leafcast.kinds_spoken import SpokenKind, UnknownKind
from leafcast.object_readers import NotFound, Reader, reader_of
from leafcast.session import Session
from leafcast.spoken_objects import BadArguments, read_arguments, with_kinds
from relay.ports import Object
from schemas.objects import DEFAULT_NAMESPACE
from schemas.selectors import LabelSelector


@click.command()
@click.argument(
    "objects",
    nargs=-1,
    metavar="KIND [NAME...] | KIND/NAME...",
    shell_complete=completing.kinds_and_names,
)
@namespace_option
@all_namespaces_option
@selector_option
@at_option
@data_dir_option
def describe(
    *,
    objects: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    selector: LabelSelector | None,
    at: str | None,
    data_dir: Path | None,
) -> None:
    """Tell objects at length: the ones named, or all of a kind. The start of a name will do."""
    where = "" if all_namespaces else namespace or DEFAULT_NAMESPACE
    try:
        missing = in_session(data_dir, lambda session: tell(session, objects, where, selector, at))
    except (BadArguments, UnknownKind) as error:
        refuse([str(error)])
    if missing:
        raise click.exceptions.Exit(1)


async def tell(
    session: Session,
    arguments: Sequence[str],
    namespace: str,
    selector: LabelSelector | None,
    at: str | None,
) -> int:
    """Print the descriptions; how many named objects are not there. `namespace` "" is all."""
    meant = await with_kinds(session, lambda kinds: read_arguments(kinds, arguments))
    reader = reader_of(session, at)
    found: list[Object] = []
    missing = 0
    for one in meant:
        if not one.names:
            found += await reader.all_of(one.kind, namespace, selector)
        for name in one.names:
            try:
                found += await _named(reader, one.kind, namespace, name)
            except NotFound as error:
                missing += 1
                click.echo(str(error), err=True)
    click.echo(harmless("\n\n".join(described(obj) for obj in found)), nl=False)
    if not found and not missing:
        in_one = namespace and any(one.kind.namespaced for one in meant)
        where = f" in {namespace} namespace." if in_one else ""
        click.echo(f"No resources found{where}", err=True)
    return missing


async def _named(reader: Reader, kind: SpokenKind, namespace: str, name: str) -> Sequence[Object]:
    """The object of that name, else those whose names begin so; raises NotFound."""
    try:
        return [await reader.get(kind, namespace, name)]
    except NotFound:
        listed = await reader.all_of(kind, namespace, None)
        begun = [obj for obj in listed if obj["metadata"]["name"].startswith(name)]
        if not begun:
            raise
        return begun
