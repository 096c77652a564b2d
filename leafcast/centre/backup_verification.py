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
from leafcast.backups.restoring import RestoredStream, is_piecewise, newest_in, place_backup
from leafcast.centre.centre import Centre, running
from leafcast.data_dir import DataDir
from leafcast.node.listen_settings import FILE as LISTENING
from relay.adapters.clock import SystemClock
from relay.waiting import work_group
from schemas.values.faults import Unusable

START_SECONDS = 600.0
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
    """Try a backup in an empty folder; raises BackupUnusable, NotVerified, OSError.

    What it took is noted beside the backups, for `leafcast doctor`.
    """
    clock = SystemClock()
    began, file = clock.now().seconds, newest_in(file)
    place = DataDir(scratch)
    progress("reading it")
    found = await asyncio.to_thread(place_backup, file, place, key)
    spaces = place.spaces()
    named = [*spaces.workloads, *spaces.inventory]
    elsewhere = sorted({it.title for it in named if it.is_kubernetes})
    for name in (SETTINGS, LISTENING, SPACES):
        (scratch / name).unlink(missing_ok=True)
    progress("starting what was restored")
    centre = Centre(place)
    started = await _run(file, centre)
    seconds = clock.now().seconds - began
    if started.lost:
        reason = f"{started.lost} of the records that it lists are not in it"
        raise NotVerified(file, reason, "verify another one, and write a new one")
    verified = VerifiedBackup(
        file,
        found.tree,
        found.time_ms,
        centre.restored or (),
        started.records,
        started.objects,
        started.held,
        elsewhere,
        seconds,
    )
    if is_piecewise(file):
        note = {"timeMs": clock.now().wall_ms, "file": file.name, "seconds": round(seconds, 1)}
        with suppress(OSError):
            BackupFolder(file.parent).write(VERIFIED, json.dumps(note).encode() + b"\n")
    return verified


@dataclass(frozen=True, slots=True)
class _Started:
    """What a centre had as it started; `lost` are records that it lists and lacks."""

    records: int
    objects: int
    lost: int
    held: Mapping[str, str]


async def _run(file: Path, centre: Centre) -> _Started:
    """Run the centre until it knows what it has; raises NotVerified, and what ends it."""
    try:
        async with asyncio.timeout(START_SECONDS), work_group() as group:
            task = group.create_task(centre.run())
            await centre.started.wait()
            controllers = running(centre.controllers)
            await controllers.caught_up()
            spaces = running(centre.workloads), running(centre.inventory)
            objects = [len((await space.list()).objects) for space in spaces]
            records, lost = len(controllers.issuer.records), len(controllers.issuer.lost)
            held = dict(controllers.translator.placements.held)
            task.cancel()
    except TimeoutError as error:
        reason = f"what was restored does not start within {START_SECONDS:g} s"
        raise NotVerified(file, reason, "verify another one") from error
    return _Started(records, sum(objects), lost, held)
