"""Which files of a centre's data directory a backup holds, and where they go again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from leafcast.backups.backup_settings import FILE as SETTINGS
from leafcast.backups.refusals import BackupUnusable
from leafcast.data_dir import DataDir, make_private
from leafcast.node.credentials.authorities import AUTHORITY_FILES
from relay.atomic_file import atomic_write_bytes, make_folder

KEYS, TLS, TOKENS = "keys", "tls", "tokens"
KEYS_FILE = f"{KEYS}/keys.json"
# Nodes that joined believe the authority: another one would let none of them in.
TREE_FILES = (
    "tree.json",
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


def tree_of(place: DataDir) -> str:
    """The id of the tree whose keys lie there."""
    return str(json.loads((place.keys / "keys.json").read_bytes())["tree"])


def put_files(file: Path, place: DataDir, files: Mapping[str, bytes]) -> None:
    """Put the files of a backup into a data directory; raises BackupUnusable, OSError."""
    make_private(place.folder)
    for folder in (place.keys, place.folder / TLS, place.folder / TOKENS):
        make_folder(folder)
    for name, data in files.items():
        target = place.folder / checked_name(file, name)
        # A token that lies there may have been used since.
        is_token = name.startswith(f"{TOKENS}/") and not target.exists()
        if is_token or name.startswith(f"{KEYS}/") or name in TREE_FILES:
            atomic_write_bytes(target, data)


def checked_name(file: Path, name: str) -> str:
    """The name; raises BackupUnusable for one that leads out of the folder."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise BackupUnusable(file, f"it holds {name!r}", "do not use it: it was tampered with")
    return name
