"""Where a joined node keeps its state unless it is told: a folder for each tree and node.

A node that was moved stays in the folder it has, though what it asked lies in one of its new place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from leafcast.data_dir import JOINED_FILE, DataDir, DataDirUnusable
from leafcast.join.folder import GRANT_FILE, left_here
from leafcast.join.kept_grant import GrantUnreadable, KeptGrant, read_grant, write_grant
from relay.atomic_file import remove_folder
from schemas.enrolment.tokens import Token
from schemas.values.identity import NodePath, TreeId


def default_folder(tree: TreeId, path: NodePath) -> Path:
    """The folder of the node at a path of a tree."""
    return DataDir.default().folder / "joined" / f"{tree[:8]}-{path.domain}"


def folder_of_token(token: Token, path: NodePath) -> Path:
    """Where who asked with this token to be at the path goes on, or asks."""
    own = default_folder(token.tree, path)
    if own.exists():
        return own
    others = own.parent.glob(f"{token.tree[:8]}-*")
    return next((it for it in sorted(others) if _token_of(it) == token.token_id), own)


def folder_of_grant(grant: KeptGrant) -> Path:
    """The folder that the node has, of its present place or of a former one."""
    own = default_folder(grant.tree, grant.path)
    return own if own.exists() else next(_former_folders(grant), own)


def take_along(asked_in: Path, grant: KeptGrant) -> Path:
    """The folder of a node that was granted a place; if it was moved, the one that it had.

    Raises DataDirUnusable while a process uses that.
    """
    if (asked_in / JOINED_FILE).exists():
        return asked_in
    for former in _former_folders(grant):
        with DataDir(former).locked():
            write_grant(former / GRANT_FILE, grant)
        remove_folder(asked_in)
        return former
    return asked_in


def _former_folders(grant: KeptGrant) -> Iterator[Path]:
    """The folders of former places that hold this node, the latest place first."""
    for path in reversed(grant.former):
        folder = default_folder(grant.tree, path)
        with suppress(DataDirUnusable):
            if left_here(DataDir(folder), grant) is not None:
                yield folder


def _token_of(folder: Path) -> str:
    try:
        return read_grant(folder / GRANT_FILE).token
    except GrantUnreadable:
        return ""
