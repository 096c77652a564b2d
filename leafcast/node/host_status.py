"""How a node is where it runs: its clock, its disk, its server."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from relay.adapters.server.external_server import ExternalServer
from relay.adapters.server.nats_server import EmbeddedServer
from relay.ports import Clock


def host_status(
    clock: Clock, folder: Path, server: EmbeddedServer | ExternalServer | None
) -> dict[str, object]:
    """`nowMs` and `diskFree`; of a server of ours also `storeBytes`, `serverStarts`, `serverUpMs`.

    `serverUpMs` is how long ago it was started last.
    """
    # A folder that was removed as the node runs is made again on the disk that it was on.
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    status: dict[str, object] = {
        "nowMs": clock.now().wall_ms,
        "diskFree": shutil.disk_usage(existing).free,
    }
    if isinstance(server, EmbeddedServer):
        status |= {
            "storeBytes": _stored(folder / "jetstream"),
            "serverStarts": server.starts,
            "serverUpMs": int(server.up_seconds * 1000),
        }
    return status


def _stored(store: Path) -> int:
    size = 0
    for file in store.rglob("*"):
        with suppress(OSError):  # The server removes files as it goes.
            size += file.stat().st_size if file.is_file() else 0
    return size
