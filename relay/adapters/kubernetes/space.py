"""A space on any API server: a cluster, or a workspace of kcp behind a path of its own.

Objects are what the server says, as JSON; it merges, validates and defaults. To import this module
takes 0.3 s and 23 MB, the library's client: import it where such a space is opened, nowhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes.api_client import ApiClient, Pairs
from relay.adapters.kubernetes.discovery import Discovery
from relay.adapters.kubernetes.follower import Follower
from relay.adapters.kubernetes.informer import InformerContext, list_pages, named
from relay.adapters.kubernetes.kubeconfig import InCluster, Kubeconfig
from relay.adapters.kubernetes.leases import KubernetesLeases
from relay.objects.nulls import refused_nulls, without_fields
from relay.objects.serving import NO_KIND
from relay.objects.stored_object import admit
from relay.ports import Clock, Dice
from relay.space_errors import AnotherSpace, Conflict, SpaceError, reason_suppressed
from relay.space_port import AsRead, Interests, Kind, Labels, Listing, Object, Tell
from relay.waiting import some_at_once
from schemas.objects.objects import DEFAULT_NAMESPACE, ObjectKey, group_of
from schemas.objects.selectors import LabelSelector
from schemas.objects.source_objects import number_of
from schemas.values.refusals import CodecError

LISTS_AT_ONCE = 4
NULLS_ROUNDS_MAX = 20
"""How often an apply is sent anew without nulls that were refused: a refusal names a few dozen."""
STATUS_MANAGER = "leafcast"
NO_VERSION = "1"
"""No object has it: etcd counts it before its first write. Held to it, an apply only creates."""
_NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
_IDENTIFYING = "kube-system"
_LOST = (
    f"the API server has lost the namespace {_IDENTIFYING}, by which it is known, and perhaps all "
    "that it stored: restore it, or join the cluster anew"
)
# The server makes these, and refuses or ignores them in a wish.
_SERVERS_OWN = (
    "managedFields",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


class KubernetesSpace:
    """Implements relay.space_port.Space, and relay.claims.tenured_space.VersionedSpace."""

    def __init__(self, source: Kubeconfig | InCluster, clock: Clock, dice: Dice) -> None:
        self._api = ApiClient(source, clock)
        self._discovery = Discovery(self._api, clock)
        self._clock = clock
        self._dice = dice
        self._identity = ""
        self._doubts_answered = 0
        self._identifying = asyncio.Lock()
        # What came of asking last who answers, and by which way in that was asked.
        self._failure: tuple[object, SpaceError] | None = None
        self._followers: list[Follower] = []
        self.leases = KubernetesLeases(self._api, self._same_space)

    async def identity(self) -> str:
        """The uid of the namespace kube-system; raises AnotherSpace if that is another one now.

        It is asked for only where another space may answer since it was asked for last.
        """
        await self._same_space()
        return self._identity

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        await self._discovery.refresh()
        if complete:
            self._discovery.check_groups()
        return self._discovery.kinds

    async def follow(self, interests: Interests, tell: Tell) -> None:
        around = InformerContext(
            self._api,
            self._discovery,
            self._clock,
            self._dice,
            same_space=self._same_space,
            mark=self._mark,
            get=self.get,
        )
        follower = Follower(around, interests, tell)
        self._followers.append(follower)
        try:
            await follower.run()
        finally:
            self._followers.remove(follower)

    async def revision(self) -> str:
        mark = await self._mark()
        for follower in self._followers:
            follower.await_mark(mark)
        return mark

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        text = selector.to_query() if selector else ""
        if resource:
            kind = await self._served(group, resource)
            objects, revision = await list_pages(self._api, kind, text, namespace=namespace)
            return Listing(tuple(objects), revision)
        await self._same_space()
        return await self._list_all(text, namespace)

    async def get(self, key: ObjectKey) -> Object | None:
        await self._same_space()
        kind = await self._discovery.find(key.group, key.resource)
        if kind is None:
            return None
        with reason_suppressed(refusals.NOT_FOUND):
            path = paths.object_path(kind, key.namespace, key.name)
            return answers.object_of(await self._api.request("GET", path))
        return None

    async def key_of(self, obj: Object) -> ObjectKey:
        kind, namespace = await self._admitted(obj)
        place = namespace if kind.namespaced else ""
        return ObjectKey(kind.group, kind.resource, place, obj["metadata"]["name"])

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
        read: AsRead | None = None,
    ) -> Object:
        kind, namespace = await self._admitted(obj)
        wish = _wish(obj, namespace if kind.namespaced else "")
        wish = await self._based(kind, wish) if read is None else _held_to(wish, read)
        query = [
            ("fieldManager", manager),
            ("fieldValidation", "Strict"),
            ("dryRun", "All" if dry_run else ""),
        ]
        name = wish["metadata"]["name"]
        try:
            if create_only:
                return await self._create(kind, namespace, wish, query)
            query.append(("force", "true" if force else "false"))
            path = paths.object_path(kind, namespace, name)
            return await self._applied(path, query, wish)
        except CodecError as error:
            raise SpaceError(refusals.INVALID, f"{obj['kind']} {name}: {error}") from error
        except SpaceError as error:
            if wish["metadata"].get("uid") and refusals.names_another(error):
                raise Conflict(refusals.CONFLICT, error.message) from error
            raise refusals.without_secrets(error, obj) from error

    async def set_status(
        self, key: ObjectKey, status: Object, *, read: AsRead | None = None
    ) -> Object:
        kind = await self._served(key.group, key.resource)
        part = "status" if self._discovery.status_apart(kind) else ""
        path = paths.object_path(kind, key.namespace, key.name, part)
        patch = [*_expected(read), {"op": "add", "path": "/status", "value": status}]
        return await self._send(
            "PATCH", path, [("fieldManager", STATUS_MANAGER)], patch, paths.JSON_PATCH
        )

    async def disown(
        self,
        key: ObjectKey,
        uid: str,
        managers: Collection[str],
        marks: Collection[str],
        *,
        read: AsRead | None = None,
    ) -> None:
        found = await self.get(key)
        kind = await self._discovery.find(key.group, key.resource)
        if found is None or kind is None:
            raise SpaceError(refusals.NOT_FOUND, f"{key}: there is no such object")
        if found["metadata"]["uid"] != uid:
            raise Conflict(refusals.CONFLICT, f"{key}: it is another object now")
        patch = [*_disowning(found["metadata"], managers, marks), *_expected(read)]
        path = paths.object_path(kind, key.namespace, key.name)
        await self._send("PATCH", path, [], patch, paths.JSON_PATCH)

    async def set_labels(
        self, key: ObjectKey, labels: Labels, manager: str, *, read: AsRead | None = None
    ) -> Object:
        kind = await self._served(key.group, key.resource)
        path = paths.object_path(kind, key.namespace, key.name)
        held = {"resourceVersion": read.version} if read is not None else {}
        patch = {"metadata": {"labels": dict(labels), **held}}
        query = [("fieldManager", manager)]
        return await self._send("PATCH", path, query, patch, paths.MERGE_PATCH)

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        kind, namespace = await self._admitted(obj)
        path = paths.object_path(kind, namespace, obj["metadata"]["name"])
        query = [("fieldManager", manager), ("dryRun", "All" if dry_run else "")]
        try:
            return await self._send("PUT", path, query, obj, paths.JSON)
        except CodecError as error:
            said = f"{obj['kind']} {obj['metadata']['name']}: {error}"
            raise SpaceError(refusals.INVALID, said) from error
        except Conflict:
            raise
        except SpaceError as error:
            raise refusals.without_secrets(error, obj) from error

    async def delete(self, key: ObjectKey, uid: str = "", *, read: AsRead | None = None) -> bool:
        await self._same_space()
        kind = await self._discovery.find(key.group, key.resource)
        if kind is None:
            return False
        options: Object = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if read is not None:
            options["preconditions"] = {"uid": read.uid, "resourceVersion": read.version}
        try:
            path = paths.object_path(kind, key.namespace, key.name)
            await self._api.request("DELETE", path, body=options)
        except Conflict:
            # A Namespace that is being emptied is refused its deletion, which goes on.
            found = await self.get(key)
            if found is None:
                return False
            metadata = found["metadata"]
            if (uid and metadata["uid"] != uid) or not metadata.get("deletionTimestamp"):
                raise
        except SpaceError as error:
            if error.reason == refusals.NOT_FOUND:
                return False
            raise
        return True

    async def release(
        self, key: ObjectKey, finalizer: str, uid: str, *, read: AsRead | None = None
    ) -> None:
        """Take a finalizer off the object of this uid, whoever set it; raises SpaceError."""
        found = await self.get(key)
        listed = found["metadata"].get("finalizers", []) if found is not None else []
        kind = await self._discovery.find(key.group, key.resource)
        if finalizer not in listed or kind is None:
            return
        at = f"/metadata/finalizers/{listed.index(finalizer)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": at, "value": finalizer},
            {"op": "remove", "path": at},
            *_expected(read),
        ]
        path = paths.object_path(kind, key.namespace, key.name)
        await self._send("PATCH", path, [], patch, paths.JSON_PATCH)

    async def close(self) -> None:
        await self._api.close()

    async def _same_space(self) -> None:
        """Look who answers if it may be another than before; raises AnotherSpace."""
        way = await self._api.read_again()
        if not self._is_doubted():
            return
        before = self._failure
        async with self._identifying:
            if not self._is_doubted():
                return
            failed = self._failure
            if failed is not None and failed is not before and failed[0] is way:
                # Whoever asked meanwhile, by the same way, asked for all who wait.
                raise failed[1]
            try:
                await self._identify()
            except SpaceError as error:
                self._failure = way, error
                raise

    def _is_doubted(self) -> bool:
        return not self._identity or self._doubts_answered != self._api.doubts

    async def _identify(self) -> None:
        doubts = self._api.doubts
        path = paths.object_path(_NAMESPACES, "", _IDENTIFYING)
        try:
            answer = await self._api.request("GET", path, accept=paths.METADATA)
        except SpaceError as error:
            if not self._identity or error.reason != refusals.NOT_FOUND:
                raise
            raise SpaceError(refusals.UNAVAILABLE, _LOST) from error
        found = str(answers.object_of(answer)["metadata"].get("uid") or "")
        if self._identity not in ("", found):
            said = f"another space answers: its id is {found}, and was {self._identity}"
            raise AnotherSpace("AnotherSpace", f"{said}: give each space an address of its own")
        self._identity, self._doubts_answered = found, doubts

    async def _mark(self) -> str:
        """The revision of a consistent read."""
        try:
            return await self._revision_of(_NAMESPACES)
        except SpaceError as error:
            if error.reason != refusals.FORBIDDEN:
                raise
            for follower in self._followers:
                for kind, interest in follower.followed():
                    return await self._revision_of(kind, interest.namespace, interest.name)
            raise

    async def _revision_of(self, kind: Kind, namespace: str = "", name: str = "") -> str:
        path = paths.collection_path(kind, namespace)
        query = [("limit", "1"), ("fieldSelector", named(name))]
        page = await self._api.request("GET", path, query, accept=paths.METADATA_LIST)
        return answers.revision_of(page)

    async def _served(self, group: str, resource: str) -> Kind:
        """The kind; raises SpaceError if the server does not know it."""
        await self._same_space()
        kind = await self._discovery.find(group, resource)
        if kind is None:
            said = f"{refusals.no_type(group, resource)}: install its CRD"
            raise SpaceError(refusals.NOT_FOUND, said)
        return kind

    async def _admitted(self, obj: Object) -> tuple[Kind, str]:
        """The kind of an object that may be written, and the namespace that it names or means."""
        admit(obj)
        await self._same_space()
        group = group_of(obj)
        version = str(obj["apiVersion"]).rpartition("/")[2]
        kind = await self._discovery.find_type(group, version, obj["kind"])
        if kind is None:
            said = f'{NO_KIND} "{obj["kind"]}" in version "{obj["apiVersion"]}"'
            raise SpaceError(refusals.NOT_FOUND, f"{said}: ensure CRDs are installed first")
        return kind, obj["metadata"].get("namespace") or DEFAULT_NAMESPACE

    async def _based(self, kind: Kind, wish: Object) -> Object:
        """The wish; one that names a version also names the uid of what is there.

        By its version alone the server would make anew what is gone.
        """
        metadata = wish["metadata"]
        version = metadata.get("resourceVersion")
        if not version or metadata.get("uid"):
            return wish
        place = metadata.get("namespace", "")
        key = ObjectKey(kind.group, kind.resource, place, metadata["name"])
        held = await self.get(key)
        if held is None:
            said = f"{key}: written for version {version}, and is gone: read it again"
            raise Conflict(refusals.CONFLICT, said)
        return {**wish, "metadata": {**metadata, "uid": held["metadata"]["uid"]}}

    async def _create(self, kind: Kind, namespace: str, wish: Object, query: Pairs) -> Object:
        name = wish["metadata"]["name"]
        while True:
            with reason_suppressed(refusals.ALREADY_EXISTS):
                path = paths.collection_path(kind, namespace)
                return await self._send("POST", path, query, wish, paths.JSON)
            held = await self.get(ObjectKey(kind.group, kind.resource, namespace, name))
            if held is not None:
                return held

    async def _applied(self, path: str, query: Pairs, wish: Object) -> Object:
        """The server's answer to an apply; nulls that it refuses are left out, as kubectl's are.

        The server alone knows the definition that counts. What it refuses it names, not always all.
        """
        for _ in range(NULLS_ROUNDS_MAX):
            try:
                return await self._send("PATCH", path, query, wish, paths.APPLY)
            except SpaceError as error:
                refused = error.reason == refusals.INVALID and refused_nulls(wish, error.message)
                if not refused:
                    raise
                wish = without_fields(wish, refused)
        return await self._send("PATCH", path, query, wish, paths.APPLY)

    async def _send(self, method: str, path: str, query: Pairs, body: Any, content: str) -> Object:
        answer = await self._api.request(method, path, query, body=body, content=content)
        return answers.object_of(answer)

    async def _list_all(self, selector: str, namespace: str) -> Listing:
        served = [kind for kind in await self._discovery.all() if kind.namespaced or not namespace]
        kinds = [self._discovery.resource(*kind.group_resource) or kind for kind in served]

        async def one(kind: Kind) -> tuple[list[Object], str]:
            return await list_pages(self._api, kind, selector, namespace=namespace)

        found = await some_at_once(kinds, one, LISTS_AT_ONCE)
        revisions = (revision for _, revision in found if revision)
        objects = tuple(obj for listed, _ in found for obj in listed)
        return Listing(objects, min(revisions, key=number_of, default=""))


def _wish(obj: Object, namespace: str) -> Object:
    metadata = {name: obj["metadata"][name] for name in obj["metadata"] if name not in _SERVERS_OWN}
    metadata.pop("namespace", None)
    if namespace:
        metadata["namespace"] = namespace
    return {**{name: obj[name] for name in obj if name != "status"}, "metadata": metadata}


def _held_to(wish: Object, read: AsRead) -> Object:
    """The wish for the object as it was read, or for none."""
    held = {"uid": read.uid, "resourceVersion": read.version or NO_VERSION}
    said = {name: value for name, value in held.items() if value}
    return {**wish, "metadata": {**wish["metadata"], **said}}


def _expected(read: AsRead | None) -> list[Object]:
    """What has the server refuse a patch as a conflict if the object is another than was read."""
    if read is None:
        return []
    return [{"op": "add", "path": "/metadata/resourceVersion", "value": read.version}]


def _disowning(metadata: Object, managers: Collection[str], marks: Collection[str]) -> list[Object]:
    """What takes these managers and marks off the object as it was read, and off no other."""
    patch: list[Object] = [
        {"op": "test", "path": f"/metadata/{name}", "value": metadata[name]}
        for name in ("uid", "resourceVersion")
    ]
    for name in ("labels", "annotations"):
        said = metadata.get(name) or {}
        if kept := {mark: value for mark, value in said.items() if mark not in marks}:
            patch.append({"op": "replace", "path": f"/metadata/{name}", "value": kept})
        elif said:
            patch.append({"op": "remove", "path": f"/metadata/{name}"})
    entries = metadata.get("managedFields") or []
    left = [entry for entry in entries if entry.get("manager") not in managers]
    if left != entries:
        # An empty list would mean to leave them as they are, one of nothing means none.
        value = left or [{}]
        patch.append({"op": "replace", "path": "/metadata/managedFields", "value": value})
    return patch
