"""What a node proves itself with to its parent, kept in its own folder for its owner only."""

from __future__ import annotations

import json
from pathlib import Path

from controllers.issuing.node_credentials import NodeCredentials
from relay.adapters.server.nkey_pairs import BadNkey, public_nkey
from relay.atomic_file import atomic_write, make_folder
from schemas.values.codec import from_json
from schemas.values.identity import NodePath

FILE = "credentials.json"


class CredentialsUnusable(Exception):
    """A file of credentials that holds none; names it, and the remedy."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file} holds no credentials; restore it, or remove it for new ones")
        self.file = file


def load_credentials(folder: Path, path: NodePath) -> NodeCredentials | None:
    """What an earlier start kept; None if there was none. Raises CredentialsUnusable."""
    file = folder / FILE
    try:
        form = from_json(file.read_bytes())
        seed = str(form["seed"])
        return NodeCredentials(path, seed, public_nkey(seed))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, BadNkey) as error:
        raise CredentialsUnusable(file) from error


def keep_seed(folder: Path, path: NodePath, seed: str) -> None:
    """Keep another key of the node for the next start; raises OSError."""
    keep_credentials(folder, NodeCredentials(path, seed, public_nkey(seed)))


def keep_credentials(folder: Path, credentials: NodeCredentials) -> None:
    """Keep them for the next start, whole or not at all."""
    make_folder(folder)
    form = {"path": str(credentials.path), "seed": credentials.seed}
    atomic_write(folder / FILE, json.dumps(form))
