"""Beside each node: fetches the release that is wanted of it, and says what came of it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from leafcast.upgrades.held_back import why_held_back
from leafcast.upgrades.release_folder import ReleaseFolder, here, wanted_by
from leafcast.upgrades.standing import Choice, ReleaseStanding, standing_of
from relay.core.events import RunningStated
from relay.core.release_waves import may_begin
from relay.core.view import NodeView
from relay.ports import Clock
from relay.shell.driver import Driver
from schemas.content.blobs import Reference
from schemas.records.records import ReleaseRecord
from schemas.records.release_body import ReleaseBody, ReleasePiece, ReleaseWave
from schemas.releases.release_folder import LaunchNote
from schemas.reports.running import ReleaseState, running_here

LOOK_SECONDS = 1.0
"""So often the launcher's word is looked at, where one runs this node."""
LOOK_SELDOM_SECONDS = 60.0
FETCH_AGAIN_SECONDS, FETCH_AGAIN_MAX_SECONDS = 2.0, 60.0
log = logging.getLogger("leafcast.upgrades")


_Seen = tuple[int, int]
"""The generations of the release and of the own profile that were looked at."""


class _NotHere(Exception):
    """Something of a release cannot be had now; it is asked for again."""


class ReleaseKeeper:
    """Keeps one node's folder of releases in step with what the tree wants, and reports."""

    def __init__(
        self,
        folder: Path | None,
        version: str,
        clock: Clock,
        *,
        platform: str = "",
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Without a folder nothing is ever installed through the tree."""
        self._folder = ReleaseFolder(folder) if folder is not None else None
        self._version = version
        self._clock = clock
        self._platform = platform or here()
        self._look_seconds = look_seconds
        # Since when what the tree wants is fetched in vain, and how long to wait then.
        self._pause = FETCH_AGAIN_SECONDS
        self._fetch_at = 0.0
        self._refused = ""
        # Which wave admits this node, as it was looked up last, and for what.
        self._own_wave: ReleaseWave | None = None
        self._looked: _Seen = (0, 0)
        self._look_at = 0.0
        self._told_why = ""

    async def run(self, driver: Driver) -> None:
        """Look whenever the tree chose something else, and at what the launcher says."""
        await driver.started.wait()
        while True:
            seen = _seen(driver.node)
            has_launcher = await self._look(driver)
            await self._pass(driver, seen, often=has_launcher)

    async def _pass(self, driver: Driver, seen: _Seen, *, often: bool) -> None:
        """Wait until the record is another one, or the launcher is to be looked at again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_seconds if often else LOOK_SELDOM_SECONDS):
                while _seen(driver.node) == seen:
                    await driver.progress()

    async def _look(self, driver: Driver) -> bool:
        """Say how it stands, and fetch what is to be fetched; whether a launcher runs this node."""
        folder, record = self._folder, driver.node.release
        launcher = folder.launcher() if folder is not None else None
        choice = self._choice(driver, record)
        noted = folder.wanted() if folder is not None else None
        is_pinned = folder is not None and folder.is_pinned
        standing = standing_of(choice, launcher, noted, is_pinned=is_pinned)
        if (
            choice is not None
            and choice.may_begin
            and await self._is_lost(folder, record, standing)
        ):
            standing = replace(standing, fetches=True)
        if not standing.fetches:
            self._refused, self._pause, self._fetch_at = "", FETCH_AGAIN_SECONDS, 0.0
        elif self._refused:
            standing = ReleaseStanding(ReleaseState.REFUSED, self._refused, fetches=True)
        await self._say(driver, choice, launcher, standing)
        due = self._clock.now().seconds >= self._fetch_at
        if standing.fetches and due and folder is not None and record is not None:
            await self._fetch(driver, folder, record.release)
        return launcher is not None

    async def _is_lost(
        self, folder: ReleaseFolder | None, record: ReleaseRecord | None, standing: ReleaseStanding
    ) -> bool:
        """Whether the launcher could not have it, as files are gone that were here."""
        if folder is None or record is None or standing.state is not ReleaseState.REFUSED:
            return False
        try:
            return await asyncio.to_thread(folder.lacks, record.release, self._platform)
        except OSError:
            return False

    def _choice(self, driver: Driver, record: ReleaseRecord | None) -> Choice | None:
        wave, now = self._wave(driver.node), self._clock.now()
        if record is None or wave is None or driver.config.path.is_root:
            # A centre is upgraded by a person: it goes on with what it began.
            return None
        wanted = wanted_by(record.release)
        begins = may_begin(wave, driver.node.profile, now.wall_ms)
        return Choice(wanted, wave.number, may_begin=begins)

    def _wave(self, node: NodeView) -> ReleaseWave | None:
        """Which wave admits this node; a relay, which looks at all below it, looks seldom."""
        now = self._clock.now().seconds
        if _seen(node) != self._looked or now >= self._look_at:
            self._looked, self._look_at = _seen(node), now + LOOK_SELDOM_SECONDS
            self._own_wave = node.release_wave()
        return self._own_wave

    async def _say(
        self,
        driver: Driver,
        choice: Choice | None,
        launcher: LaunchNote | None,
        standing: ReleaseStanding,
    ) -> None:
        version = launcher.running if launcher is not None and launcher.running else self._version
        wanted, wave = (choice.wanted.version, choice.wave) if choice is not None else ("", 0)
        path = str(driver.config.path)
        why = standing.why or why_held_back(standing.state, driver.node.lacks_wire)
        if why and why != self._told_why:
            log.warning("%s: %s", path, why)
        self._told_why = why
        said = running_here(path, version, wanted, wave, standing.state, why)
        await driver.observe(RunningStated(said))

    async def _fetch(self, driver: Driver, folder: ReleaseFolder, body: ReleaseBody) -> None:
        """Bring what this machine needs of a release into the folder, then say that it is wanted.

        What is there already is not fetched again.
        """
        try:
            await self._fetch_all(driver, folder, body)
            await asyncio.to_thread(folder.want, wanted_by(body))
        except _NotHere as lacking:
            log.info("release %s is not here yet: %s", body.version, lacking)
        except OSError as error:
            self._refused = f"it cannot be kept: {error}"
        else:
            self._refused, self._fetch_at = "", 0.0
            return
        self._fetch_at = self._clock.now().seconds + self._pause
        self._pause = min(2 * self._pause, FETCH_AGAIN_MAX_SECONDS)

    async def _fetch_all(self, driver: Driver, folder: ReleaseFolder, body: ReleaseBody) -> None:
        await asyncio.to_thread(folder.begin, body)
        needed = body.pieces_of(self._platform)
        size = sum(piece.size for piece, _ in needed)
        if why := await asyncio.to_thread(folder.lacks_room, size):
            raise OSError(why)
        if not await asyncio.to_thread(folder.has_manifest, body):
            data = await self._load(driver, body, body.content[0])
            if not await asyncio.to_thread(folder.put_manifest, body, data):
                raise _NotHere("its manifest is another than the one that was chosen")
        for piece, stretches in needed:
            if not await asyncio.to_thread(folder.has_piece, piece):
                await self._fetch_piece(driver, folder, body, piece, stretches)

    async def _fetch_piece(
        self,
        driver: Driver,
        folder: ReleaseFolder,
        body: ReleaseBody,
        piece: ReleasePiece,
        stretches: tuple[Reference, ...],
    ) -> None:
        for at, reference in enumerate(stretches):
            data = await self._load(driver, body, reference)
            await asyncio.to_thread(folder.put_stretch, piece, data, first=not at)
        if not await asyncio.to_thread(folder.complete, piece):
            raise _NotHere(f"piece {piece.sha256[:12]} has another hash than its record names")

    async def _load(self, driver: Driver, body: ReleaseBody, reference: Reference) -> bytes:
        """Bytes of the own store or of the parent; raises _NotHere, also if another is chosen."""
        record = driver.node.release
        if record is None or record.release.manifest != body.manifest:
            raise _NotHere("another release was chosen")
        data = await driver.load(reference)
        if data is None:
            raise _NotHere(f"the parent has not all of it yet: {reference.address[:12]}")
        return data


def _seen(node: NodeView) -> _Seen:
    record, profile = node.release, node.profile
    return (record.generation if record else 0, profile.generation if profile else 0)
