"""A backup is tried: restored into an empty folder, started without a link, and compared.

What is restored there reaches no node, no API server and nobody elsewhere: its server listens on
this machine only, on ports of its own, and it knows no space but its own.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from leafcast.backups.backup_folder import VERIFIED, BackupFolder
from leafcast.backups.backup_settings import FILE as SETTINGS
from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.refusals import BackupDamaged, BackupUnusable
from leafcast.backups.restoring import RestoredStream, is_piecewise, newest_in, place_backup
from leafcast.centre.centre import Centre, CentreOptions, running
from leafcast.data_dir import DataDir
from leafcast.node.listen_settings import FILE as LISTENING
from relay.adapters.clock import SystemClock
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.store_space import is_full
from relay.waiting import work_group
from schemas.values.faults import Unusable

START_SECONDS = 600.0
"""A start of which nothing is heard for so long has failed."""
ROOM_LOOK_SECONDS = 5.0
"""A server whose disk is full waits for room; here it is the scratch folder that has none."""
SPACES = "spaces.json"
log = logging.getLogger("leafcast")


class NotVerified(Unusable):
    """A backup was restored, and what came of it is not what it should be."""


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """What a backup came to as it was tried."""

    file: Path
    tree: str
    # Milliseconds since 1970.
    time_ms: int
    streams: Sequence[RestoredStream]
    # Records in force, and objects of embedded spaces.
    records: int
    objects: int
    # What waits for a person as the centre starts, by placement, and why: perhaps it lost some.
    held: Mapping[str, str]
    # API servers whose objects are not in it.
    elsewhere: Sequence[str]
    # Until the centre ran, from the first byte read.
    seconds: float


async def verify_backup(
    file: Path, key: OperatorKey | None, scratch: Path, progress: Callable[[str], None]
) -> VerifiedBackup:
    """Try a backup in an empty folder, which is gone then, however the program ends.

    What it took is noted beside the backups, for `leafcast doctor`; or why it is no good. Raises
    BackupUnusable, NotVerified, OSError.
    """
    folder = _folder_of(file)
    now_ms = SystemClock().now().wall_ms
    note: dict[str, object]
    try:
        file = newest_in(file)
        async with ProcessGuard() as guard:
            # It holds the keys of the tree in clear.
            guard.remove_at_end(scratch)
            verified = await _verify(file, key, scratch, progress)
    except (BackupDamaged, NotVerified) as error:
        failed = {"timeMs": now_ms, "file": file.name, "reason": f"{error.what}: {error.reason}"}
        note = {"failed": {**failed, "remedy": error.remedy}}
        await asyncio.to_thread(_note, folder, note)
        raise
    note = {"timeMs": now_ms, "file": file.name, "seconds": round(verified.seconds, 1)}
    await asyncio.to_thread(_note, folder, {**note, "failed": None})
    return verified


def _folder_of(file: Path) -> Path | None:
    """The folder of backups that is meant by it, or holds it; None of one in a file of its own."""
    if file.is_dir():
        return file
    return file.parent if is_piecewise(file) else None


def _note(beside: Path | None, said: Mapping[str, object]) -> None:
    """Note beside the backups how the last verification went; what is not said stays."""
    if beside is not None:
        folder = BackupFolder(beside)
        with suppress(OSError):
            note = {**folder.verified(), **said}
            folder.write(VERIFIED, json.dumps(note).encode() + b"\n")


async def _verify(
    file: Path, key: OperatorKey | None, scratch: Path, progress: Callable[[str], None]
) -> VerifiedBackup:
    clock = SystemClock()
    began, place = clock.now().seconds, DataDir(scratch)
    progress("reading it")
    found = await asyncio.to_thread(place_backup, file, place, key)
    spaces = place.spaces()
    named = [*spaces.workloads, *spaces.inventory]
    elsewhere = sorted({it.title for it in named if it.is_kubernetes})
    for name in (SETTINGS, LISTENING, SPACES):
        (scratch / name).unlink(missing_ok=True)
    progress("starting what was restored")
    patience = StartPatience()
    centre = Centre(place, CentreOptions(temporary=True), patience.went_on)
    records, objects, held = await _run(file, scratch, centre, patience)
    return VerifiedBackup(
        file,
        found.tree,
        found.time_ms,
        centre.restored or (),
        records,
        objects,
        held,
        elsewhere,
        clock.now().seconds - began,
    )


class StartPatience:
    """How long a start is waited for, from when it was last heard of; enter its `limit` first."""

    def __init__(self) -> None:
        self.limit = asyncio.timeout(START_SECONDS)

    def went_on(self, _said: str) -> None:
        if not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + START_SECONDS)


async def _run(
    file: Path, scratch: Path, centre: Centre, patience: StartPatience
) -> tuple[int, int, Mapping[str, str]]:
    """Run the centre until it knows what it has: records, objects, and what it holds.

    Raises NotVerified, also if it lists what it lacks, BackupUnusable without room for it, and what
    ends it.
    """
    try:
        async with patience.limit, work_group() as group:
            task = group.create_task(centre.run())
            room = group.create_task(_until_full(scratch))
            await centre.started.wait()
            controllers = running(centre.controllers)
            await controllers.caught_up()
            spaces = running(centre.workloads), running(centre.inventory)
            objects = [len((await space.list()).objects) for space in spaces]
            records, lost = len(controllers.issuer.records), len(controllers.issuer.lost)
            held = dict(controllers.translator.placements.held)
            task.cancel()
            room.cancel()
    except TimeoutError as error:
        reason = f"what was restored is not heard of for {START_SECONDS:g} s, and does not start"
        raise NotVerified(file, reason, "verify another one") from error
    if lost:
        reason = f"{lost} of the records that it lists are not in it"
        raise NotVerified(file, reason, "verify another one, and write a new one")
    return records, sum(objects), held


async def _until_full(scratch: Path) -> None:
    """Raises BackupUnusable once no room is left; that says nothing of the backup."""
    clock = SystemClock()
    while True:
        await clock.sleep(ROOM_LOOK_SECONDS)
        if is_full(scratch):
            remedy = "name a folder with room for all that the centre holds, by --scratch"
            raise BackupUnusable(scratch.parent, "its disk is full", remedy)
