"""The verb `space`: what commands read in the centre's spaces, read by the daemon."""

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

        `what` is identity, list or get, with the arguments that relay.ports.Space has.
        """
        if name not in spaces:
            raise ApiError("Invalid", f"there is no space {name!r}", f"name {', '.join(spaces)}")
        try:
            return {"value": await _read(spaces[name], what, arguments)}
        except SpaceError as error:
            return {"refused": refusal_form(error)}

    api.register(VERB, space)


async def _read(space: Space, what: str, arguments: Json) -> Any:
    match what, arguments:
        case "identity", {}:
            return await space.identity()
        case "list", {"group": str(group), "resource": str(resource), "namespace": str(namespace)}:
            form = arguments.get("selector")
            selector = LabelSelector.from_kubernetes(form) if form is not None else None
            listing = await space.list(group, resource, namespace=namespace, selector=selector)
            return {"objects": listing.objects, "revision": listing.revision}
        case "get", {"key": [str(group), str(resource), str(namespace), str(name)]}:
            return await space.get(ObjectKey(group, resource, namespace, name))
        case _:
            remedy = "ask for identity, list or get, with their arguments"
            raise ApiError("Invalid", f"{what!r} reads nothing in a space", remedy)
