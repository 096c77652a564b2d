"""Backups of a running centre on a timer: set by a person, kept over restarts, tried again.

The first one is written before a setting is taken: what cannot work is told at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.backup_settings import (
    BackupSettings,
    BackupStanding,
    keep_settings,
    keep_standing,
    kept_settings,
    kept_standing,
)
from leafcast.backups.centre_files import is_same_disk, tree_of
from leafcast.backups.centre_streams import CentreServer
from leafcast.backups.operator_keys import MAKE_ONE
from leafcast.backups.piecewise import WrittenBackup, write_piecewise
from leafcast.backups.refusals import BackupUnusable, disk_remedy
from leafcast.data_dir import DataDir
from relay.ports import BusBroken, Clock, Dice
from schemas.content.operator_box import KEY_BYTES

AGAIN_SECONDS_MIN = 60.0
"""After a backup that failed; then twice as long each time, up to the interval."""
LATE_SECONDS = 600.0
"""After so long, or after the interval, a backup that is being written is told of."""
SEE_DISK = "see whether its disk answers, or is mounted from a machine that does"
FOLDER_SECONDS = 5.0
"""So long who asks waits for what the folder says; then it is what it said last."""
ANSWER_SECONDS = 30.0
"""So long a person who names a folder waits for its disk to answer."""
LATEST_SECONDS = 3600.0
"""So long it sleeps at most: a clock that is set is noticed then."""

Note = Callable[[str, str, str], None]


class _Target:
    """A folder that backups are written to, by one at a time."""

    def __init__(self, to: str) -> None:
        self.to, self.folder = to, BackupFolder(Path(to))
        self.writing = asyncio.Lock()
        # What it said of the last verification.
        self.verified = dict[str, Any]()
        self._asked: asyncio.Future[dict[str, Any]] | None = None
        self._asked_at = 0.0

    async def verification(self, clock: Clock) -> dict[str, Any]:
        """What lies there of the last verification; what was read last while its disk hangs."""
        now = clock.now().seconds
        if self._asked is None:
            self._asked, self._asked_at = self.folder.thread.begin(self.folder.verified), now
        asked, left = self._asked, self._asked_at + FOLDER_SECONDS - now
        await asyncio.wait([asked], timeout=max(left, 0))
        if asked.done():
            if self._asked is asked:
                self._asked = None
            with suppress(OSError):
                self.verified = asked.result()
        return self.verified


log = logging.getLogger("leafcast.backups")


class BackupTimer:
    """The timer of one centre; `streams` raises BusBroken while it has no server."""

    def __init__(
        self,
        place: DataDir,
        streams: Callable[[], CentreServer],
        clock: Clock,
        dice: Dice,
        note: Note,
    ) -> None:
        self._place, self._streams = place, streams
        self._clock, self._dice, self._note = clock, dice, note
        self._set = asyncio.Event()
        # After a failure: when it is tried again, by the monotonic clock, and how long that took.
        self._again_at = self._pause = 0.0
        self._trouble = ""
        try:
            self.settings = kept_settings(place.folder)
        except BackupUnusable as error:
            self.settings, self._trouble = BackupSettings(), str(error)
        self.standing = kept_standing(place.folder)
        self._targets = {self.settings.to: _Target(self.settings.to)}

    async def run(self) -> None:
        """Write backups as they are due, until cancelled."""
        while True:
            self._set.clear()
            left = self._left()
            if left is None or left > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left or LATEST_SECONDS, LATEST_SECONDS)):
                        await self._set.wait()
            else:
                await self._write_due()

    @property
    def trouble(self) -> str:
        """Why backups that are asked for are not made; "" if they are, or none are asked for."""
        standing = self.standing
        if self._trouble:
            return self._trouble
        if not self.settings.seconds or not standing.failing_ms:
            return ""
        return f"{standing.reason}; {standing.remedy}"

    async def facts(self) -> dict[str, Any]:
        """What people are told; see leafcast.doctor.findings.BackupFacts."""
        standing, verified = self.standing, dict[str, Any]()
        if self.settings.to:
            verified = await self._target(self.settings.to).verification(self._clock)
        failed = verified.get("failed")
        failed = failed if isinstance(failed, dict) else {}
        return {
            **self.settings.form(),
            "made_ms": standing.made_ms,
            "file": standing.file,
            "bytes": standing.bytes,
            "took_seconds": standing.seconds,
            "same_disk": standing.same_disk,
            "whole_same_disk": standing.whole_same_disk,
            "whole_ms": standing.whole_ms,
            "failing_ms": standing.failing_ms,
            "trouble": self.trouble,
            "verified_ms": _number(verified.get("timeMs")),
            "verified_file": str(verified.get("file", "")),
            "restore_seconds": _number(verified.get("seconds")),
            "damaged_ms": _number(failed.get("timeMs")),
            "damaged_reason": str(failed.get("reason", "")),
            "damaged_remedy": str(failed.get("remedy", "")),
        }

    async def change(
        self, seconds: int | None, keep: int | None, to: str, public: bytes
    ) -> WrittenBackup | None:
        """Take what a person says, the rest stays; the first backup by it, None if none is asked.

        It waits for no folder but the one that is meant. Raises BackupUnusable, OSError, BusBroken;
        then all is as before.
        """
        wanted = self._wanted(seconds, keep, to, public)
        written = None
        if wanted.seconds:
            target = self._target(wanted.to)
            # A folder that was in use and is gone is on a disk that is not mounted.
            makes = bool(to) or not self.standing.made_ms
            try:
                await self._begin(target.folder, makes=makes)
                async with target.writing:
                    written = await self._write(target.folder, wanted)
            except OSError as error:
                where, why = error.filename or wanted.to, str(error.strerror or error)
                raise BackupUnusable(Path(where), why, disk_remedy(error)) from error
        keep_settings(self._place.folder, wanted)
        self.settings, self._trouble = wanted, ""
        # One before may hang for ever.
        self._targets = {wanted.to: self._target(wanted.to)}
        if written is None:
            self.standing = replace(self.standing, failing_ms=0, reason="", remedy="")
        keep_standing(self._place.folder, self.standing)
        self._set.set()
        return written

    def _target(self, to: str) -> _Target:
        return self._targets.setdefault(to, _Target(to))

    async def _begin(self, folder: BackupFolder, *, makes: bool) -> None:
        """See that the folder answers and is this tree's; raises BackupUnusable, OSError."""
        look = folder.begin if makes else folder.check
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await folder.thread.run(look, tree_of(self._place))
        except TimeoutError as error:
            raise BackupUnusable(folder.folder, "it does not answer", SEE_DISK) from error

    def wrote_whole(self, *, same_disk: bool) -> None:
        """Take note of a backup in a file of its own, and where it lies."""
        self.standing = replace(
            self.standing, whole_ms=self._clock.now().wall_ms, whole_same_disk=same_disk
        )
        _keep_if_possible(self._place.folder, self.standing)

    def _wanted(
        self, seconds: int | None, keep: int | None, to: str, public: bytes
    ) -> BackupSettings:
        now = self.settings
        wanted = BackupSettings(
            now.seconds if seconds is None else seconds,
            now.keep if keep is None else keep,
            to or now.to,
            public or now.public,
            now.secret or self._dice.entropy(KEY_BYTES),
        )
        if wanted.seconds and not wanted.to:
            reason = "no folder is named"
            raise BackupUnusable(self._place.folder, reason, "say --to DIR")
        if wanted.seconds and not wanted.public:
            reason = "there is no key of yours to close backups for"
            remedy = f"{MAKE_ONE}, and say --key FILE.pub"
            raise BackupUnusable(self._place.folder, reason, remedy)
        return wanted

    def _left(self) -> float | None:
        """Seconds until the next backup is due; None if none is asked for."""
        settings, standing = self.settings, self.standing
        if not settings.seconds:
            return None
        if standing.failing_ms:
            return self._again_at - self._clock.now().seconds
        since = (self._clock.now().wall_ms - standing.made_ms) / 1000
        # A clock that was set back makes nobody wait for longer than the interval.
        return settings.seconds - since if since >= 0 else 0.0

    async def _write_due(self) -> None:
        """Write one; of a disk that does not answer it is told meanwhile.

        It is waited for until a person sets something else, such as another folder.
        """
        late = max(LATE_SECONDS, float(self.settings.seconds))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(it) for it in (self._try_to_write(), self._set.wait())]
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(tasks, timeout=late, return_when=first)
            if not done:
                self._failed(f"{self.settings.to}: it does not answer", SEE_DISK)
                await asyncio.wait(tasks, return_when=first)
            for task in tasks:
                task.cancel()

    async def _try_to_write(self) -> None:
        settings = self.settings
        try:
            target = self._target(settings.to)
            async with target.writing:
                await self._write(target.folder, settings)
        except BackupUnusable as error:
            self._failed(f"{error.what}: {error.reason}", error.remedy)
        except BusBroken as error:
            self._failed(str(error), "it is tried again")
        except OSError as error:
            reason = str(error.strerror or error)
            self._failed(f"{settings.to}: {reason}", disk_remedy(error))
        _keep_if_possible(self._place.folder, self.standing)

    def _failed(self, reason: str, remedy: str) -> None:
        if not self.standing.failing_ms:
            self._note("BackupFailed", "backups", f"{reason}; {remedy}")
        self.standing = self.standing.failed(self._clock.now().wall_ms, reason, remedy)
        log.warning("no backup was written: %s; %s", reason, remedy)
        self._pause = min(2 * self._pause or AGAIN_SECONDS_MIN, float(self.settings.seconds))
        self._again_at = self._clock.now().seconds + self._pause

    async def _write(self, folder: BackupFolder, settings: BackupSettings) -> WrittenBackup:
        began = self._clock.now().seconds
        written = await write_piecewise(folder, settings, self._place, self._streams(), self._clock)
        took = self._clock.now().seconds - began
        same_disk = await folder.thread.run(is_same_disk, self._place.folder, folder.folder)
        self.standing = BackupStanding(
            written.time_ms,
            written.file,
            written.bytes,
            took,
            whole_ms=self.standing.whole_ms,
            same_disk=same_disk,
            whole_same_disk=self.standing.whole_same_disk,
        )
        self._pause = 0.0
        log.info("backup %s: %d bytes in %.1f s", written.file, written.bytes, took)
        return written


def _keep_if_possible(folder: Path, standing: BackupStanding) -> None:
    """The disk of the data directory may be full: the next start then knows less."""
    try:
        keep_standing(folder, standing)
    except OSError as error:
        log.warning("how the last backup went is not kept: %s", error)


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0
