"""Beside each node: fetches the release that is wanted of it, and says what came of it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from leafcast.upgrades.chosen import (
    LOOK_SELDOM_SECONDS,
    ChosenHere,
    Generations,
    generations,
)
from leafcast.upgrades.fetching import NotHere, ReleaseFetching
from leafcast.upgrades.held_back import why_held_back
from leafcast.upgrades.release_folder import ReleaseFolder, here
from leafcast.upgrades.standing import NEEDS_FILES, Choice, ReleaseStanding, standing_of
from relay.core.events import RunningStated
from relay.ports import Clock
from relay.shell.driver import Driver
from schemas.content.blobs import Reference
from schemas.records.records import ReleaseRecord
from schemas.records.release_body import ReleaseBody
from schemas.reports.running import ReleaseState, running_here

LOOK_SECONDS = 1.0
"""So often the launcher's word is looked at, where one runs this node."""
log = logging.getLogger("leafcast.upgrades")


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
        of_centre: bool = False,
    ) -> None:
        """Without a folder nothing is ever installed through the tree."""
        self._folder = ReleaseFolder(folder, of_centre) if folder is not None else None
        self._version = version
        self._clock = clock
        self._look_seconds = look_seconds
        self._fetching: ReleaseFetching | None = None
        if self._folder is not None:
            self._fetching = ReleaseFetching(self._folder, platform or here(), clock)
        self._chosen = ChosenHere(clock)
        self._told_why = ""

    async def run(self, driver: Driver) -> None:
        """Look whenever the tree chose something else, and at what the launcher says."""
        await driver.started.wait()
        if self._folder is not None:
            # Of a node on one machine, which waits for no other one.
            await asyncio.to_thread(self._folder.take_no_turns)
            await asyncio.to_thread(self._folder.clear_drafts)
        while True:
            seen = generations(driver.node)
            has_launcher = await self._look(driver)
            await self._pass(driver, seen, often=has_launcher)

    async def _pass(self, driver: Driver, seen: Generations, *, often: bool) -> None:
        """Wait until the record is another one, or the launcher is to be looked at again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_seconds if often else LOOK_SELDOM_SECONDS):
                while generations(driver.node) == seen:
                    await driver.progress()

    async def _look(self, driver: Driver) -> bool:
        """Say how it stands, and fetch what is to be fetched; whether a launcher runs this node."""
        folder, fetching, record = self._folder, self._fetching, driver.node.release
        launcher = folder.launcher() if folder is not None else None
        choice = self._chosen.of(driver)
        noted = folder.wanted() if folder is not None else None
        is_pinned = folder is not None and folder.is_pinned
        standing = standing_of(choice, launcher, noted, is_pinned=is_pinned)
        if choice is not None and choice.may_begin and await self._is_lost(record, standing):
            standing = replace(standing, fetches=True)
        if fetching is not None and not standing.fetches:
            fetching.rest()
        elif fetching is not None and fetching.refused:
            standing = ReleaseStanding(ReleaseState.REFUSED, fetching.refused, fetches=True)
        await self._say(driver, choice, standing)
        if standing.fetches and fetching is not None and record is not None:
            await fetching.fetch(record.release, partial(self._load, driver, record.release))
        return launcher is not None

    async def _is_lost(self, record: ReleaseRecord | None, standing: ReleaseStanding) -> bool:
        """Whether the launcher cannot have it, as files are gone that were here."""
        if record is None or self._fetching is None or standing.state not in NEEDS_FILES:
            return False
        return await self._fetching.lacks(record.release)

    async def _say(self, driver: Driver, choice: Choice | None, standing: ReleaseStanding) -> None:
        # The version is the own one: a launcher writes down first what it is about to run.
        wanted, wave = (choice.wanted.version, choice.wave) if choice is not None else ("", 0)
        path = str(driver.config.path)
        why = standing.why or why_held_back(standing.state, driver.node.lacks_wire)
        if why and why != self._told_why:
            log.warning("%s: %s", path, why)
        self._told_why = why
        said = running_here(path, self._version, wanted, wave, standing.state, why)
        await driver.observe(RunningStated(said))

    async def _load(self, driver: Driver, body: ReleaseBody, reference: Reference) -> bytes:
        """Bytes of the own store or of the parent; raises NotHere, also if another is chosen."""
        record = driver.node.release
        if record is None or record.release.manifest != body.manifest:
            raise NotHere("another release was chosen")
        data = await driver.load(reference)
        if data is None:
            raise NotHere(f"the parent has not all of it yet: {reference.address[:12]}")
        return data
