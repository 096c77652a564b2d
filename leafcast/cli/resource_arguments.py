"""What arguments mean: `deploy web`, `deploy,svc`, `deploy/web svc/web`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from leafcast.ask.node_names import did_you_mean, named_nodes, targets_meant
from leafcast.ask.object_readers import NotFound, Reader
from leafcast.ask.resource_names import ResourceKind, ResourceKinds, UnknownKind
from leafcast.ask.session import Session
from schemas.objects.objects import CRD_GROUP
from schemas.objects.selectors import LabelSelector
from schemas.values.groups import GROUP

if TYPE_CHECKING:
    from relay.space_port import Object

T = TypeVar("T")
_OF_NODES = frozenset({(GROUP, "synctargets"), (GROUP, "locations")})


class BadResourceArguments(ValueError):
    """Arguments that name no objects in any form; says how to name them."""


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """Objects of one kind: the ones named, or all of them if `names` is empty."""

    kind: ResourceKind
    names: tuple[str, ...] = ()


def read_arguments(
    kinds: ResourceKinds, arguments: Sequence[str], *, unknown: bool = False
) -> list[ObjectSelection]:
    """What the arguments mean, in their order; raises BadResourceArguments, UnknownKind.

    With `unknown` there may be kinds that only edges know: they are named as PLURAL.GROUP.
    """
    if not arguments:
        raise BadResourceArguments(
            "name a kind, such as deployments, or an object, as in deployment/web"
        )
    paths = any(argument.startswith("/") for argument in arguments[1:])
    if not any("/" in argument for argument in arguments) or (paths and "/" not in arguments[0]):
        names = tuple(dict.fromkeys(arguments[1:]))
        listed = kinds.resolve_all(arguments[0], guess=unknown)
        for kind in listed if paths else ():
            _check_paths(kind, names)
        return [ObjectSelection(kind, names) for kind in listed]
    found: dict[ResourceKind, list[str]] = {}
    for argument in arguments:
        word, slash, name = argument.partition("/")
        is_path = name.startswith("/") and bool(name.strip("/"))
        if not (word and slash and name) or ("/" in name and not is_path):
            said = f'"{argument}" is not KIND/NAME, as other arguments are'
            raise BadResourceArguments(f"{said}; write all of them so, or KIND NAME...")
        kind = kinds.resolve(word, guess=unknown)
        _check_paths(kind, (name,))
        found.setdefault(kind, []).append(name)
    return [ObjectSelection(kind, tuple(dict.fromkeys(names))) for kind, names in found.items()]


async def meant_objects(
    session: Session, arguments: Sequence[str], *, unknown: bool = False
) -> list[ObjectSelection]:
    """What the arguments mean; SyncTargets and Locations may go by the paths of their nodes.

    Raises what `read_arguments` does, CallFailed and SpaceError.
    """
    try:
        # Words of Kubernetes and of ours mean the same whatever is defined beside: nobody is asked.
        found = read_arguments(ResourceKinds(), arguments)
    except UnknownKind:
        found = await with_kinds(
            session, lambda kinds: read_arguments(kinds, arguments, unknown=unknown)
        )
    paths = [name for one in found for name in one.names if name.startswith("/")]
    if not paths:
        return found
    nodes = await named_nodes(session)
    targets = targets_meant(paths, nodes)
    for path in paths:
        if path not in targets:
            hint = did_you_mean(path, nodes) or "leafcast node list shows the nodes there are"
            raise BadResourceArguments(f"no destination hangs at {path}; {hint}")
    return [
        ObjectSelection(one.kind, tuple(targets.get(name, name) for name in one.names))
        for one in found
    ]


async def found_objects(
    reader: Reader,
    meant: Iterable[tuple[ObjectSelection, str]],
    selector: LabelSelector | None,
    *,
    is_quiet: bool = False,
    begins: bool = False,
) -> tuple[list[tuple[ResourceKind, Object]], int]:
    """The objects meant, each in its namespace, and how many that are named are not there.

    Of these it is told, unless it `is_quiet`. What `begins` with a name is meant where nothing has
    that name.
    """
    found: list[tuple[ResourceKind, Object]] = []
    missing = 0
    for selection, namespace in meant:
        kind = selection.kind
        if not selection.names:
            listed = await reader.all_of(kind, namespace, selector)
            found += [(kind, obj) for obj in listed]
        for name in selection.names:
            try:
                found.append((kind, await reader.get(kind, namespace, name)))
            except NotFound as error:
                listed = await reader.all_of(kind, namespace, None) if begins else ()
                alike = [it for it in listed if it["metadata"]["name"].startswith(name)]
                found += [(kind, obj) for obj in alike]
                if not alike:
                    missing += 1
                if not (alike or is_quiet):
                    click.echo(str(error), err=True)
    return found, missing


def _check_paths(kind: ResourceKind, names: Iterable[str]) -> None:
    """Refuse paths as names of what hangs nowhere; raises BadResourceArguments."""
    if kind.group_resource in _OF_NODES:
        return
    for name in names:
        if name.startswith("/"):
            said = f'"{name}" is a path, and no name of a {kind.kind}'
            raise BadResourceArguments(f"{said}; what lies at an edge is read with --at {name}")


async def with_kinds(session: Session, read: Callable[[ResourceKinds], T]) -> T:
    """Read something with the kinds that Kubernetes and the definitions in the space tell of.

    If that does not do, with those of all objects in the space too. Raises what `read` raises.
    """
    definitions = await session.workloads.list(CRD_GROUP, "customresourcedefinitions")
    try:
        return read(ResourceKinds(definitions.objects))
    except UnknownKind:
        everything = await session.workloads.list()
        return read(ResourceKinds(everything.objects))
