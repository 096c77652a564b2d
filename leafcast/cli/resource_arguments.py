"""What arguments mean: `deploy web`, `deploy,svc`, `deploy/web svc/web`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from leafcast.ask.resource_names import ResourceKind, ResourceKinds, UnknownKind
from leafcast.ask.session import Session
from schemas.objects import CRD_GROUP

T = TypeVar("T")


class BadArguments(ValueError):
    """Arguments that name no objects in any form; says how to name them."""


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """Objects of one kind: the ones named, or all of them if `names` is empty."""

    kind: ResourceKind
    names: tuple[str, ...] = ()


def read_arguments(
    kinds: ResourceKinds, arguments: Sequence[str], *, unknown: bool = False
) -> list[ObjectSelection]:
    """What the arguments mean, in their order; raises BadArguments, UnknownKind.

    With `unknown` there may be kinds that only edges know: they are named as PLURAL.GROUP.
    """
    if not arguments:
        raise BadArguments("name a kind, such as deployments, or an object, as in deployment/web")
    if not any("/" in argument for argument in arguments):
        names = tuple(dict.fromkeys(arguments[1:]))
        return [
            ObjectSelection(kind, names) for kind in kinds.resolve_all(arguments[0], guess=unknown)
        ]
    found: dict[ResourceKind, list[str]] = {}
    for argument in arguments:
        word, slash, name = argument.partition("/")
        if not (word and slash and name) or "/" in name:
            said = f'"{argument}" is not KIND/NAME, as other arguments are'
            raise BadArguments(f"{said}; write all of them so, or KIND NAME...")
        found.setdefault(kinds.resolve(word, guess=unknown), []).append(name)
    return [ObjectSelection(kind, tuple(dict.fromkeys(names))) for kind, names in found.items()]


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
