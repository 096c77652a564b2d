"""The kinds that an API server serves, kept as last told, and those who wait for them to change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes.api_client import ApiClient
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Kind
from relay.waiting import some_at_once
from schemas.values.fields import list_at, mapping_at, mappings_at

ASK_AGAIN_SECONDS = 1.0
"""A kind that is not known is asked for again, but not more often than this."""
PLAIN_AT_ONCE = 8


class Discovery:
    """What is served; a group whose server does not answer stays as it was when it last did."""

    def __init__(self, api: ApiClient, clock: Clock) -> None:
        self.kinds: tuple[Kind, ...] = ()
        self.known = False
        self.failure: SpaceError | None = None
        """Why nothing could be learnt the last time; None if it could."""
        self.moved = asyncio.Event()
        """Set, and replaced by another, once `kinds`, `known` or `failure` changed, or which
        groups do not answer."""
        self.due = asyncio.Event()
        """Set by whoever saw a sign that the kinds are others now."""
        self._api = api
        self._clock = clock
        self._parts: dict[tuple[str, str], GroupVersion] = {}
        self._resources: dict[tuple[str, str], Kind] = {}
        # The version to read a kind in, where another one than the preferred is readable.
        self._read_as: dict[tuple[str, str], str] = {}
        self._types: dict[tuple[str, str, str], ServedResource] = {}
        self._asked = float("-inf")
        self._refreshing = asyncio.Lock()

    async def refresh(self) -> None:
        """Ask the server; raises SpaceError, and keeps what was known, if it does not tell."""
        begun = self._clock.now().seconds
        async with self._refreshing:
            if self._asked > begun:
                return
            asked = self._clock.now().seconds
            try:
                found = [part async for part in self._told()]
            except SpaceError as error:
                failure, self.failure = self.failure, error
                if failure is None or failure.message != error.message:
                    self._move()
                raise
            self._asked = asked
            self._take(found)

    def resource(self, group: str, resource: str) -> Kind | None:
        """A kind as last told, by its plural, in the version to read; None if it was not served."""
        found = self._resources.get((group, resource))
        version = self._read_as.get((group, resource))
        if found is None or version not in found.versions:
            return found
        return replace(found, version=version)

    def preferred(self, kind: Kind) -> Kind:
        """A kind in the version that the server prefers."""
        return self._resources.get(kind.group_resource, kind)

    def read_as(self, kind: Kind) -> None:
        """Read a kind in this version from now on."""
        self._read_as[kind.group_resource] = kind.version

    def status_apart(self, kind: Kind) -> bool:
        """Whether the status of its objects is written on its own."""
        found = self._types.get((kind.group, kind.version, kind.kind))
        return found is not None and found.has_status

    async def find(self, group: str, resource: str) -> Kind | None:
        """A kind by its plural; asks the server if it is not known.

        Raises SpaceError if the server could not tell what its group holds.
        """
        if (group, resource) not in self._resources:
            await self._ask_again()
        found = self.resource(group, resource)
        if found is None:
            self.check_groups(group)
        return found

    async def find_type(self, group: str, version: str, kind: str) -> Kind | None:
        """A kind as an object names it, in that version; asks the server if it is not known."""
        if (group, version, kind) not in self._types:
            await self._ask_again()
        found = self._types.get((group, version, kind))
        if found is None:
            self.check_groups(group)
            return None
        return found.kind

    def check_groups(self, only: str | None = None) -> None:
        """Raise SpaceError if the server could not tell what a group holds; of any, or of one."""
        for part in self._parts.values():
            if part.served is None and only in (None, part.group):
                said = f"the server of the group {part.group} does not answer"
                raise SpaceError(refusals.UNAVAILABLE, f"{said}: see kubectl get apiservices")

    async def all(self) -> tuple[Kind, ...]:
        """All kinds that can be read."""
        if not self.known:
            await self.refresh()
        return self.kinds

    async def _ask_again(self) -> None:
        if self._clock.now().seconds - self._asked >= ASK_AGAIN_SECONDS:
            await self.refresh()

    def _take(self, found: list[GroupVersion]) -> None:
        parts = {}
        for part in found:
            name = (part.group, part.version)
            held = self._parts.get(name)
            parts[name] = held if part.served is None and held else part
        kinds = preferred(parts.values())
        silent = {name for name, part in parts.items() if part.served is None}
        moved = kinds != self.kinds or not self.known or self.failure is not None
        moved |= silent != {name for name, part in self._parts.items() if part.served is None}
        self.kinds, self.known, self.failure = kinds, True, None
        self._parts = parts
        self._resources = {kind.group_resource: kind for kind in kinds}
        self._types = {
            (served.kind.group, served.kind.version, served.kind.kind): served
            for part in parts.values()
            for served in part.served or ()
        }
        if moved:
            self._move()

    def _move(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()

    async def _told(self) -> AsyncIterator[GroupVersion]:
        for path in ("/api", "/apis"):
            answer = await self._api.request("GET", path, accept=paths.DISCOVERY)
            document = answers.mapping(answer)
            if document.get("kind") == AGGREGATED:
                for part in aggregated(document):
                    yield part
                continue
            named = list(groups(document))
            for part in await self._plain(named):
                yield part

    async def _plain(self, named: list[tuple[str, str]]) -> list[GroupVersion]:
        """Each version asked on its own, as servers older than 1.26 need it."""

        async def one(name: tuple[str, str]) -> GroupVersion:
            try:
                document = answers.mapping(
                    await self._api.request("GET", paths.version_path(*name))
                )
            except SpaceError:
                # The server behind this group may be down: that hides no other group.
                return GroupVersion(*name, None)
            return resources(*name, document)

        return await some_at_once(named, one, PLAIN_AT_ONCE)


AGGREGATED = "APIGroupDiscoveryList"
_NEEDED = frozenset(("get", "list"))


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource as one version of its group serves it."""

    kind: Kind
    has_status: bool


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """A version of a group: `served` is None if the server could not tell what is in it."""

    group: str
    version: str
    served: tuple[ServedResource, ...] | None


