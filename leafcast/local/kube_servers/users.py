"""Who may get into an API server: its token file, one user a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from relay.atomic_file import atomic_write

ADMIN = "admin"
MASTERS = "system:masters"


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
