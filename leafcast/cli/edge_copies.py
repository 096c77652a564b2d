"""`leafcast get --all-edges`: what all edges brought up, printed as it comes, never held whole."""

from __future__ import annotations

from collections.abc import Sequence

import click

from leafcast.ask.object_readers import as_shown
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import Session
from leafcast.ask.upsynced import CopiesWanted, Unreached, copies_of_tree
from leafcast.cli.resource_arguments import ObjectSelection
from leafcast.show.object_output import Format, Rows, TableStyle, json_line, yaml_text
from leafcast.show.sanitize import sanitize
from relay.space_port import Object
from schemas.selectors import LabelSelector

ROWS_AT_ONCE = 100


class CopyPrinter:
    """Prints objects of one kind, some at a time."""

    def __init__(
        self, session: Session, kind: ResourceKind, style: TableStyle, form: Format
    ) -> None:
        self._session = session
        self._rows = Rows(kind, style)
        self._form = form
        self._waiting: list[Object] = []
        self.printed = 0

    def put(self, obj: Object) -> None:
        self._waiting.append(obj)
        if len(self._waiting) >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Print what waits. What is structured is one document for each object."""
        objects, self._waiting = self._waiting, []
        if not objects:
            return
        self.printed += len(objects)
        if self._form in ("table", "wide"):
            for line in self._rows.lines(objects, self._session.clock.now().wall_ms):
                click.echo(sanitize(line))
            return
        for obj in objects:
            if self._form == "json":
                click.echo(json_line(obj))
            elif self._form == "yaml":
                click.echo(f"---\n{yaml_text(obj)}", nl=False)
            else:
                click.echo(sanitize(self._rows.kind.title(obj["metadata"]["name"])))


async def show_all_edges(
    session: Session,
    meant: Sequence[tuple[ObjectSelection, str]],
    selector: LabelSelector | None,
    style: TableStyle,
    form: Format,
) -> bool:
    """Print the copies; whether all of the tree answered. Raises CallFailed."""
    whole = True
    for one, where in meant:
        for name in one.names or ("",):
            printer = CopyPrinter(session, one.kind, style, form)
            wanted = CopiesWanted.of_kind(one.kind, where, name, selector)
            try:
                async for copy in copies_of_tree(session, wanted):
                    printer.put(as_shown(copy, edge=True))
            except Unreached as error:
                whole = False
                click.echo(f"Error: {sanitize(str(error))}", err=True)
            printer.flush()
            if not printer.printed and form in ("table", "wide"):
                click.echo("No resources found", err=True)
    return whole
