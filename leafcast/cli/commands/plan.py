"""`leafcast plan`: what `apply` or `delete` would do at every destination; it changes nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from leafcast.ask.session import Session
from leafcast.changes.asked_plans import PlannedChange, planned
from leafcast.changes.forms import ApplyBatch, Placing
from leafcast.cli.apply.intents import ChangeIntent, applied_intent
from leafcast.cli.commands.delete import DeleteRequest, judged_deletion
from leafcast.cli.live_copies import LiveCopies
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    create_namespaces_option,
    files_options,
    load_files,
    namespace_option,
)
from leafcast.cli.options.placing import placing_options
from leafcast.cli.session_calls import exit_code_two, in_session
from leafcast.show.plans import PlanTable, at_the_centre, blast_radius, object_name, waves_lines
from leafcast.show.sanitize import sanitize
from schemas.objects.manifest_files import LoadedObject
from schemas.values.wording import namespace_first

ROWS_AT_ONCE = 200
NOTES_MAX = 10
_CHANGES = ("delete", "keep", "orphan", "frozen", "create", "update")

Form = dict[str, Any]


@click.command()
@files_options(required=True)
@namespace_option
@placing_options
@create_namespaces_option
@click.option("--delete", "deletes", is_flag=True, help="Plan `delete -f`, not `apply -f`.")
@click.option("--all", "every", is_flag=True, help="All rows, one for each destination.")
@click.option("--live", is_flag=True, help="Ask the edges of these rows what they hold (drift).")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), help="How to print it.")
@data_dir_option
def plan(  # noqa: PLR0913 - click passes options by name
    *,
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    placing: Placing | None,
    create_namespaces: bool,
    deletes: bool,
    every: bool,
    live: bool,
    output: str | None,
    data_dir: Path | None,
) -> None:
    """Show what `apply` of these manifests would do at every destination; change nothing.

    First how far it reaches, then what becomes of each object where, and why: removals before all
    else, then what is frozen, created, updated. What is alike at several destinations is one row.
    Exit code 0 if nothing changes, 1 if something
    does, 2 if it cannot be told.
    """
    if deletes and placing is not None:
        raise click.UsageError("--delete leaves placements as they are; leave it out, or --place")
    with exit_code_two():
        loaded = load_files(files, recursive=recursive)

        async def work(session: Session) -> bool:
            if deletes:
                intent = await _deletion(session, loaded, namespace)
            else:
                asked = ApplyBatch(
                    loaded, namespace, placing=placing, create_namespaces=create_namespaces
                )
                intent = await applied_intent(session, asked)
            async with planned(session, intent.written, intent.named) as made:
                shown = _Shown(made, intent, LiveCopies(made) if live else None, every=every)
                await (shown.as_json() if output == "json" else shown.as_table())
                return shown.changes

        changes = in_session(data_dir, work)
    if changes:
        raise click.exceptions.Exit(1)


async def _deletion(
    session: Session, loaded: Sequence[LoadedObject], namespace: str | None
) -> ChangeIntent:
    """What `delete` would delete; raises BadManifests with all that is wrong."""
    request = DeleteRequest(loaded=tuple(loaded), namespace=namespace, dry=True)
    async with judged_deletion(session, request, force=True) as deletion:
        keys = [target.key for target in deletion.targets]
    return ChangeIntent(dict.fromkeys(keys), (), dict.fromkeys(keys, "deleted"))


@dataclass(slots=True)
class _Shown:
    """A plan on its way to a reader."""

    plan: PlannedChange
    intent: ChangeIntent
    live: LiveCopies | None
    every: bool
    told: int = field(default=0, init=False)

    @property
    def changes(self) -> bool:
        """Whether anything would be another, or is not as it is meant, as far as edges answered."""
        counts = self.plan.summary["counts"]
        centre = any(verb != "unchanged" for verb in self.intent.verbs.values())
        unlike = self.live is not None and (self.live.drifted > 0 or bool(self.live.silent))
        return centre or unlike or any(counts[word] for word in _CHANGES)

    async def as_table(self) -> None:
        summary = self.plan.summary
        said = at_the_centre(self.intent.verbs.values())
        click.echo(blast_radius(summary, centre=bool(said)))
        if said:
            click.echo(said)
        for line in waves_lines(summary):
            click.echo(sanitize(line))
        table = PlanTable(live=self.live is not None, groups=not self.every)
        async for page in self._pages():
            for line in table.lines(page):
                click.echo(sanitize(line))
        if more := self._more():
            click.echo(f"{more:,} more: --all")
        for line in self.intent.warnings:
            click.echo(sanitize(line), err=True)
        notes = summary["notes"]
        shown = notes if self.every else notes[:NOTES_MAX]
        for note in shown:
            click.echo(f"Note: {sanitize(note)}", err=True)
        if len(notes) > len(shown):
            click.echo(f"{len(notes) - len(shown):,} more notes: --all", err=True)
        for path, why in sorted(self._silent().items()):
            click.echo(f"No answer: {sanitize(f'{path}: {why}')}", err=True)

    async def as_json(self) -> None:
        """One document, its rows as they come."""
        summary = {name: said for name, said in self.plan.summary.items() if name != "rows"}
        notes = [*self.intent.warnings, *summary["notes"]]
        centre = {namespace_first(str(key)): verb for key, verb in self.intent.verbs.items()}
        head = {**summary, "notes": notes, "centre": centre}
        click.echo(json.dumps(head, indent=2)[: -len("\n}")] + ',\n  "rows": [', nl=False)
        between = "\n    "
        async for page in self._pages():
            for row in page:
                click.echo(between + json.dumps(_row(row)), nl=False)
                between = ",\n    "
        click.echo("]," if between == "\n    " else "\n  ],")
        click.echo(f'  "more": {self._more()},')
        click.echo(f'  "noAnswer": {json.dumps(self._silent())}\n}}')

    async def _pages(self) -> AsyncIterator[list[Form]]:
        """The rows that are asked for, some at a time; none if there are none."""
        if not self.every:
            if rows := [row for row in self.plan.summary["rows"] if row["action"] in self._told()]:
                yield await self._looked_at(rows)
            return
        page: list[Form] = []
        async for row in self.plan.rows():
            page.append(row)
            if len(page) >= ROWS_AT_ONCE:
                yield await self._looked_at(page)
                page = []
        if page:
            yield await self._looked_at(page)

    async def _looked_at(self, rows: list[Form]) -> list[Form]:
        self.told += len(rows)
        if self.live is not None:
            await self.live.look(rows)
        return rows

    def _told(self) -> frozenset[str]:
        """What is told: what does not change only if nothing does, or all is asked for."""
        counts = self.plan.summary["counts"]
        words = frozenset(word for word in counts if counts[word])
        return words if self.every or words == {"none"} else words - {"none"}

    def _more(self) -> int:
        counts = self.plan.summary["counts"]
        return int(sum(counts[word] for word in self._told())) - self.told

    def _silent(self) -> dict[str, str]:
        return {} if self.live is None else self.live.silent


def _row(row: Form) -> Form:
    return {"destination": row["destination"], "object": object_name(row["key"]), **row}
