"""`leafcast describe`: objects told at length, at the centre or at one edge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from leafcast.ask.asked_space import key_form
from leafcast.ask.object_readers import Reader, reader_of
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import SELECTION_OBJECTS_MAX, CallFailed, Session
from leafcast.cli.options.common import data_dir_option
from leafcast.cli.options.objects import (
    at_option,
    load_files,
    meant_by,
    objects_options,
    refusals,
)
from leafcast.cli.resource_arguments import ObjectSelection, found_objects, meant_objects
from leafcast.cli.session_calls import in_session
from leafcast.show.description import described
from leafcast.show.object_events import events_about, events_text
from leafcast.show.sanitize import sanitize_lines
from relay.adapters.clock import SystemClock
from relay.space_errors import SpaceError
from relay.space_port import Object
from schemas.objects.objects import DEFAULT_NAMESPACE, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import CONTROL_GROUPS

WITH_EVENTS_MAX = 5
_EVENTS = ResourceKind("", "events", "Event", namespaced=True)


@click.command()
@objects_options("KIND [NAME...] | KIND/NAME...")
@at_option
@data_dir_option
def describe(  # noqa: PLR0913 - click passes options by name
    *,
    objects: tuple[str, ...],
    files: Sequence[str],
    recursive: bool,
    namespace: str | None,
    all_namespaces: bool,
    selector: LabelSelector | None,
    at: str | None,
    data_dir: Path | None,
) -> None:
    """Show objects in detail: the ones named, or all of a kind. The start of a name will do.

    With --at they end with what the events of that cluster say of them.
    """
    if files and (objects or all_namespaces or selector is not None):
        raise click.UsageError("files say which objects are meant: leave out names, -l and -A")
    where = "" if all_namespaces else namespace or DEFAULT_NAMESPACE

    async def work(session: Session) -> int:
        if files:
            loaded = load_files(files, recursive=recursive)
            return await tell(session, await meant_by(session, loaded, namespace), selector, at)
        meant = await meant_objects(session, objects)
        return await tell(session, [(one, where) for one in meant], selector, at)

    with refusals():
        missing = in_session(data_dir, work)
    if missing:
        raise click.exceptions.Exit(1)


async def tell(
    session: Session,
    meant: Sequence[tuple[ObjectSelection, str]],
    selector: LabelSelector | None,
    at: str | None,
) -> int:
    """Print what is meant, each in its namespace, "" being all; how many named are not there."""
    reader = reader_of(session, at)
    found, missing = await found_objects(reader, meant, selector, begins=True)
    carried = await carrying(session, found) if at is None else {}
    told = [described(obj, carried.get(_key(kind, obj))) for kind, obj in found]
    if at is not None:
        told = await _with_events(reader, [obj for _, obj in found], told)
    click.echo(sanitize_lines("\n\n".join(told)), nl=False)
    if not found and not missing:
        within = {namespace for one, namespace in meant if one.kind.namespaced and namespace}
        where = "".join(f" in {namespace} namespace." for namespace in within)
        click.echo(f"No resources found{where}", err=True)
    return missing


async def _with_events(reader: Reader, found: Sequence[Object], told: Sequence[str]) -> list[str]:
    """The descriptions, each with what the cluster's events say of the object.

    Of many objects they are not asked for.
    """
    if len(found) > WITH_EVENTS_MAX:
        return [*told]
    now_ms, by_namespace, said = SystemClock().now().wall_ms, dict[str, Sequence[Object]](), []
    for obj, text in zip(found, told, strict=True):
        # Those of what is in no namespace are in the default one.
        namespace = obj["metadata"].get("namespace") or DEFAULT_NAMESPACE
        if namespace not in by_namespace:
            try:
                by_namespace[namespace] = await reader.all_of(_EVENTS, namespace, None)
            except (CallFailed, SpaceError) as error:
                click.echo(f"warning: its events cannot be read: {error}", err=True)
                return [*told]
        said.append(text + events_text(events_about(obj, by_namespace[namespace]), now_ms))
    return said


def _key(kind: ResourceKind, obj: Object) -> ObjectKey:
    return kind.key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


async def carrying(
    session: Session, found: Sequence[tuple[ResourceKind, Object]]
) -> dict[ObjectKey, list[str]]:
    """The placements that carry each object which could go out; says so if nobody knows it now."""
    keys = [_key(kind, obj) for kind, obj in found if kind.group not in CONTROL_GROUPS][
        :SELECTION_OBJECTS_MAX
    ]
    if not keys:
        return {}
    try:
        answer = await session.call("selection", objects=list(map(key_form, keys)))
    except CallFailed as failed:
        click.echo(f"warning: which placements carry this is not known now: {failed}", err=True)
        return {}
    return dict(zip(keys, answer["carried"], strict=True))
