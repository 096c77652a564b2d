"""The folder of a joined node is used by that node alone, and follows it to another place.

A node that was moved joins with the token of its new place and the folder that it has. Who it is
now is written down first, and which paths its streams have still to be carried over from: so
whenever that ends, the next start goes on with it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leafcast.data_dir import JOINED_FILE, LOCK_FILE, DataDir, DataDirUnusable, make_private
from leafcast.join.kept_grant import GrantUnreadable, KeptGrant, read_grant, write_grant
from leafcast.machine import machine_id
from leafcast.node.claim_note import ClusterRefused
from leafcast.space_settings import IN_CLUSTER, SIMULATED, SpaceSetting, edge_cluster
from relay.atomic_file import atomic_write
from relay.ports import Dice
from schemas.records.moves import FORMER_MAX
from schemas.releases.release_folder import RELEASES
from schemas.values.codec import from_json
from schemas.values.identity import NodePath, TreeId, random_id

FORMAT = 1
GRANT_FILE = "bundle.json"
"""As former releases call it, whose folders go on."""
CLUSTER_FILE = "cluster.json"
REQUEST_FILE, REQUEST_FOLDER = "request.json", "asking"
MEMBER_REQUEST_FILE = "member-request.json"
ASKING = frozenset({REQUEST_FILE, REQUEST_FOLDER, LOCK_FILE, GRANT_FILE, MEMBER_REQUEST_FILE})
"""What lies in the folder of a node that asked to be let in, and did not run yet."""
IN_POD = "KUBERNETES_SERVICE_HOST"
"""Set in every Pod, and nowhere else."""


@dataclass(frozen=True, slots=True)
class JoinedFolder:
    """A folder in use by one joined node."""

    folder: Path
    tree: TreeId
    path: NodePath
    # Tells it from any other folder.
    home: str
    # Whether the tree let the node in once, so that it goes on without its parent.
    admitted: bool = False
    # The paths at which it hung before, the latest last.
    former: tuple[NodePath, ...] = ()
    # Those of them under which something lies still.
    arriving: tuple[NodePath, ...] = ()

    @property
    def bound_home(self) -> str:
        """The home of this very folder on this machine: a copy of it anywhere has another."""
        lock = (self.folder / LOCK_FILE).stat()
        bound = f"{self.home} {machine_id()} {lock.st_ino}"
        return hashlib.sha256(bound.encode()).hexdigest()[: len(self.home)]

    @property
    def node_folder(self) -> Path:
        """Where the node's server keeps its data."""
        return self.folder / self.path.domain

    def keep(self) -> None:
        """Write down what this folder is."""
        form = {
            "format": FORMAT,
            "tree": self.tree,
            "path": str(self.path),
            "home": self.home,
            "admitted": self.admitted,
            "former": [str(path) for path in self.former],
            "arriving": [str(path) for path in self.arriving],
        }
        atomic_write(self.folder / JOINED_FILE, json.dumps(form) + "\n")

    def at(self, path: NodePath) -> JoinedFolder:
        """The same folder once its node hangs elsewhere, where no one let it in yet."""
        left = [old for old in (*self.former, self.path) if old != path]
        coming = [old for old in (*self.arriving, self.path) if old != path]
        return replace(
            self,
            path=path,
            admitted=False,
            former=tuple(left[-FORMER_MAX:]),
            arriving=tuple(dict.fromkeys(coming)),
        )

    def bring_along(self) -> None:
        """Name the server's folder by the present path; again is harmless."""
        for old in self.arriving:
            former = self.folder / old.domain
            if former.is_dir() and not self.node_folder.exists():
                former.rename(self.node_folder)


@contextmanager
def joined_folder(folder: Path, grant: KeptGrant, dice: Dice) -> Iterator[JoinedFolder]:
    """Use the folder for this node alone, new or as it was left.

    Raises DataDirUnusable if it is another's or in use.
    """
    place = DataDir(folder.absolute())
    found = left_here(place, grant)
    try:
        make_private(folder)
        if place.in_use():
            remedy = "stop the other `leafcast join`, or name another --data-dir"
            raise DataDirUnusable(folder, "another process uses it", remedy)
        with place.locked():
            home = random_id(dice.entropy(16))
            found = found or JoinedFolder(place.folder, grant.tree, grant.path, home)
            found.keep()
            found.bring_along()
            write_grant(folder / GRANT_FILE, grant)
            yield found
    except PermissionError as error:
        remedy = "make it writable, or name another --data-dir"
        raise DataDirUnusable(folder, "it cannot be written", remedy) from error


