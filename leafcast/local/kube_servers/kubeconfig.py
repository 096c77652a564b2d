"""Who may get into an API server: users in token files, and kubeconfigs that know their tokens."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relay.atomic_file import atomic_write
from schemas.objects.yaml_writing import write_yaml

ADMIN = "admin"
MASTERS = "system:masters"


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """How someone gets into a server; `context` names it, `authority` is its CA in PEM."""

    context: str
    url: str
    authority: bytes
    token: str
    user: str = "admin"


def kubeconfig(accesses: Iterable[ServerAccess], *, current: str | None = None) -> dict[str, Any]:
    """A kubeconfig; the context in use is `current`, or the first."""
    known = list(accesses)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": its.context, "cluster": _cluster(its)} for its in known],
        "users": [{"name": _user(its), "user": {"token": its.token}} for its in known],
        "contexts": [
            {"name": its.context, "context": {"cluster": its.context, "user": _user(its)}}
            for its in known
        ],
        "current-context": current or next((its.context for its in known), ""),
    }


def write_kubeconfig(
    file: Path, accesses: Iterable[ServerAccess], *, current: str | None = None
) -> None:
    """Write it in one go, readable by its owner only; raises OSError."""
    atomic_write(file, write_yaml(kubeconfig(accesses, current=current)), durable=False)


def _cluster(access: ServerAccess) -> dict[str, str]:
    authority = base64.b64encode(access.authority).decode()
    return {"server": access.url, "certificate-authority-data": authority}


def _user(access: ServerAccess) -> str:
    return f"{access.context}-{access.user}"


@dataclass(frozen=True, slots=True)
class User:
    """A user whom RBAC may give rights; members of system:masters have all."""

    name: str
    token: str
    groups: tuple[str, ...] = ()


def write_users(file: Path, users: Iterable[User]) -> None:
    """Write a token file; raises OSError."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerows((its.token, its.name, its.name, ",".join(its.groups)) for its in users)
    atomic_write(file, out.getvalue(), durable=False)


def read_users(file: Path) -> dict[str, User]:
    """The users of a token file, by name; none where there is no file."""
    try:
        rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
    except FileNotFoundError:
        return {}
    return {
        name: User(name, token, tuple(filter(None, groups.split(","))))
        for token, name, _, groups in rows
    }
