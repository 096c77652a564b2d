"""Where the tree of this folder answers for its health and figures, as a start said it.

What a backup leaves out: another machine has other ports.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leafcast.data_dir import DataDirUnusable
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.listen_settings import PORT_MAX
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

FILE = "health.json"


def keep_health(folder: Path, health: HealthAddress) -> None:
    """Remember it for the next start."""
    atomic_write(folder / FILE, json.dumps(asdict(health)) + "\n")


def kept_health(folder: Path) -> HealthAddress | None:
    """What was said last; None if it answers nowhere. Raises DataDirUnusable."""
    try:
        return _read(from_json((folder / FILE).read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        remedy = "remove that file, and say --health-port again"
        raise DataDirUnusable(folder, f"{FILE} is damaged", remedy) from error


def _read(form: Any) -> HealthAddress:
    port, host = form["port"], form["host"]
    if type(port) is not int or not 0 < port <= PORT_MAX or not isinstance(host, str):
        raise ValueError(port)
    return HealthAddress(port, host)
