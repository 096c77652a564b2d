"""What an edge's folder notes of its cluster: which one it works on, and the edge's own name there.

A file beside the server's data. Who lost it is still known by its path; a copy of it elsewhere
names a cluster that is not the one there.
"""

from __future__ import annotations

import json
from pathlib import Path

from leafcast.data_dir import DataDirUnusable
from relay.atomic_file import atomic_write
from relay.ports import Dice
from schemas.values.codec import from_json
from schemas.values.identity import random_id

FILE = "claim.json"
LETTERS_MAX = 256


class ClusterRefused(Exception):
    """An edge was given a cluster that it may not work on; says whose it is, and what to do."""


class ClaimNote:
    """The note in one folder, read when this is made; raises DataDirUnusable if it is damaged."""

    def __init__(self, folder: Path, dice: Dice) -> None:
        self._file = folder / FILE
        self.edge, self.cluster = read_note(self._file)
        self.edge = self.edge or random_id(dice.entropy(16))

    def keep(self, cluster: str) -> None:
        """Note the cluster that the edge works on from now on, "" for none; raises OSError."""
        atomic_write(self._file, json.dumps({"edge": self.edge, "cluster": cluster}) + "\n")
        self.cluster = cluster


def read_note(file: Path) -> tuple[str, str]:
    """The edge's name and its cluster; "" for what nobody noted. Raises DataDirUnusable."""
    try:
        form = from_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return "", ""
    except (OSError, ValueError) as error:
        raise _damaged(file) from error
    edge, cluster = (
        (form.get("edge"), form.get("cluster")) if isinstance(form, dict) else (None, None)
    )
    if not (isinstance(edge, str) and isinstance(cluster, str)):
        raise _damaged(file)
    if max(len(edge), len(cluster)) > LETTERS_MAX:
        raise _damaged(file)
    return edge, cluster


def _damaged(file: Path) -> DataDirUnusable:
    remedy = "see that the edge's --context is the right one, and remove that file"
    return DataDirUnusable(file.parent, f"{file.name} is damaged", remedy)
