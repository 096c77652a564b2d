"""A server with a ledger and a space, and a data directory: what a backup is made of."""

import json
from pathlib import Path

from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.backup_settings import BackupSettings
from leafcast.backups.centre_streams import RELAY, SPACE, CentreServer
from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.piecewise import write_piecewise
from leafcast.backups.restoring import place_backup, restore_pending
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import REPLACES
from relay.adapters.jetstream.streams import make_stream
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from schemas.content.operator_box import public_half
from tests.nats.conftest import Grove, Node

TREE, CLOCK = "a" * 26, SystemClock()
KEY, OTHER_KEY = OperatorKey(b"k" * 32), OperatorKey(b"o" * 32)


def settings(folder: Path, keep: int = 96, key: OperatorKey = KEY) -> BackupSettings:
    """Backups into this folder."""
    return BackupSettings(900, keep, str(folder), public_half(key.private), b"s" * 32)


class BackedUpCentre:
    """One of a grove; it is told where its data directory is."""

    def __init__(self, grove: Grove, folder: Path) -> None:
        self.grove, self.place = grove, DataDir(folder)

    async def start(self, path: str = "/", tree: str | None = TREE) -> "BackedUpCentre":
        """Start its server, as the node of a path so that several have servers of their own."""
        await self.reach(await self.grove.plant(path))
        if tree:
            self.place.keys.mkdir(parents=True)
            (self.place.keys / "keys.json").write_text(json.dumps({"tree": tree}))
        return self

    async def reach(self, node: Node) -> None:
        """Connect to its server, which was started, perhaps anew."""
        seeds = {RELAY: node.seeds.relay, SPACE: node.seeds.space}
        self.server = CentreServer(node.server.url, seeds)
        self.relay = await self.grove.connect(node, node.seeds.relay)
        client = await self.grove.connect(node, node.seeds.space)
        self.space = EmbeddedSpace(client, "workloads", CLOCK, SystemDice())

    async def make_ledger(self, *records: bytes) -> None:
        """A ledger with these records, each of a key of its own."""
        connection = Connection(self.server.url, self.server.seeds[RELAY], "test", "_INBOX.test")
        await connection.open()
        await make_stream(connection, "OWN", ["lc._own.*"])
        await connection.close()
        for at, record in enumerate(records):
            await self.put(at, record)

    async def put(self, at: int, record: bytes) -> None:
        await self.note(f"lc._own.r{at}", record)

    async def note(self, subject: str, data: bytes) -> None:
        """Write something else beside the records."""
        await self.relay.jetstream().publish(subject, data, headers=dict(REPLACES))

    async def ledger(self) -> dict[str, bytes]:
        """What it holds, by key."""
        stream = self.relay.jetstream()
        state = (await stream.stream_info("OWN", subjects_filter=">")).state
        keys = sorted(state.subjects or ())
        return {key: (await stream.get_last_msg("OWN", key)).data for key in keys}

    async def back_up(
        self,
        folder: BackupFolder,
        keep: int = 96,
        key: OperatorKey = KEY,
        *,
        already: bool = False,
    ) -> Path:
        """Write one more backup into the folder, which may be there already; its file."""
        if not already:
            folder.begin(TREE)
        said = settings(folder.folder, keep, key)
        written = await write_piecewise(folder, said, self.place, self.server, CLOCK)
        return folder.folder / written.file

    async def restore(self, file: Path, key: OperatorKey | None = KEY) -> None:
        """Put a backup in the place of what it has."""
        place_backup(file, self.place, key, force=True)
        assert await restore_pending(self.place, self.server, CLOCK)


def taken(folder: BackupFolder) -> int:
    """What all of a folder takes, in bytes."""
    return sum(it.stat().st_size for it in folder.folder.rglob("*") if it.is_file())