def aggregated(document: Mapping[str, Any]) -> Iterator[GroupVersion]:
    """Read an APIGroupDiscoveryList; versions come in the server's order of preference."""
    for item in mappings_at(document, "items"):
        group = str(mapping_at(item, "metadata").get("name") or "")
        for form in mappings_at(item, "versions"):
            version = str(form.get("version") or "")
            served = tuple(_aggregated_resources(group, version, form))
            stale = form.get("freshness") == "Stale"
            yield GroupVersion(group, version, None if stale and not served else served)


def groups(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Read an APIGroupList, or an APIVersions: each group's versions, the preferred one first."""
    for version in list_at(document, "versions"):
        yield "", str(version)
    for item in mappings_at(document, "groups"):
        preferred = mapping_at(item, "preferredVersion").get("version")
        named = [str(form.get("version") or "") for form in mappings_at(item, "versions")]
        for version in sorted(named, key=lambda version: version != preferred):
            yield str(item.get("name") or ""), version


def resources(group: str, version: str, document: Mapping[str, Any]) -> GroupVersion:
    """Read an APIResourceList."""
    items = mappings_at(document, "resources")
    names = {str(item.get("name")) for item in items}
    served = tuple(
        ServedResource(_kind(group, version, name, item, has_status=has), has)
        for item in items
        if "/" not in (name := str(item.get("name")))
        for has in (f"{name}/status" in names,)
    )
    return GroupVersion(group, version, served)


def preferred(found: Iterable[GroupVersion]) -> tuple[Kind, ...]:
    """Each kind that can be read, once, sorted, with all versions that serve it."""
    kinds: dict[tuple[str, str], Kind] = {}
    versions: dict[tuple[str, str], list[str]] = {}
    for part in found:
        for served in part.served or ():
            if served.kind.verbs >= _NEEDED:
                key = served.kind.group_resource
                kinds.setdefault(key, served.kind)
                versions.setdefault(key, []).append(part.version)
    return tuple(replace(kinds[key], versions=tuple(versions[key])) for key in sorted(kinds))


def _aggregated_resources(
    group: str, version: str, form: Mapping[str, Any]
) -> Iterator[ServedResource]:
    for item in mappings_at(form, "resources"):
        name = str(item.get("resource") or "")
        kind = mapping_at(item, "responseKind").get("kind")
        if not name or not isinstance(kind, str) or not kind:
            continue
        parts = [part.get("subresource") for part in mappings_at(item, "subresources")]
        said = {**item, "kind": kind, "namespaced": item.get("scope") == "Namespaced"}
        has_status = "status" in parts
        yield ServedResource(_kind(group, version, name, said, has_status=has_status), has_status)


def _kind(
    group: str, version: str, resource: str, item: Mapping[str, Any], *, has_status: bool
) -> Kind:
    return Kind(
        group=group,
        version=version,
        resource=resource,
        kind=str(item.get("kind") or ""),
        namespaced=bool(item.get("namespaced")),
        verbs=frozenset(verb for verb in list_at(item, "verbs") if isinstance(verb, str)),
        has_status=has_status,
    )
