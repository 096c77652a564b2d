"""The version in which a kind is stored: it can be read where a webhook that converts fails.

A server makes each other version of a stored object, and if that fails no list shows any object
of the kind; a watch of such a version just stands still, open and without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes.api_client import ApiClient, Pairs
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Kind
from schemas.objects.objects import CRD_GROUP
from schemas.objects.source_objects import number_of
from schemas.values.fields import list_at, mapping_at, mappings_at

SILENT_SECONDS_MAX = 1.0
"""How much later a watch may tell what a watch of the stored version has told."""
_DEFINITIONS = Kind(CRD_GROUP, "v1", "customresourcedefinitions", "", namespaced=False)


class StandsStill(SpaceError):
    """A watch does not tell what there is."""


async def other_versions(api: ApiClient, kind: Kind) -> tuple[tuple[Kind, ...], bool]:
    """The kind in the versions in which it may be readable if it is not in this one.

    Also whether a webhook makes versions of each other, as far as that is known. Where definitions
    cannot be read any version may do.
    """
    if len(kind.versions) < 2:
        return (), False
    name = f"{kind.resource}.{kind.group}"
    try:
        answer = await api.request("GET", paths.object_path(_DEFINITIONS, "", name))
        versions = stored_versions(answers.mapping(answer))
        is_converted = bool(versions)
    except SpaceError as error:
        # Built-in kinds have none.
        versions = () if error.reason == refusals.NOT_FOUND else kind.versions
        is_converted = False
    others = (version for version in versions if version != kind.version)
    return tuple(replace(kind, version=version) for version in others), is_converted


def stored_versions(definition: Mapping[str, Any]) -> tuple[str, ...]:
    """The versions in which objects are stored, if a webhook makes the others of them.

    Only those that are served; first the one in which what is written now is stored.
    """
    if mapping_at(definition, "spec", "conversion").get("strategy") != "Webhook":
        return ()
    forms = mappings_at(definition, "spec", "versions")
    now = [str(form.get("name")) for form in forms if form.get("storage")]
    served = {str(form.get("name")) for form in forms if form.get("served")}
    former = [str(version) for version in list_at(definition, "status", "storedVersions")]
    return tuple(version for version in dict.fromkeys([*now, *former]) if version in served)


class WatchGuard:
    """Sees by a watch of another version whether a watch tells what there is.

    Each may stand still: in which version objects are stored may change at any time.
    """

    def __init__(self, api: ApiClient, clock: Clock, kind: Kind) -> None:
        self._api = api
        self._clock = clock
        self._kind = kind
        self.told = 0
        """The number of the revision up to which the other watch told everything."""

    async def watch(self, namespace: str, query: Pairs) -> None:
        """Ends with its watch; raises StandsStill once the other one does."""
        path = paths.collection_path(self._kind, namespace)
        try:
            async with self._api.stream(path, query, accept=paths.METADATA) as events:
                async for answer in events:
                    await self._compare(answers.event_of(answer))
        except StandsStill:
            raise
        except SpaceError:
            # Nothing follows of what is not told here.
            return

    async def _compare(self, event: answers.WatchAnswer) -> None:
        number = number_of(event.revision)
        if event.change is None or number <= self.told:
            return
        await self._clock.sleep(SILENT_SECONDS_MAX)
        if number > self.told:
            said = f"{self._kind.resource}.{self._kind.group} are not converted"
            raise StandsStill(refusals.UNAVAILABLE, said)
