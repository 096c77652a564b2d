"""Which files of a centre's data directory a backup holds, and where they go again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from leafcast.backups.backup_settings import FILE as SETTINGS
from leafcast.backups.refusals import BackupUnusable
from leafcast.data_dir import AROUND, DRAFTS, TREE_FILE, DataDir, make_private
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from relay.atomic_file import atomic_write_bytes, make_folder, move_file

KEYS, TLS, TOKENS = "keys", "tls", "tokens"
KEYS_FILE = f"{KEYS}/keys.json"
# Nodes that joined believe the authority: another one would let none of them in.
TREE_FILES = (
    TREE_FILE,
    "spaces.json",
    "listen.json",
    SETTINGS,
    *(f"{TLS}/{name}" for name in (*AUTHORITY_FILES, "issued.json")),
)


def centre_files(place: DataDir) -> dict[str, bytes]:
    """Keys, tokens, and what says of the tree how it is laid out; by name, `/` between folders."""
    found = {}
    for name in (KEYS, TOKENS):
        for source in sorted((place.folder / name).glob("*.json")):
            found[f"{name}/{source.name}"] = source.read_bytes()
    for name in TREE_FILES:
        if (place.folder / name).exists():
            found[name] = (place.folder / name).read_bytes()
    return found


def is_same_disk(one: Path, other: Path) -> bool:
    """Whether both lie on one file system, so that one lost disk takes both; raises OSError."""
    return one.stat().st_dev == other.stat().st_dev


def tree_of(place: DataDir) -> str:
    """The id of the tree whose keys lie there."""
    return str(json.loads((place.keys / "keys.json").read_bytes())["tree"])


def whole_tree(data: bytes) -> bytes:
    """What `tree.json` says where the centre runs once: a member's names the tree around it."""
    try:
        form = json.loads(data)
        around = form[AROUND]
        form = {"format": form["format"], "shape": around["shape"]}
    except (ValueError, KeyError, TypeError):
        # It is another centre's, or damaged: who reads it says so.
        return data
    kube = around.get("kube")
    return json.dumps(form | ({"kube": kube} if kube else {})).encode()


@contextmanager
def putting_files(file: Path, place: DataDir, files: Mapping[str, bytes]) -> Iterator[None]:
    """Put the files of a backup into a data directory once the block ends well.

    They are on its disk before the block: what has no room there is found out by then. Raises
    BackupUnusable, DataDirUnusable, OSError.
    """
    make_private(place.folder)
    drafts = dict[Path, Path]()
    forget_drafts(place)
    make_folder(place.folder / DRAFTS)
    try:
        for name, data in files.items():
            target = place.folder / checked_name(file, name)
            # A token that lies there may have been used since.
            is_token = name.startswith(f"{TOKENS}/") and not target.exists()
            if is_token or name.startswith(f"{KEYS}/") or name in TREE_FILES:
                drafts[target] = place.folder / DRAFTS / str(len(drafts))
                atomic_write_bytes(drafts[target], whole_tree(data) if name == TREE_FILE else data)
        yield
        for folder in (place.keys, place.folder / TLS, place.folder / TOKENS):
            make_folder(folder)
        for target, draft in drafts.items():
            move_file(draft, target)
    finally:
        forget_drafts(place)


def forget_drafts(place: DataDir) -> None:
    """Remove the files of a backup that was not put in place; some are keys."""
    shutil.rmtree(place.folder / DRAFTS, ignore_errors=True)


def checked_name(file: Path, name: str) -> str:
    """The name; raises BackupUnusable for one that leads out of the folder."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise BackupUnusable(file, f"it holds {name!r}", "do not use it: it was tampered with")
    return name
