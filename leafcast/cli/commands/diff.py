"""`leafcast diff`: what `apply` would change; exit code 0 nothing, 1 something, 2 an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import ApplyBatch
from leafcast.changes.wishes import PlannedWrite
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    create_namespaces_option,
    files_options,
    load_files,
    namespace_option,
)
from leafcast.cli.session_calls import exit_code_two, in_session
from leafcast.show.object_output import diff_lines
from relay.objects.merge import wish_of

_MASK = "***"


@click.command()
@files_options(required=True)
@namespace_option
@create_namespaces_option
@data_dir_option
def diff(
    *,
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    create_namespaces: bool,
    data_dir: Path | None,
) -> None:
    """Show what `apply` of these manifests would change.

    Exit code 0 if nothing, 1 if something, 2 if it cannot be told. Values of Secrets are masked.
    """
    with exit_code_two():
        loaded = load_files(files, recursive=recursive)
        asked = ApplyBatch(loaded, namespace, create_namespaces=create_namespaces)
        lines = in_session(data_dir, lambda session: differences(session, asked))
    for line in lines:
        click.echo(line)
    if lines:
        raise click.exceptions.Exit(1)


async def differences(session: Session, asked: ApplyBatch) -> list[str]:
    """The lines of the diff, none if nothing would change; raises BadManifests, SpaceError."""
    async with judged(session, asked) as batch:
        changed = (write for write in batch.writes if write.verb != "unchanged")
        return [line for write in changed for line in _difference(write)]


def _difference(change: PlannedWrite) -> Iterator[str]:
    before, after = _shown(change.before), _shown(change.after)
    if change.wish.key.resource == "secrets" and not change.wish.key.group:
        before, after = _masked(before, after)
    name = ".".join(
        part
        for part in (
            str(change.after["apiVersion"]).replace("/", "."),
            change.after["kind"],
            change.wish.key.namespace,
            change.wish.key.name,
        )
        if part
    )
    lines = diff_lines(before, after, name, "MERGED")
    if lines:
        yield f"diff -u -N LIVE/{name} MERGED/{name}"
    yield from lines


def _shown(obj: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a user can say of an object: without status and what a space writes itself."""
    return {} if obj is None else wish_of(obj)


def _masked(before: dict[str, Any], after: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both Secrets with stars for values; where they differ, it is said and not shown."""
    shown = ({**before}, {**after})
    for field in ("data", "stringData"):
        values = [obj.get(field) or {} for obj in (before, after)]
        for at, (obj, end) in enumerate(zip(shown, ("before", "after"), strict=True)):
            others = values[1 - at]
            masked = {
                key: _MASK if key not in others or others[key] == value else f"{_MASK} ({end})"
                for key, value in values[at].items()
            }
            if masked:
                obj[field] = masked
    return shown
