"""One etcd for all API servers of a folder. It listens on sockets in that folder, on no port.

So only who may open the folder reaches it, without certificates. Paths to sockets are short for the
kernel (about 100 bytes): the names are relative, and whoever uses them starts in the folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from leafcast.local.kube_servers.binaries import ETCD, KubeHost, flags
from relay.adapters.server.logged_process import LoggedProcess, ServerFailed

READY_SECONDS = 60.0
_READY = "ready to serve client requests"
_SOCKETS = ("client", "peer")


class Etcd:
    """Started and stopped; what it stores stays in the folder."""

    def __init__(self, folder: Path, host: KubeHost, *, durable: bool) -> None:
        self.folder = folder
        self._host = host
        # Else it does not wait for the disk: faster, and lost with the machine's power.
        self._durable = durable
        # An etcd of an earlier run that is still ending removes its own sockets, not these.
        self._run = host.dice.entropy(4).hex()
        self.process: LoggedProcess | None = None

    @property
    def url(self) -> str:
        """Its address for who has the folder as the working directory."""
        return f"unix://client-{self._run}:0"

    async def start(self) -> None:
        """Return when it serves; raises BinariesMissing or ServerFailed."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        self._remove_sockets()
        peer = f"unix://peer-{self._run}:0"
        options = {
            "name": "leafcast",
            "data-dir": "data",
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"leafcast={peer}",
            "log-outputs": "stderr",
            **({} if self._durable else {"unsafe-no-fsync": "true"}),
        }
        process = self.process = self._host.spawn(
            ETCD, flags(options), name="etcd", cwd=self.folder, says_ready=_READY
        )
        if not await process.until_ready(READY_SECONDS):
            raise ServerFailed(f"etcd in {self.folder} ended as it started", process.log)

    async def stop(self) -> None:
        """End it in good order."""
        if self.process is not None:
            await self.process.stop()
        self._remove_sockets()

    def _remove_sockets(self) -> None:
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.startswith(_SOCKETS) and not entry.is_file():
                    Path(entry.path).unlink(missing_ok=True)
