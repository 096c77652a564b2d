"""Where an API server is and how to be let in: a context of a kubeconfig, or the Pod's own account.

What is wrong is said by file, context and field, with a remedy, before anything is asked of a
server. Files that are named are not read here but when they are used, so that they may be rotated.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay.space_errors import SpaceError
from schemas.objects.yaml_documents import InvalidManifest, read_documents
from schemas.values.fields import mappings_at

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"

_FILE_FIELDS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_DATA_FIELDS = ("certificate-authority", "client-certificate", "client-key")


class InvalidKubeconfig(SpaceError):
    """A kubeconfig, or what it names, that leads to no API server; the message has the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__("InvalidKubeconfig", message)


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A context of a kubeconfig."""

    # May name several files, as $KUBECONFIG does; empty for kubectl's own.
    path: str = ""
    # Empty for the file's current one.
    context: str = ""


@dataclass(frozen=True, slots=True)
class InCluster:
    """The Pod's own service account."""

    folder: Path = SERVICE_ACCOUNT_FOLDER


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """One cluster and one user of it, in a kubeconfig's words, with all paths absolute."""

    # Says to people where this comes from.
    origin: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    # All that it is made of: once one of them changes it is to be read again.
    files: tuple[Path, ...]

    @property
    def server(self) -> str:
        """The address, with the path of a workspace if it has one, without a slash at its end."""
        return str(self.cluster["server"]).rstrip("/")


def read_access(
    source: Kubeconfig | InCluster, environment: Mapping[str, str] = os.environ
) -> ClusterAccess:
    """Read and check it; raises InvalidKubeconfig."""
    if isinstance(source, InCluster):
        return _in_cluster(source, environment)
    return _from_kubeconfig(source, environment)


def signature(access: ClusterAccess) -> tuple[tuple[int, int, int], ...]:
    """Another one once one of the files was written anew or replaced."""
    return tuple(_state_of(path) for path in access.files)


def decoded(access: ClusterAccess, section: Mapping[str, Any], name: str) -> bytes:
    """What the field `<name>-data` holds; raises InvalidKubeconfig."""
    try:
        return base64.b64decode(str(section[f"{name}-data"]), validate=False)
    except binascii.Error as error:
        said = f"{access.origin}: {name}-data is not base64: write it as kubectl config set does"
        raise InvalidKubeconfig(said) from error


