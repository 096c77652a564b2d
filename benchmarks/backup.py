"""Backups of 10,000 placements: the first, one after a change to some, and one put back.

A centre on a nats-server, with a ConfigMap of 1.5 kB for each placement. Beside it a plain copy of
what its server stores, file by file, each synced.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, own_cpu_seconds
from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.backup_settings import BackupSettings
from leafcast.backups.centre_files import tree_of
from leafcast.backups.operator_keys import OperatorKey
from leafcast.backups.piecewise import write_piecewise
from leafcast.centre.backup_verification import verify_backup
from leafcast.centre.centre import Centre, running
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock
from schemas.content.operator_box import public_half
from schemas.values.groups import GROUP, VERSION

PLACEMENTS, CHANGED = 10_000, 100
TEXT_BYTES, AT_ONCE = 1_500, 100
KEY = OperatorKey(b"k" * 32)
SECONDS_GOAL, SHARE_GOAL = 60.0, 0.1

Object = dict[str, Any]


def config_map(number: int, text: str) -> Object:
    metadata = {"name": f"c{number}", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def placement(number: int) -> Object:
    clause = {
        "apiGroup": "",
        "resources": ["configmaps"],
        "namespaces": ["shop"],
        "objectNames": [f"c{number}"],
    }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "EdgePlacement",
        "metadata": {"name": f"p{number}"},
        "spec": {"locationSelectors": [{}], "downsync": [clause]},
    }


async def apply_all(centre: Centre, objects: Sequence[Object]) -> None:
    """Write them, many at a time, and wait until the ledger says them."""
    for at in range(0, len(objects), AT_ONCE):
        async with asyncio.TaskGroup() as group:
            for obj in objects[at : at + AT_ONCE]:
                group.create_task(centre.apply([obj]))
    await running(centre.controllers).caught_up()


class Copied:
    """What is written and how long that takes."""

    def __init__(self, place: DataDir, centre: Centre, to: Path) -> None:
        self._place, self._centre = place, centre
        self._folder = BackupFolder(to)
        self._folder.begin(tree_of(place))
        self._settings = BackupSettings(900, 96, str(to), public_half(KEY.private), b"s" * 32)

    async def backup(self) -> tuple[float, float, int, Path]:
        """Seconds, seconds of processor time, bytes, and the file."""
        began, used = time.monotonic(), own_cpu_seconds()
        written = await write_piecewise(
            self._folder, self._settings, self._place, self._centre.streams(), SystemClock()
        )
        took, cpu = time.monotonic() - began, own_cpu_seconds() - used
        return took, cpu, written.bytes, self._folder.folder / written.file


def plain_copy(source: Path, target: Path) -> tuple[float, int]:
    """Copy all files, each synced: seconds and bytes."""
    began, size = time.monotonic(), 0
    for file in source.rglob("*"):
        if file.is_file():
            there = target / file.relative_to(source)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, there)
            with there.open("rb") as copied:
                os.fsync(copied.fileno())
            size += file.stat().st_size
    return time.monotonic() - began, size


async def measure(folder: Path, report: Report, count: int, changed: int) -> None:
    dice = random.Random(7)
    texts = [dice.randbytes(TEXT_BYTES // 2).hex() for _ in range(count)]
    place = DataDir(folder / "tree")
    place.folder.mkdir()
    async with asyncio.TaskGroup() as group:
        centre = Centre(place)
        task = group.create_task(centre.run())
        await centre.started.wait()
        await centre.apply(
            [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}]
        )
        await apply_all(centre, [config_map(at, text) for at, text in enumerate(texts)])
        await apply_all(centre, [placement(at) for at in range(count)])
        copied = Copied(place, centre, folder / "to")
        first = await copied.backup()
        await apply_all(centre, [config_map(at, "changed") for at in range(changed)])
        second = await copied.backup()
        third = await copied.backup()
        task.cancel()
    raw = plain_copy(place.folder / "centre" / "jetstream", folder / "copy")
    verified = await verify_backup(second[3], KEY, folder / "scratch", lambda _: None)
    for name, seen in (("first", first), (f"after {changed} changes", second), ("again", third)):
        report.row(name, f"{seen[0]:.1f}", f"{seen[1]:.1f}", f"{seen[2] / 1e6:.2f}")
    report.row("a plain copy, synced", f"{raw[0]:.1f}", "", f"{raw[1] / 1e6:.2f}")
    report.row("restored, compared and started", f"{verified.seconds:.1f}", "", "")
    report.note(f"{count} placements, {verified.records} records, {verified.objects} objects")
    report.goal("seconds of the first", first[0], SECONDS_GOAL)
    report.goal("bytes of the second over the first", second[2] / first[2], SHARE_GOAL)


async def main(count: int = PLACEMENTS, changed: int = CHANGED) -> None:
    columns = ("what", "seconds", "processor time", "MB")
    report = Report("backup", f"Backups of {count} placements", columns)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "scratch").mkdir()
        await measure(Path(folder), report, count, changed)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main())
