"""Credentials that a kubeconfig has another program make, in the protocol of client-go."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay.adapters.kubernetes.kubeconfig import ClusterAccess, InvalidKubeconfig
from schemas.values.codec import from_json
from schemas.values.fields import mappings_at

EXEC_SECONDS_MAX = 60.0
_SAID_LETTERS_MAX = 400
_GROUP = "client.authentication.k8s.io/"
_CLUSTER_FIELDS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
)
_AUTHORITY = "certificate-authority"
_EXTENSION = "client.authentication.k8s.io/exec"


@dataclass(frozen=True, slots=True)
class ExecCredentials:
    """What the program gave, and until when it holds; 0 if it did not say."""

    token: str = ""
    certificate: str = ""
    key: str = ""
    expires_ms: int = 0


async def exec_credentials(access: ClusterAccess) -> ExecCredentials:
    """Run the program that the user names; raises InvalidKubeconfig with what it said."""
    form = access.user["exec"]
    command, version = form.get("command"), form.get("apiVersion")
    if not command or not isinstance(version, str) or not version.startswith(_GROUP):
        said = f"{access.origin}: exec needs a command, and an apiVersion such as {_GROUP}v1"
        raise InvalidKubeconfig(said)
    arguments = [str(argument) for argument in form.get("args") or ()]
    try:
        process = await asyncio.create_subprocess_exec(
            str(command), *arguments, env=_environment(access, form), stdout=PIPE, stderr=PIPE
        )
    except OSError as error:
        hint = str(form.get("installHint") or "install it, or correct exec.command")
        said = f"{access.origin}: exec: {command} cannot be run: {error.strerror}: {hint}"
        raise InvalidKubeconfig(said) from error
    try:
        async with asyncio.timeout(EXEC_SECONDS_MAX):
            out, err = await process.communicate()
    except TimeoutError as error:
        said = f"{access.origin}: exec: {command} gave nothing within {EXEC_SECONDS_MAX:.0f} s"
        raise InvalidKubeconfig(f"{said}: run it by hand") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = err.decode(errors="replace").strip()[-_SAID_LETTERS_MAX:]
        raise InvalidKubeconfig(
            f"{access.origin}: exec: {command} ended with {process.returncode}: {said}"
        )
    return _read(access, str(command), out)


def _environment(access: ClusterAccess, form: Mapping[str, Any]) -> dict[str, str]:
    spec: dict[str, Any] = {"interactive": False}
    if form.get("provideClusterInfo"):
        spec["cluster"] = _cluster(access)
    said = {"apiVersion": form["apiVersion"], "kind": "ExecCredential", "spec": spec}
    given = {
        str(item["name"]): str(item.get("value", ""))
        for item in mappings_at(form, "env")
        if item.get("name")
    }
    return {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(said)}


def _cluster(access: ClusterAccess) -> dict[str, Any]:
    """What a program is told of the cluster, if it asks for that."""
    cluster = access.cluster
    found = {name: cluster[name] for name in _CLUSTER_FIELDS if cluster.get(name)}
    if cluster.get(_AUTHORITY) and f"{_AUTHORITY}-data" not in found:
        authority = _authority(access, Path(cluster[_AUTHORITY]))
        found[f"{_AUTHORITY}-data"] = base64.b64encode(authority).decode()
    for item in mappings_at(cluster, "extensions"):
        if item.get("name") == _EXTENSION:
            found["config"] = item.get("extension")
    return found


def _authority(access: ClusterAccess, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        said = f"{access.origin}: {_AUTHORITY}: {path} cannot be read: {error.strerror}"
        raise InvalidKubeconfig(f"{said}: correct its path") from error


def _read(access: ClusterAccess, command: str, out: bytes) -> ExecCredentials:
    """What it printed; that is never shown: it is secret."""
    try:
        form = from_json(out)
        status = form["status"]
        found = ExecCredentials(
            str(status.get("token") or ""),
            str(status.get("clientCertificateData") or ""),
            str(status.get("clientKeyData") or ""),
            _milliseconds(status.get("expirationTimestamp")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        said = f"{access.origin}: exec: {command} printed no ExecCredential with a status"
        raise InvalidKubeconfig(f"{said}: run it by hand") from None
    if not found.token and not (found.certificate and found.key):
        said = f"{access.origin}: exec: {command} gave neither a token nor a certificate with key"
        raise InvalidKubeconfig(said)
    return found


def _milliseconds(timestamp: object) -> int:
    if not timestamp:
        return 0
    moment = dt.datetime.fromisoformat(str(timestamp))
    return int(moment.timestamp() * 1000)