def left_here(place: DataDir, grant: KeptGrant) -> JoinedFolder | None:
    """What an earlier start of this very node left, here or where it was moved from.

    None in a new folder; raises DataDirUnusable.
    """
    found = node_in(place, grant.tree)
    if found is None:
        return None
    if found.path == grant.path:
        return found
    if found.path not in grant.former:
        raise DataDirUnusable(place.folder, *misfit(found, grant.path))
    _check_same_edge(place.folder, found.path, grant)
    return found.at(grant.path)


def _check_same_edge(folder: Path, path: NodePath, grant: KeptGrant) -> None:
    """Refuse the folder of an edge that came to a path which the granted one had left.

    An edge keeps its label `id` wherever it moves, and no other has that. Raises DataDirUnusable.
    """
    try:
        found = read_grant(folder / GRANT_FILE).labels.get("id")
    except GrantUnreadable:
        return
    wanted = grant.labels.get("id")
    if found and wanted and found != wanted:
        reason = f"it belongs to the edge {found} at {path}, and {grant.path} is {wanted}"
        remedy = f"if only its label `id` was changed, remove {folder / GRANT_FILE}"
        raise DataDirUnusable(folder, reason, f"name another --data-dir; {remedy}")


def node_in(place: DataDir, tree: TreeId) -> JoinedFolder | None:
    """The node of this tree whose folder it is; None if no node ran there.

    Raises DataDirUnusable if it holds anything else.
    """
    remedy = "name another --data-dir"
    if place.tree() is not None:
        raise DataDirUnusable(place.folder, "a whole tree of `leafcast up` lies there", remedy)
    try:
        found = read_joined(place.folder)
    except FileNotFoundError:
        # A launcher, and who pins a publisher, may be there before the node.
        before = {*ASKING, RELEASES}
        if place.folder.is_dir() and any(it.name not in before for it in place.folder.iterdir()):
            raise DataDirUnusable(place.folder, "it holds something else", remedy) from None
        return None
    if found.tree != tree:
        reason = f"it belongs to {found.path} of another tree"
        raise DataDirUnusable(place.folder, reason, remedy)
    return found


def cluster_of(place: JoinedFolder, named: SpaceSetting | None) -> SpaceSetting:
    """The cluster of an edge: the one named, else the one of its last start, else the Pod's own.

    Outside a Pod it is a simulated one. Raises DataDirUnusable.
    """
    file = place.folder / CLUSTER_FILE
    if named is None and file.exists():
        try:
            return edge_cluster(from_json(file.read_bytes()))
        except (OSError, ValueError) as error:
            remedy = f"remove {file}, and name the cluster again"
            raise DataDirUnusable(place.folder, f"{CLUSTER_FILE} is damaged", remedy) from error
    chosen = named or (IN_CLUSTER if IN_POD in os.environ else SIMULATED)
    atomic_write(file, json.dumps(chosen.form()))
    return chosen


@contextmanager
def kept_if_refused(place: JoinedFolder) -> Iterator[None]:
    """Within it the edge may be given another cluster; if that is refused it keeps the former."""
    file = place.folder / CLUSTER_FILE
    former = file.with_name(f"{CLUSTER_FILE}.former")
    former.unlink(missing_ok=True)
    if file.exists():
        # What is written anew is another file.
        former.hardlink_to(file)
    try:
        yield
    except ClusterRefused:
        file.unlink(missing_ok=True)
        if former.exists():
            former.rename(file)
        raise
    finally:
        former.unlink(missing_ok=True)


def read_joined(folder: Path) -> JoinedFolder:
    """What the folder's marker says; raises DataDirUnusable, or FileNotFoundError without one."""
    try:
        return _read(folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataDirUnusable(
            folder, f"{JOINED_FILE} is damaged", "name another --data-dir"
        ) from error


def _read(folder: Path) -> JoinedFolder:
    form: dict[str, Any] = from_json((folder / JOINED_FILE).read_bytes())
    return JoinedFolder(
        folder,
        form["tree"],
        NodePath.parse(form["path"]),
        str(form["home"]),
        bool(form["admitted"]),
        tuple(map(NodePath.parse, form.get("former", ()))),
        tuple(map(NodePath.parse, form.get("arriving", ()))),
    )


def misfit(found: JoinedFolder, path: NodePath) -> tuple[str, str]:
    """Why a folder is not the one of the node at a path, and what to do."""
    if path in found.former:
        reason = f"its node was moved from {path} to {found.path}"
        return reason, f"join with the token for {found.path}, or name another --data-dir"
    remedy = (
        f"name another --data-dir; to hang this node there, run `leafcast node move {found.path} "
        f"{path}` and join with the token that it hands over"
    )
    return f"it belongs to {found.path}, not {path}", remedy
