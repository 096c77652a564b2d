"""A space of the centre's, read and written by its daemon: a command needs no client of its own.

What a question cannot hold is done without the daemon: what is followed, and what is too long.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from leafcast.ask.failures import CallFailed
from relay.space_errors import AnotherSpace, Conflict, FieldConflict, SpaceError

if TYPE_CHECKING:
    from relay.space_port import Interests, Kind, Labels, Listing, Object, Space, Tell
    from schemas.objects import ObjectKey
    from schemas.selectors import LabelSelector

VERB = "space"
SECONDS = 60.0
"""An API server may take long to admit an object."""
_ERRORS: Mapping[str, type[SpaceError]] = {
    kind.__name__: kind for kind in (SpaceError, Conflict, AnotherSpace)
}

_BEYOND_DAEMON = frozenset({"NotServed", "TooLarge", "UnknownVerb"})
"""What the daemon cannot do: an older one, one that is not up yet, what no message holds."""

Call = Callable[..., Awaitable[Any]]
"""Has the daemon do a verb; raises CallFailed."""


class _BeyondDaemon(Exception):
    """The daemon cannot do it for the command; nothing was done."""


class AskedSpace:
    """Implements relay.space_port.Space; `direct` opens the way past the daemon, by its name."""

    def __init__(self, call: Call, name: str, direct: Callable[[str], Awaitable[Space]]) -> None:
        self._call = call
        self._name = name
        self._open = direct

    async def _do(self, what: str, **arguments: Any) -> Any:
        """Have the daemon do one thing; raises SpaceError, or _BeyondDaemon."""
        asked = {"name": self._name, "what": what, "arguments": arguments}
        try:
            said = await self._call(VERB, seconds=SECONDS, **asked)
        except CallFailed as failed:
            if failed.code in _BEYOND_DAEMON:
                raise _BeyondDaemon from failed
            raise SpaceError(failed.code, str(failed)) from failed
        if "refused" in said:
            raise _refusal_of(said["refused"])
        return said["value"]

    async def _direct(self) -> Space:
        return await self._open(self._name)

    async def identity(self) -> str:
        try:
            return str(await self._do("identity"))
        except _BeyondDaemon:
            return await (await self._direct()).identity()

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        return await (await self._direct()).kinds(complete=complete)

    async def follow(self, interests: Interests, tell: Tell) -> None:
        await (await self._direct()).follow(interests, tell)

    async def revision(self) -> str:
        return await (await self._direct()).revision()

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        from relay.space_port import Listing  # noqa: PLC0415 - many commands list nothing

        try:
            found = await self._do(
                "list",
                group=group,
                resource=resource,
                namespace=namespace,
                selector=selector.to_kubernetes() if selector is not None else None,
            )
        except _BeyondDaemon:
            space = await self._direct()
            return await space.list(group, resource, namespace=namespace, selector=selector)
        return Listing(tuple(found["objects"]), found["revision"])

    async def get(self, key: ObjectKey) -> Object | None:
        try:
            found: Object | None = await self._do("get", key=_named(key))
        except _BeyondDaemon:
            return await (await self._direct()).get(key)
        return found

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        # Here, as who only reads needs none of it.
        from schemas.codec import to_json  # noqa: PLC0415
        from schemas.refusals import CodecError  # noqa: PLC0415

        try:
            # A question holds what JSON has, and nothing else.
            to_json(obj)
        except CodecError as error:
            raise SpaceError("Invalid", str(error)) from error
        how = {"create_only": create_only, "force": force, "dry_run": dry_run}
        try:
            made: Object = await self._do("apply", obj=obj, manager=manager, **how)
        except _BeyondDaemon:
            return await (await self._direct()).apply(obj, manager, **how)
        return made

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        return await (await self._direct()).set_status(key, status)

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        await (await self._direct()).disown(key, uid, managers, marks)

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        said = {"key": _named(key), "labels": dict(labels), "manager": manager}
        try:
            made: Object = await self._do("set_labels", **said)
        except _BeyondDaemon:
            return await (await self._direct()).set_labels(key, labels, manager)
        return made

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        said = {"obj": obj, "manager": manager, "dry_run": dry_run}
        try:
            made: Object = await self._do("replace", **said)
        except _BeyondDaemon:
            return await (await self._direct()).replace(obj, manager, dry_run=dry_run)
        return made

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        try:
            return bool(await self._do("delete", key=_named(key), uid=uid))
        except _BeyondDaemon:
            return await (await self._direct()).delete(key, uid)

    async def close(self) -> None:
        """The session gives back what was opened."""


def _named(key: ObjectKey) -> list[str]:
    return [key.group, key.resource, key.namespace, key.name]


def refusal_form(error: SpaceError) -> dict[str, Any]:
    """An error of a space as the daemon tells it."""
    managers = dict(error.managers) if isinstance(error, FieldConflict) else None
    kind = next((name for name, one in _ERRORS.items() if type(error) is one), "SpaceError")
    kind = "Conflict" if isinstance(error, Conflict) else kind
    return {"kind": kind, "reason": error.reason, "message": error.message, "managers": managers}


def _refusal_of(form: Mapping[str, Any]) -> SpaceError:
    """The same error again."""
    reason, message, managers = form["reason"], form["message"], form.get("managers")
    if managers is not None:
        return FieldConflict(reason, message, managers)
    return _ERRORS.get(form["kind"], SpaceError)(reason, message)
