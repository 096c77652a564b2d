"""`leafcast why`: the first stage at which a copy stops on its way, since when, and what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.session import CallFailed, Session
from leafcast.ask.why import asked_why
from leafcast.cli import shell_completion
from leafcast.cli.options.common import NodeAt, data_dir_option
from leafcast.cli.options.objects import (
    files_options,
    load_files,
    namespace_option,
    refusals,
)
from leafcast.cli.printing import terminal_width
from leafcast.cli.resource_arguments import BadResourceArguments, meant_objects
from leafcast.cli.session_calls import exit_code_two, in_session
from leafcast.show.explanations import exit_code, explanation_lines, title_line
from leafcast.show.sanitize import sanitize
from relay.adapters.clock import SystemClock
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import DEFAULT_NAMESPACE
from schemas.records.placements import placement_kind


@click.command()
@click.argument(
    "words",
    nargs=-1,
    metavar="PLACEMENT | KIND/NAME | KIND NAME",
    shell_complete=shell_completion.kinds_and_names,
)
@namespace_option
@click.option(
    "--at",
    required=True,
    type=NodeAt(root=False),
    metavar="PATH",
    shell_complete=shell_completion.paths,
    help="The destination, such as /region-1/site-1. It may be away.",
)
@click.option(
    "--before-after",
    "compares",
    is_flag=True,
    help="With -f: what these manifests would alter there; nothing is changed.",
)
@files_options(required=False)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), help="How to print it.")
@data_dir_option
def why(  # noqa: PLR0913 - click passes options by name
    *,
    words: tuple[str, ...],
    namespace: str | None,
    at: str,
    compares: bool,
    files: Sequence[str],
    recursive: bool,
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Say why an object, or a placement, is not at a destination as it is meant.

    It names the first stage that blocks, since when, and what to do. The exit code is 0 if nothing
    blocks, 1 if something does, and 2 if it cannot be told; with --before-after 0 if nothing there
    would be another, 1 if something would.
    """
    if compares != bool(files):
        raise click.UsageError("--before-after goes with -f FILE, and -f with --before-after")
    if compares:
        with exit_code_two(), refusals():
            loaded = load_files(files, recursive=recursive)
            change = _Change(words, namespace, at, loaded)
            form = in_session(data_dir, change.form)
        _print_change(form, output)
        return
    if not words:
        raise click.UsageError("name a placement, or an object, as in deployment/web")

    async def work(session: Session) -> Any:
        asked = await _asked(session, words, namespace)
        return await asked_why(session, at, **asked)

    with exit_code_two(), refusals():
        form = in_session(data_dir, work)
    if output == "json":
        click.echo(json.dumps(form, indent=2))
    else:
        click.echo(sanitize(title_line(form)))
        now_ms = SystemClock().now().wall_ms
        for line in explanation_lines(form, now_ms, terminal_width()):
            click.echo(sanitize(line))
    if code := exit_code(form):
        raise click.exceptions.Exit(code)


@dataclass(frozen=True, slots=True)
class _Change:
    """What files would alter at one destination, of all or of what words name."""

    words: tuple[str, ...]
    namespace: str | None
    at: str
    loaded: Sequence[LoadedObject]

    async def form(self, session: Session) -> dict[str, Any]:
        """`{path, before, rows, notes}`; `before` is why it is as it is now, if words name it."""
        # Here, as who asks why alone applies nothing.
        from leafcast.changes.asked_plans import planned  # noqa: PLC0415
        from leafcast.changes.forms import ApplyBatch  # noqa: PLC0415
        from leafcast.cli.apply.intents import applied_intent  # noqa: PLC0415

        asked = await _asked(session, self.words, self.namespace) if self.words else {}
        before = None
        if asked:
            try:
                before = await asked_why(session, self.at, **asked)
            except CallFailed as failed:
                # What the files bring may not be there yet.
                if failed.code != "NotFound":
                    raise
        intent = await applied_intent(session, ApplyBatch(list(self.loaded), self.namespace))
        async with planned(session, intent.written, intent.named) as plan:
            rows = await plan.rows_at(self.at)
            notes = [*intent.warnings, *plan.summary["notes"]]
        wanted = asked.get("object")
        if wanted is not None:
            rows = [row for row in rows if list(row["key"]) == list(wanted)]
        return {"path": self.at, "before": before, "rows": rows, "notes": notes}


def _print_change(form: dict[str, Any], output: str | None) -> None:
    """Print what would change; ends with exit code 1 if something would."""
    from leafcast.show.plans import PlanTable  # noqa: PLC0415

    changes = any(row["action"] not in ("none", "held") for row in form["rows"])
    if output == "json":
        click.echo(json.dumps({**form, "changes": changes}, indent=2))
    else:
        now_ms = SystemClock().now().wall_ms
        if form["before"] is not None:
            click.echo("now:")
            for line in explanation_lines(form["before"], now_ms, terminal_width()):
                click.echo(sanitize(line))
            click.echo("then:")
        for line in PlanTable().lines(form["rows"]) if form["rows"] else ["nothing changes there"]:
            click.echo(sanitize(line))
        for note in form["notes"]:
            click.echo(f"Note: {sanitize(note)}", err=True)
    if changes:
        raise click.exceptions.Exit(1)


async def _asked(session: Session, words: tuple[str, ...], namespace: str | None) -> dict[str, Any]:
    """What the words name: a placement, or an object in its namespace."""
    if len(words) == 1 and "/" not in words[0]:
        return {"placement": words[0]}
    meant = await meant_objects(session, words, unknown=True)
    if len(meant) != 1 or len(meant[0].names) != 1:
        raise BadResourceArguments("name one placement, or one object, as in deployment/web")
    kind, (name,) = meant[0].kind, meant[0].names
    placement = placement_kind(kind.group, kind.resource)
    if placement is not None:
        return {"placement": placement.said(name)}
    where = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    return {"object": key_form(kind.key(where, name))}
