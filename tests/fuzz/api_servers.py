"""What leads to an API server, and what it answers."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from relay.adapters.kubernetes import (
    answers,
    api_client,
    credentials,
    leases,
    refusals,
)
from relay.adapters.kubernetes import discovery as documents
from relay.adapters.kubernetes.credentials import ExecCredentials, certificates, headers
from relay.adapters.kubernetes.kubeconfig import (
    ClusterAccess,
    InvalidKubeconfig,
    Kubeconfig,
    read_access,
)
from relay.claims.leases import milliseconds
from relay.space_errors import SpaceError
from relay.space_port import Kind
from relay.syncer.list_items import moved_items
from schemas.objects.source_objects import created_seconds
from tests.fuzz.files import folder
from tests.fuzz.target import Form, Target

ACCESS = ClusterAccess("a kubeconfig", {"server": "https://hub:6443"}, {"exec": {}}, ())
MAPS = Kind("", "v1", "configmaps", "ConfigMap", namespaced=True)
CONFIG = {
    "current-context": "hub",
    "clusters": [
        {"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": "QUJD"}}
    ],
    "users": [{"name": "u", "user": {"tokenFile": "token", "as": "jane", "as-groups": ["a"]}}],
    "contexts": [{"name": "hub", "context": {"cluster": "c", "user": "u"}}],
}
CREDENTIAL = {"status": {"token": "t", "expirationTimestamp": "2026-01-31T12:00:00Z"}}
OBJECT = {"metadata": {"name": "a", "namespace": "b", "resourceVersion": "7"}}
SECRET = {**OBJECT, "kind": "Secret", "data": {"a": "aHVudGVyMjI="}, "stringData": {"b": "hunter"}}
CAUSE = {"reason": "FieldManagerConflict", "message": 'conflict with "x"', "field": ".a"}
LEASE = {
    "metadata": {"name": "leafcast-edge", "annotations": {"leafcast.io/claimed-by-tree": "t"}},
    "spec": {"renewTime": "2026-01-31T12:00:00.000000Z", "leaseDurationSeconds": 15},
}
STATUS = {"reason": "Conflict", "message": "hunter22", "details": {"causes": [CAUSE]}}
RESOURCE = {"resource": "carts", "responseKind": {"kind": "Cart"}, "verbs": ["get", "list"]}
PARTS = [{"subresource": "status"}]
VERSION = {"version": "v1", "resources": [{**RESOURCE, "subresources": PARTS}]}
AGGREGATED = {"items": [{"metadata": {"name": "shop.io"}, "versions": [VERSION]}]}
GROUPS = {"groups": [{"name": "shop.io", "versions": [{"version": "v1"}]}], "versions": ["v1"]}
PLAIN = {"resources": [{"name": "carts", "kind": "Cart", "verbs": ["get"], "shortNames": ["c"]}]}


def kubeconfig(data: bytes) -> None:
    """A file of this content leads to a server, or is refused."""
    place = folder() / "kubeconfig"
    place.write_bytes(data)
    (folder() / "token").write_text("secret")
    with suppress(InvalidKubeconfig):
        access = read_access(Kubeconfig(str(place)))
        list(headers(access, ExecCredentials()))
        certificates(access, ExecCredentials(), Path(folder()))


def credential(data: bytes) -> None:
    """A program printed this."""
    with suppress(InvalidKubeconfig):
        credentials._read(ACCESS, "login", data)


def answer(data: bytes) -> None:
    """A server said this, whatever was asked."""
    session = SimpleNamespace(access=ACCESS)
    error = api_client._refused(500, data, session)
    refusals.without_secrets(error, SECRET)
    try:
        form = api_client._decoded(data, ACCESS)
    except SpaceError:
        return
    for read in (answers.object_of, answers.event_of, lambda form: answers.page_of(MAPS, form)):
        with suppress(SpaceError):
            read(form)
    with suppress(SpaceError):
        found = answers.object_of(form)
        created_seconds(found)
        moved_items(found, found, b"marks!!!")
    with suppress(SpaceError):
        lease = leases.lease_of(form)
        milliseconds(lease.renewed)
        leases.lease_form(lease)
    with suppress(SpaceError):
        document = answers.mapping(form)
        documents.preferred(documents.aggregated(document))
        list(documents.groups(document))
        documents.preferred([documents.resources("", "v1", document)])
        if document.get("kind") == "Secret":
            refusals.without_secrets(error, dict(document))


def target(run, *real: object) -> Target:
    return Target(run, lambda: [json.dumps(form).encode() for form in real], Form.JSON)


TARGETS = {
    "kubeconfig": target(kubeconfig, CONFIG),
    "exec credential": target(credential, CREDENTIAL),
    "api answer": target(
        answer,
        SECRET,
        STATUS,
        LEASE,
        {"type": "ADDED", "object": OBJECT},
        {"type": "ERROR", "object": {**STATUS, "code": 410}},
        {"items": [OBJECT], "metadata": {"resourceVersion": "7", "continue": "x"}},
        AGGREGATED,
        GROUPS,
        PLAIN,
    ),
}
