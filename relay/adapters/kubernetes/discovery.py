"""The kinds that an API server serves, kept as last told, and those who wait for them to change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes import discovery_documents as documents
from relay.adapters.kubernetes.api_client import ApiClient
from relay.adapters.kubernetes.discovery_documents import GroupVersion, ServedResource
from relay.ports import Clock, Kind, SpaceError

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
        kinds = documents.preferred(parts.values())
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
            if document.get("kind") == documents.AGGREGATED:
                for part in documents.aggregated(document):
                    yield part
                continue
            named = list(documents.groups(document))
            for part in await self._plain(named):
                yield part

    async def _plain(self, named: list[tuple[str, str]]) -> list[GroupVersion]:
        """Each version asked on its own, as servers older than 1.26 need it."""
        at_once = asyncio.Semaphore(PLAIN_AT_ONCE)

        async def one(group: str, version: str) -> GroupVersion:
            async with at_once:
                try:
                    answer = await self._api.request("GET", paths.version_path(group, version))
                    document = answers.mapping(answer)
                except SpaceError:
                    # The server behind this group may be down: that hides no other group.
                    return GroupVersion(group, version, None)
            return documents.resources(group, version, document)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*name)) for name in named]
        return [task.result() for task in tasks]
