"""The leases of an API server that say who works on it; see relay.claims.leases.

Each is read and written by its own path: no discovery, no list and no watch need be allowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes.api_client import ApiClient
from relay.claims.leases import LEASES_NAMESPACE, Lease
from relay.space_errors import Conflict, SpaceError, reason_suppressed
from relay.space_port import Kind, Object
from schemas.values.fields import mapping_at

MANAGER = "leafcast-claim"
LETTERS_MAX = 256
"""The longest text that is read of a lease: more than any of ours says."""
NOTES_PREFIX = "leafcast.io/claimed-"
_LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
_NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
# As what `leafcast install` makes; no placement takes such an object along.
_LABELS = {"app.kubernetes.io/part-of": "leafcast", "leafcast.io/stays": "true"}


class KubernetesLeases:
    """Implements relay.claims.leases.LeaseStore."""

    def __init__(self, api: ApiClient, same_space: Callable[[], Awaitable[None]]) -> None:
        self._api = api
        # Raises AnotherSpace if it is another one.
        self._same_space = same_space

    async def read(self, name: str) -> Lease | None:
        await self._same_space()
        with reason_suppressed(refusals.NOT_FOUND):
            return lease_of(await self._api.request("GET", _path(name)))
        return None

    async def write(self, lease: Lease) -> Lease:
        await self._same_space()
        if lease.version:
            return await self._send("PUT", _path(lease.name), lease, refusals.NOT_FOUND)
        with reason_suppressed(refusals.NOT_FOUND):
            return await self._create(lease)
        await self._make_namespace()
        return await self._create(lease)

    async def delete(self, lease: Lease) -> None:
        await self._same_space()
        known = {"uid": lease.uid, "resourceVersion": lease.version}
        options = {"preconditions": {name: value for name, value in known.items() if value}}
        with reason_suppressed(refusals.NOT_FOUND):
            await self._api.request("DELETE", _path(lease.name), body=options)

    async def _create(self, lease: Lease) -> Lease:
        path = paths.collection_path(_LEASES, LEASES_NAMESPACE)
        return await self._send("POST", path, lease, refusals.ALREADY_EXISTS)

    async def _send(self, method: str, path: str, lease: Lease, outrun: str) -> Lease:
        """The lease as it is then; raises Conflict if this reason says that it was outrun."""
        query = [("fieldManager", MANAGER)]
        try:
            return lease_of(await self._api.request(method, path, query, body=lease_form(lease)))
        except SpaceError as error:
            if error.reason == outrun:
                raise Conflict(refusals.CONFLICT, error.message) from error
            raise

    async def _make_namespace(self) -> None:
        form = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": LEASES_NAMESPACE, "labels": dict(_LABELS)},
        }
        query = [("fieldManager", MANAGER)]
        with reason_suppressed(refusals.ALREADY_EXISTS):
            await self._api.request("POST", paths.collection_path(_NAMESPACES), query, body=form)


def lease_form(lease: Lease) -> Object:
    """The object that an API server keeps of a lease."""
    metadata: Object = {
        "name": lease.name,
        "namespace": LEASES_NAMESPACE,
        "labels": dict(_LABELS),
        "annotations": dict(lease.notes),
    }
    if lease.version:
        metadata |= {"resourceVersion": lease.version, "uid": lease.uid}
    said = {
        "holderIdentity": lease.holder,
        "acquireTime": lease.acquired,
        "renewTime": lease.renewed,
        "leaseDurationSeconds": lease.seconds,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {name: value for name, value in said.items() if value},
    }


def lease_of(answer: object) -> Lease:
    """A lease as a server tells it; what is not as we write it counts as not said."""
    obj = answers.object_of(answer)
    metadata = obj["metadata"]
    spec, notes = mapping_at(obj, "spec"), mapping_at(metadata, "annotations")
    seconds = spec.get("leaseDurationSeconds")
    return Lease(
        name=_text(metadata.get("name")),
        holder=_text(spec.get("holderIdentity")),
        notes={
            name: value[:LETTERS_MAX]
            for name, value in notes.items()
            if name.startswith(NOTES_PREFIX) and isinstance(value, str)
        },
        acquired=_text(spec.get("acquireTime")),
        renewed=_text(spec.get("renewTime")),
        seconds=seconds if type(seconds) is int and seconds > 0 else 0,
        version=_text(metadata.get("resourceVersion")),
        uid=_text(metadata.get("uid")),
    )


def _path(name: str) -> str:
    return paths.object_path(_LEASES, LEASES_NAMESPACE, name)


def _text(value: object) -> str:
    return value[:LETTERS_MAX] if isinstance(value, str) else ""
