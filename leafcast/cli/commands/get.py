"""`leafcast get`: objects at the centre, or at one edge, in the formats that kubectl has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leafcast.ask.object_readers import EdgeReader, reader_of
from leafcast.ask.resource_names import BROUGHT_UP, ResourceKind
from leafcast.ask.session import Session
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    at_option,
    load_files,
    meant_by,
    objects_options,
    refusals,
)
from leafcast.cli.options.output import Output, output_options
from leafcast.cli.resource_arguments import (
    BadResourceArguments,
    ObjectSelection,
    found_objects,
    meant_objects,
)
from leafcast.cli.session_calls import in_session
from leafcast.cli.table_lookups import learn_columns, version_of, with_instances
from leafcast.show.object_formats import Format
from leafcast.show.object_output import (
    ObjectGroup,
    Rows,
    TableStyle,
    document,
    document_form,
    json_text,
    table_lines,
    yaml_text,
)
from leafcast.show.object_tables import runs_nothing_here
from leafcast.show.sanitize import sanitize, sanitize_lines
from schemas.objects.objects import DEFAULT_NAMESPACE
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import GROUP

if TYPE_CHECKING:
    from relay.space_port import Object, SpaceEvent
    from schemas.objects.manifest_files import LoadedObject

COPIES = "this is what it brought up"
NOT_HERE = (
    "Note: nothing runs at the centre; see: leafcast status PLACEMENT, "
    "or --at PATH for one edge's copy"
)


@dataclass(frozen=True, slots=True)
class GetRequest:
    """What a `get` asks for; `namespace` "" is all of them, None that none was named."""

    objects: tuple[str, ...]
    namespace: str | None
    selector: LabelSelector | None
    output: Output
    style: TableStyle
    at: str | None = None
    watch: bool = False
    ignore_not_found: bool = False
    loaded: tuple[LoadedObject, ...] = ()
    all_edges: bool = False
    kept: bool = False

    @property
    def format(self) -> Format:
        return self.output.format

    @property
    def where(self) -> str:
        """Where objects are looked for that do not say it themselves."""
        return DEFAULT_NAMESPACE if self.namespace is None else self.namespace

    def check(self, *, files: bool) -> None:
        """Refuse what does not go together; raises UsageError."""
        if self.watch and self.at is not None:
            raise click.UsageError("an edge's copy cannot be watched; leave out --watch or --at")
        if self.kept and self.at is None:
            raise click.UsageError(
                "--kept needs --at PATH; leafcast status PLACEMENT tells where copies are kept"
            )
        if self.all_edges and (self.watch or self.at is not None or files):
            raise click.UsageError(
                "--all-edges asks all edges once: leave out --watch, --at and -f"
            )
        everywhere = self.style.namespaces
        if files and (self.objects or self.watch or everywhere or self.selector is not None):
            raise click.UsageError(
                "files say which objects are meant: leave out names, -l, -A and -w"
            )


@click.command()
@objects_options("KIND[,KIND...] [NAME...] | KIND/NAME...")
@output_options
@click.option("-w", "--watch", is_flag=True, help="After listing, go on and show each change.")
@at_option
@click.option("--all-edges", is_flag=True, help="What all edges hold, or brought up, edge by edge.")
@click.option("--kept", is_flag=True, help="With --at, only what is kept and not wanted any more.")
@click.option("--show-labels", is_flag=True, help="Labels as the last column.")
@click.option("--ignore-not-found", is_flag=True, help="Exit code 0 if an object is not there.")
@data_dir_option
def get(
    *,
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    all_namespaces: bool,
    output: Output,
    show_labels: bool,
    data_dir: Path | None,
    **said: Any,
) -> None:
    """Show objects at the centre, at one edge, or at all of them.

    With --all-edges each edge is asked for what it holds, such as which image runs there; of a
    kind that only arises there and is brought up (`spec.upsync`) their parents are asked. Exit code
    1 if not all answered, who is then named. --at shows what an edge that is away brought up, and
    as of when.

    Kinds go by their names, plurals and short names: deploy, svc, cm, ns, epl (EdgePlacement),
    loc (Location), synctargets, and those of custom kinds that were applied.
    """
    style = TableStyle(output.is_wide, all_namespaces, show_labels, output.headers)
    style.edges = said["all_edges"]
    where = "" if all_namespaces else namespace
    asked = GetRequest(namespace=where, output=output, style=style, **said)
    asked.check(files=bool(files))
    with refusals():
        loaded = tuple(load_files(files, recursive=recursive)) if files else ()
        asked = replace(asked, loaded=loaded)
        missing = in_session(data_dir, lambda session: show(session, asked))
    if missing and not asked.ignore_not_found:
        raise click.exceptions.Exit(1)


async def show(session: Session, asked: GetRequest) -> int:
    """Print what is asked for; how many named objects are not there."""
    meant = await _meant(session, asked)
    if asked.all_edges:
        from leafcast.cli.edge_copies import show_all_edges  # noqa: PLC0415 - only here

        found = (asked.selector, asked.style, asked.output)
        return 0 if await show_all_edges(session, meant, *found) else 1
    groups, missing = await _read(session, asked, meant)
    if asked.output.is_table:
        shown = ((group.kind, version_of(group.objects[0])) for group in groups)
        await learn_columns(session, asked.style, shown, asked.at)
    if asked.at is None and asked.output.is_table:
        groups = [await with_instances(session.inventory, group) for group in groups]
    if not asked.watch:
        _print(session, asked, groups, single=_is_single(meant))
        _tell_where_it_runs(asked, groups)
        if not groups and not missing and asked.format in ("table", "wide", "name"):
            click.echo(_nothing(asked, meant), err=True)
            await _tell_where_it_arises(session, asked, meant)
    elif not missing:
        await _watch(session, asked, meant[0][0], groups)
    return missing


async def _meant(session: Session, asked: GetRequest) -> list[tuple[ObjectSelection, str]]:
    """Kinds, names and namespaces; raises BadResourceArguments, BadManifests, UnknownKind."""
    if asked.loaded:
        return await meant_by(session, asked.loaded, asked.namespace)
    at_edges = asked.all_edges or asked.at is not None
    meant = await meant_objects(session, asked.objects, unknown=at_edges)
    named = any(one.names for one in meant)
    if named and asked.selector is not None:
        raise BadResourceArguments("a name and a selector are given; leave out one of them")
    if named and not asked.where and not asked.all_edges:
        raise BadResourceArguments(
            "a resource cannot be retrieved by name across all namespaces; use -n"
        )
    if asked.watch and len(meant) > 1:
        raise BadResourceArguments("only one kind can be watched at a time; name one")
    return [(one, asked.where) for one in meant]


async def _read(
    session: Session, asked: GetRequest, meant: Sequence[tuple[ObjectSelection, str]]
) -> tuple[list[ObjectGroup], int]:
    """The objects found, kinds without any left out; what is not there is told on stderr."""
    reader = reader_of(session, asked.at, kept=asked.kept)
    listed, missing = await found_objects(
        reader, meant, asked.selector, is_quiet=asked.ignore_not_found
    )
    found: dict[ResourceKind, list[Object]] = {}
    for kind, obj in listed:
        found.setdefault(kind, []).append(obj)
    if isinstance(reader, EdgeReader) and reader.away:
        asked.style.as_of = True
        click.echo(f"Note: {sanitize(reader.away[0].message)}; {COPIES}", err=True)
    return list(starmap(ObjectGroup, found.items())), missing


def _print(
    session: Session, asked: GetRequest, groups: Sequence[ObjectGroup], *, single: bool
) -> None:
    objects = [obj for group in groups for obj in group.objects]
    if asked.format in ("yaml", "json"):
        if objects or not single:
            click.echo(document(objects, asked.format, single=single), nl=False)
    elif asked.format == "jsonpath":
        if objects or not single:
            shown = document_form(objects, single=single)
            click.echo(sanitize_lines(asked.output.structured(shown)), nl=False)
    elif asked.format == "name":
        for group in groups:
            for obj in group.objects:
                click.echo(sanitize(group.kind.title(obj["metadata"]["name"])))
    else:
        for line in table_lines(groups, asked.style, session.clock.now().wall_ms):
            click.echo(sanitize(line))


def _tell_where_it_runs(asked: GetRequest, groups: Sequence[ObjectGroup]) -> None:
    """One line if the table shows what lies still here, and would run elsewhere."""
    still = any(
        runs_nothing_here(group.kind.group, group.kind.resource, obj)
        for group in groups
        for obj in group.objects
    )
    if still and asked.at is None and asked.format in ("table", "wide"):
        click.echo(NOT_HERE, err=True)


async def _tell_where_it_arises(
    session: Session, asked: GetRequest, meant: Sequence[tuple[ObjectSelection, str]]
) -> None:
    """One line if edges bring up what the centre has none of."""
    if asked.at is not None:
        return
    # Here, as only who found nothing may have to look elsewhere.
    from leafcast.ask.edges import brought_up  # noqa: PLC0415

    placements = (await session.workloads.list(GROUP, "edgeplacements")).objects
    for one, _ in meant:
        if brought_up(placements, one.kind.group, one.kind.resource):
            click.echo(f"Note: {one.kind.qualified}: {BROUGHT_UP}", err=True)


def _is_single(meant: Sequence[tuple[ObjectSelection, str]]) -> bool:
    return len(meant) == 1 and len(meant[0][0].names) == 1


def _nothing(asked: GetRequest, meant: Sequence[tuple[ObjectSelection, str]]) -> str:
    if asked.where and any(one.kind.namespaced for one, _ in meant):
        return f"No resources found in {asked.where} namespace."
    return "No resources found"


async def _watch(
    session: Session, asked: GetRequest, one: ObjectSelection, groups: Sequence[ObjectGroup]
) -> None:
    """Show the objects, then each change, until a signal."""
    from relay.space_port import Interest, Interests  # noqa: PLC0415 - only who watches

    rows = Rows(one.kind, asked.style)
    for group in groups:
        if asked.format in ("table", "wide"):
            for line in rows.lines(group.objects, session.clock.now().wall_ms):
                click.echo(sanitize(line))
        else:
            for obj in group.objects:
                _print_change(asked, rows, obj, 0)
    watch = _Watch(session, asked, rows)
    watch.versions = {_uid(obj): _version(obj) for group in groups for obj in group.objects}
    interest = Interest(one.kind.group, one.kind.resource)
    space = session.space_for(one.kind.key("", ""))
    await space.follow(Interests([interest]), partial(watch.tell, one))


@dataclass(slots=True)
class _Watch:
    """Prints what is new of the objects that are asked for; `versions` were shown, by uid."""

    session: Session
    asked: GetRequest
    rows: Rows
    versions: dict[str, str] = field(default_factory=dict)

    async def tell(self, one: ObjectSelection, event: SpaceEvent) -> None:
        from relay.space_port import ObjectChange, ObjectsListed  # noqa: PLC0415 - only who watches

        match event:
            case ObjectsListed(_, objects):
                found = list(objects.values())
            case ObjectChange("deleted", _, obj):
                self.versions.pop(_uid(obj), None)
                found = [obj]
            case ObjectChange(_, _, obj):
                found = [obj]
            case _:
                return
        for obj in found:
            if _concerns(self.asked, one, obj) and self.versions.get(_uid(obj)) != _version(obj):
                self.versions[_uid(obj)] = _version(obj)
                shown: Mapping[str, Any] = obj
                if self.asked.format in ("table", "wide"):
                    counted = await with_instances(
                        self.session.inventory, ObjectGroup(one.kind, [obj])
                    )
                    (shown,) = counted.objects
                _print_change(self.asked, self.rows, shown, self.session.clock.now().wall_ms)


def _uid(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("uid"))


def _version(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"].get("resourceVersion"))


def _concerns(asked: GetRequest, one: ObjectSelection, obj: Object) -> bool:
    metadata = obj["metadata"]
    return (
        (not one.kind.namespaced or asked.where in ("", metadata.get("namespace")))
        and (not one.names or metadata["name"] in one.names)
        and (asked.selector is None or asked.selector.matches(metadata.get("labels") or {}))
    )


def _print_change(asked: GetRequest, rows: Rows, obj: Mapping[str, Any], now_ms: int) -> None:
    match asked.format:
        case "yaml":
            click.echo(f"---\n{yaml_text(obj)}", nl=False)
        case "json":
            click.echo(json_text(obj), nl=False)
        case "name":
            click.echo(sanitize(rows.kind.title(obj["metadata"]["name"])))
        case "jsonpath":
            click.echo(sanitize_lines(asked.output.structured(obj)))
        case _:
            for line in rows.lines([obj], now_ms):
                click.echo(sanitize(line))
