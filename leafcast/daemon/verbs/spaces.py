"""The verb `space`: what commands read and write in the centre's spaces, done by the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafcast.ask.api import Api, ApiError
from leafcast.ask.asked_space import VERB, refusal_form
from relay.ports import Space, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector

Json = dict[str, Any]


def register_spaces(api: Api, spaces: Mapping[str, Space]) -> None:
    """Answer the verb `space` about these, by name."""

    async def space(name: str, what: str, arguments: Json) -> Json:
        """`{value}`, or `{refused: {kind, reason, message, managers}}`.

        `what` is identity, list, get, apply, set_labels, replace or delete, with the arguments that
        relay.ports.Space has.
        """
        if name not in spaces:
            raise ApiError("Invalid", f"there is no space {name!r}", f"name {', '.join(spaces)}")
        try:
            return {"value": await _done(spaces[name], what, arguments)}
        except SpaceError as error:
            return {"refused": refusal_form(error)}

    api.register(VERB, space)


async def _done(space: Space, what: str, arguments: Json) -> Any:
    match what, arguments:
        case "identity", {}:
            return await space.identity()
        case "list", {"group": str(group), "resource": str(resource), "namespace": str(namespace)}:
            form = arguments.get("selector")
            selector = LabelSelector.from_kubernetes(form) if form is not None else None
            found = await space.list(group, resource, namespace=namespace, selector=selector)
            return {"objects": found.objects, "revision": found.revision}
        case "get", {"key": [*key]}:
            return await space.get(ObjectKey(*key))
        case "apply", {"obj": dict(obj), "manager": str(manager), **how}:
            return await space.apply(obj, manager, **_flags(how))
        case "set_labels", {"key": [*key], "labels": dict(labels), "manager": str(manager)}:
            return await space.set_labels(ObjectKey(*key), labels, manager)
        case "replace", {"obj": dict(obj), "manager": str(manager), "dry_run": bool(dry_run)}:
            return await space.replace(obj, manager, dry_run=dry_run)
        case "delete", {"key": [*key], "uid": str(uid)}:
            return await space.delete(ObjectKey(*key), uid)
        case _:
            raise ApiError("Invalid", f"{what!r} is nothing to do in a space", "ask otherwise")


def _flags(how: Mapping[str, Any]) -> dict[str, bool]:
    return {name: how.get(name) is True for name in ("create_only", "force", "dry_run")}
