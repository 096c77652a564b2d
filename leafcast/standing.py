"""How a node is where it runs: its clock, its disk, its server."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from relay.adapters.external_server import ExternalServer
from relay.adapters.nats_server import EmbeddedServer
from relay.ports import Clock


def standing(
    clock: Clock, folder: Path, server: EmbeddedServer | ExternalServer | None
) -> dict[str, object]:
    """`nowMs`, `diskFree` and `storeBytes`, and `serverStarts` of a server that we started.

    Of a server that someone else runs elsewhere the store is not seen: it counts as empty.
    """
    store = 0
    for file in (folder / "jetstream").rglob("*"):
        with suppress(OSError):  # The server removes files as it goes.
            store += file.stat().st_size if file.is_file() else 0
    starts = server.starts if isinstance(server, EmbeddedServer) else None
    return {
        "nowMs": clock.now().wall_ms,
        "diskFree": shutil.disk_usage(folder).free,
        "storeBytes": store,
        "serverStarts": starts,
    }
