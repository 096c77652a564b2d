"""What is shown to an API server to be let in: headers, and certificates in files of a moment."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import os
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay.adapters.kubernetes.kubeconfig import ClusterAccess, InvalidKubeconfig, decoded
from schemas.values.codec import from_json
from schemas.values.fields import mappings_at


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM: what the server is to be signed by, and what the client shows."""

    authority: str | None
    certificate: str | None
    key: str | None


def certificates(access: ClusterAccess, by_program: ExecCredentials, folder: Path) -> Certificates:
    """The files, those in the folder that a kubeconfig or a program holds as text."""
    authority = _file(access, access.cluster, "certificate-authority", folder)
    if by_program.certificate:
        certificate = _written(folder / "cert", by_program.certificate.encode())
        key = _written(folder / "key", by_program.key.encode())
        return Certificates(authority, certificate, key)
    return Certificates(
        authority,
        _file(access, access.user, "client-certificate", folder),
        _file(access, access.user, "client-key", folder),
    )


def headers(access: ClusterAccess, by_program: ExecCredentials) -> Iterator[tuple[str, str]]:
    """Who asks, and for whom; raises InvalidKubeconfig."""
    user = access.user
    token = by_program.token or _token(access)
    if not token.isascii() or not token.isprintable():
        said = f"{access.origin}: its token holds characters that no token has: renew it"
        raise InvalidKubeconfig(said)
    if token:
        yield "Authorization", f"Bearer {token}"
    elif user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        yield "Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"
    if user.get("auth-provider"):
        said = f"{access.origin}: auth-provider is not supported: use exec, as with kubelogin"
        raise InvalidKubeconfig(said)
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
        for group in user.get("as-groups") or ():
            yield "Impersonate-Group", str(group)
        if user.get("as-uid"):
            yield "Impersonate-Uid", str(user["as-uid"])


def _token(access: ClusterAccess) -> str:
    path = access.user.get("tokenFile")
    if not path:
        return str(access.user.get("token") or "").strip()
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = f"{access.origin}: tokenFile {path} cannot be read: correct its mode"
        raise InvalidKubeconfig(said) from error
    if not token:
        raise InvalidKubeconfig(f"{access.origin}: tokenFile {path} is empty: write a token to it")
    return token


def _file(access: ClusterAccess, section: Mapping[str, Any], name: str, folder: Path) -> str | None:
    if section.get(f"{name}-data"):
        return _written(folder / name, decoded(access, section, name))
    return section.get(name) or None


def _written(path: Path, value: bytes) -> str:
    path.touch(mode=0o600)
    path.write_bytes(value)
    return str(path)


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
