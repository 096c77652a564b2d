"""`leafcast get --all-edges`: what all edges hold, printed as it comes, never held whole.

What arises at edges and is brought up lies at their parents, which answer for all of them at once;
all else each edge is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from leafcast.ask.edges import Edges, brought_up, edges_of_tree, objects_of_edges
from leafcast.ask.object_readers import as_shown, with_edge
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import Session
from leafcast.ask.upsynced import CopiesWanted, Unreached, copies_of_tree
from leafcast.cli.options.output import Output
from leafcast.cli.resource_arguments import ObjectSelection
from leafcast.cli.table_lookups import learn_columns, version_of
from leafcast.show.object_output import Rows, TableStyle, json_line, yaml_text
from leafcast.show.sanitize import sanitize, sanitize_lines
from relay.space_port import Object
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import EDGE_ANNOTATION, GROUP
from schemas.values.wording import many, some_of

ROWS_AT_ONCE = 100
NAMED_MAX = 20


class CopyPrinter:
    """Prints objects of one kind, some at a time."""

    def __init__(
        self, session: Session, kind: ResourceKind, style: TableStyle, output: Output
    ) -> None:
        self._session = session
        self._rows = Rows(kind, style)
        self._output = output
        self._waiting: list[Object] = []
        self.printed = 0

    async def put(self, obj: Object) -> None:
        self._waiting.append(obj)
        if len(self._waiting) >= ROWS_AT_ONCE:
            await self.flush()

    async def flush(self) -> None:
        """Print what waits. What is structured is one document for each object."""
        objects, self._waiting = self._waiting, []
        if not objects:
            return
        if not self.printed and self._output.is_table:
            await self._learn(objects[0])
        self.printed += len(objects)
        if self._output.is_table:
            for line in self._rows.lines(objects, self._session.clock.now().wall_ms):
                click.echo(sanitize(line))
            return
        for obj in objects:
            self._print(obj)

    async def _learn(self, first: Object) -> None:
        """The columns of a kind that is known where the first of them is."""
        annotations = first["metadata"].get("annotations") or {}
        shown = [(self._rows.kind, version_of(first))]
        edge = annotations.get(EDGE_ANNOTATION)
        await learn_columns(self._session, self._rows.style, shown, edge)

    def _print(self, obj: Object) -> None:
        match self._output.format:
            case "json":
                click.echo(json_line(obj))
            case "yaml":
                click.echo(f"---\n{yaml_text(obj)}", nl=False)
            case "jsonpath":
                said = sanitize_lines(self._output.structured(self._root(obj)))
                click.echo(said, nl=not said.endswith("\n"))
            case _:
                click.echo(sanitize(self._rows.kind.title(obj["metadata"]["name"])))

    def _root(self, obj: Object) -> Object:
        """What the template begins at: each object, or a list of it for one that asks for items."""
        template = self._output.template
        asks_for_items = template is not None and template.begins_with("items")
        return {"apiVersion": "v1", "kind": "List", "items": [obj]} if asks_for_items else obj


async def show_all_edges(
    session: Session,
    meant: Sequence[tuple[ObjectSelection, str]],
    selector: LabelSelector | None,
    style: TableStyle,
    output: Output,
) -> bool:
    """Print what edges hold; whether all of the tree answered. Raises CallFailed."""
    whole = True
    placements = (await session.workloads.list(GROUP, "edgeplacements")).objects
    for one, where in meant:
        for name in one.names or ("",):
            wanted = CopiesWanted.of_kind(one.kind, where, name, selector)
            copied = brought_up(placements, *one.kind.group_resource) and not await _is_here(
                session, wanted
            )
            style.as_of = copied
            printer = CopyPrinter(session, one.kind, style, output)
            show = _show_copies if copied else _show_held
            answered = await show(session, wanted, printer)
            whole &= answered
            # Of those who did not answer nobody knows what they hold.
            if answered and not printer.printed and output.is_table:
                click.echo("No resources found", err=True)
    return whole


async def _is_here(session: Session, wanted: CopiesWanted) -> bool:
    """Whether the centre has such objects: then edges hold what it sent beside what is theirs."""
    listing = await session.workloads.list(
        wanted.group, wanted.resource, namespace=wanted.namespace, selector=wanted.selector
    )
    return any(wanted.name in ("", obj["metadata"]["name"]) for obj in listing.objects)


async def _show_copies(session: Session, wanted: CopiesWanted, printer: CopyPrinter) -> bool:
    """Print what lies at edges' parents; whether all of them answered."""
    try:
        async for copy in copies_of_tree(session, wanted):
            await printer.put(as_shown(copy, edge=True))
    except Unreached as error:
        await printer.flush()
        click.echo(f"Error: {sanitize(str(error))}", err=True)
        return False
    await printer.flush()
    return True


async def _show_held(session: Session, wanted: CopiesWanted, printer: CopyPrinter) -> bool:
    """Print what edges answer; whether all did that ever joined."""
    edges = await edges_of_tree(session)
    async for path, objects in objects_of_edges(session, edges, wanted):
        for obj in objects:
            await printer.put(with_edge(obj, path))
    await printer.flush()
    _tell(edges)
    return not edges.silent


def _tell(edges: Edges) -> None:
    """Tell how many answered, of how many, and who is missing."""
    answered = edges.count - len(edges.silent)
    joined = f"; {len(edges.never_joined)} never joined" if edges.never_joined else ""
    said = f"{answered} of {many(edges.count, 'edge')} answered{joined}"
    if not edges.silent:
        click.echo(said, err=True)
        return
    named = [f"{path} ({why})" for path, why in sorted(edges.silent.items())]
    click.echo(f"Error: {said}; not: {sanitize(some_of(named, NAMED_MAX))}", err=True)
