"""Points at which a process of a chaos tree stops itself, once, as a frozen machine would.

A file that holds the name of a point arms it; it is gone once the process has stopped there.
"""

import os
import signal
from pathlib import Path

from relay.adapters.jetstream.fence import FencedPublisher
from relay.adapters.server.nats_server import EmbeddedServer

BATCH, RELOAD, ERASURE = "before a batch", "before a reload", "before an erasure"


def stop_at(file: Path) -> None:
    """Have the process stop where the file says."""

    def reached(point: str) -> None:
        if file.exists() and file.read_text() == point:
            file.unlink()
            os.kill(os.getpid(), signal.SIGSTOP)

    publish, sweep, reload = FencedPublisher._publish, FencedPublisher.sweep, EmbeddedServer.reload

    async def publish_later(publisher, *its):
        # All that it is made of is read, and the lease was looked at.
        reached(BATCH)
        return await publish(publisher, *its)

    async def sweep_later(publisher, erased):
        # What says that it is erased lies behind the fence.
        if erased:
            reached(ERASURE)
        await sweep(publisher, erased)

    async def reload_later(server):
        # What is to be known of a child is kept, and its server does not know it.
        reached(RELOAD)
        await reload(server)

    FencedPublisher._publish, FencedPublisher.sweep = publish_later, sweep_later
    EmbeddedServer.reload = reload_later