def _state_of(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def _in_cluster(source: InCluster, environment: Mapping[str, str]) -> ClusterAccess:
    host, port = environment.get(_HOST, ""), environment.get(_PORT, "")
    origin = "the Pod's service account"
    if not host or not port:
        missing = _HOST if not host else _PORT
        said = f"{origin}: {missing} is not set: this is no Pod; name a kubeconfig instead"
        raise InvalidKubeconfig(said)
    token, authority = source.folder / "token", source.folder / "ca.crt"
    for path in (token, authority):
        _check_file(path, origin, "set automountServiceAccountToken: true, or name a kubeconfig")
    address = f"[{host}]" if ":" in host else host
    return ClusterAccess(
        origin,
        {"server": f"https://{address}:{port}", "certificate-authority": str(authority)},
        {"tokenFile": str(token)},
        (token, authority),
    )


def _from_kubeconfig(source: Kubeconfig, environment: Mapping[str, str]) -> ClusterAccess:
    paths = _paths(source, environment)
    files = [(path, _document(path)) for path in paths]
    named = source.context or next(
        (str(form["current-context"]) for _, form in files if form.get("current-context")), ""
    )
    shown = ", ".join(map(str, paths))
    if not named:
        raise InvalidKubeconfig(f"{shown}: no current-context is set: name a context")
    origin = f'context "{named}" of {shown}'
    context = _entry(files, "contexts", "context", named)
    if context is None:
        known = ", ".join(_names(files, "contexts")) or "none"
        raise InvalidKubeconfig(f'context "{named}" does not exist in {shown}: it has {known}')
    cluster = _named(files, "clusters", "cluster", context[1].get("cluster"), origin)
    if not _text(cluster.get("server")):
        said = f"{origin}: its cluster names no server: write server: https://HOST:PORT"
        raise InvalidKubeconfig(said)
    if not str(cluster["server"]).startswith(("https://", "http://")):
        said = f"{origin}: server: {cluster['server']}: not an address: write https://HOST:PORT"
        raise InvalidKubeconfig(said)
    user = context[1].get("user")
    chosen = _named(files, "users", "user", user, origin) if user else {}
    named_files = tuple(_checked_files(origin, cluster, chosen))
    return ClusterAccess(origin, cluster, chosen, (*paths, *named_files))


def _paths(source: Kubeconfig, environment: Mapping[str, str]) -> list[Path]:
    given = source.path or environment.get("KUBECONFIG", "")
    wanted = [Path(text).expanduser() for text in given.split(os.pathsep) if text]
    if not wanted:
        wanted = [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]
    found = [path.absolute() for path in wanted if path.exists()]
    if not found:
        shown = ", ".join(map(str, wanted))
        said = f"there is no kubeconfig {shown}: name the file with --kubeconfig, or set KUBECONFIG"
        raise InvalidKubeconfig(said)
    return found


def _document(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidKubeconfig(f"{path}: cannot be read: {error}: check its mode") from error
    try:
        documents = list(read_documents(text, str(path)))
    except InvalidManifest as error:
        raise InvalidKubeconfig(f"{error}: write a kubeconfig") from error
    if len(documents) != 1 or not isinstance(documents[0].root, dict):
        raise InvalidKubeconfig(f"{path}: not a kubeconfig: it needs clusters, users and contexts")
    return documents[0].root


_Files = list[tuple[Path, Mapping[str, Any]]]


def _entries(files: _Files, section: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path, form in files:
        for entry in mappings_at(form, section):
            if _text(entry.get("name")):
                yield path, entry


def _names(files: _Files, section: str) -> list[str]:
    return sorted({str(entry["name"]) for _, entry in _entries(files, section)})


def _entry(
    files: _Files, section: str, field: str, name: str
) -> tuple[Path, Mapping[str, Any]] | None:
    """The first entry of that name, as kubectl takes it when files are merged."""
    for path, entry in _entries(files, section):
        if entry["name"] == name and isinstance(entry.get(field), dict):
            return path, entry[field]
    return None


def _named(files: _Files, section: str, field: str, name: object, origin: str) -> Mapping[str, Any]:
    found = _entry(files, section, field, name) if isinstance(name, str) else None
    if found is None:
        known = ", ".join(_names(files, section)) or "none"
        said = f'{origin}: {field} "{name}" does not exist: {section} has {known}'
        raise InvalidKubeconfig(said)
    path, form = found
    absolute: dict[str, Any] = {
        name: _absolute(path, form[name]) for name in _FILE_FIELDS if _text(form.get(name))
    }
    program = form.get("exec")
    if isinstance(program, dict) and os.sep in str(program.get("command")):
        absolute["exec"] = {**program, "command": _absolute(path, program["command"])}
    return {**form, **absolute}


def _absolute(kubeconfig: Path, named: object) -> str:
    """What a kubeconfig names, as seen from its own folder."""
    return str((kubeconfig.parent / str(named)).absolute())


def _checked_files(origin: str, *sections: Mapping[str, Any]) -> Iterator[Path]:
    for section in sections:
        for name in _FILE_FIELDS:
            inline = section.get(f"{name}-data") if name in _DATA_FIELDS else None
            if _text(section.get(name)) and not inline:
                path = Path(section[name])
                _check_file(path, f"{origin}: {name}", "correct its path")
                yield path


def _check_file(path: Path, origin: str, remedy: str) -> None:
    if not path.is_file():
        raise InvalidKubeconfig(f"{origin}: there is no file {path}: {remedy}")
    if not os.access(path, os.R_OK):
        raise InvalidKubeconfig(f"{origin}: {path} may not be read: correct its mode")


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
