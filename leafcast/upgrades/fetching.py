"""Brings what a machine needs of a release into the folder that it shares with its launcher."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from leafcast.upgrades.release_folder import ReleaseFolder, wanted_by
from relay.ports import Clock
from schemas.content.blobs import Reference
from schemas.records.release_body import ReleaseBody, ReleasePiece
from schemas.releases.release_folder import WantedRelease
from schemas.releases.release_refused import retry_of

FETCH_AGAIN_SECONDS, FETCH_AGAIN_MAX_SECONDS = 2.0, 60.0
WRONG_MAX = 3
"""So often a file that comes with other bytes than its record names is fetched again."""
log = logging.getLogger("leafcast.upgrades")

LoadStretch = Callable[[Reference], Awaitable[bytes]]
"""Bytes of a release's content, checked; raises NotHere."""


class NotHere(Exception):
    """Something of a release cannot be had now; it is asked for again."""


class _Wrong(NotHere):
    """All of a file came, and it is another one."""


class ReleaseFetching:
    """Fetches, and waits longer each time that it does so in vain.

    `refused` says why what came cannot be kept, "" if it can be.
    """

    def __init__(self, folder: ReleaseFolder, platform: str, clock: Clock) -> None:
        self._folder, self._platform, self._clock = folder, platform, clock
        self.refused = ""
        self._pause, self._again_at = FETCH_AGAIN_SECONDS, 0.0
        # How often a file of this try of a release came wrong.
        self._wanted: WantedRelease | None = None
        self._wrong = 0

    def rest(self) -> None:
        """Nothing is to be fetched: the next fetch begins at once."""
        self.refused, self._pause, self._again_at = "", FETCH_AGAIN_SECONDS, 0.0
        self._wrong = 0

    async def fetch(self, body: ReleaseBody, load: LoadStretch) -> None:
        """Bring all of it here, then say that it is wanted; nothing while it waits.

        What is there already is not fetched again.
        """
        if self._wanted != (wanted := wanted_by(body)):
            self.rest()
            self._wanted = wanted
        if self._clock.now().seconds < self._again_at or self._wrong > WRONG_MAX:
            return
        try:
            await self._fetch_all(body, load)
            await asyncio.to_thread(self._folder.want, wanted)
        except _Wrong as wrong:
            self._wrong += 1
            log.warning("release %s: %s", body.version, wrong)
            if self._wrong > WRONG_MAX:
                self.refused = f"{wrong}, {self._wrong} times; {retry_of(body.version)}"
        except NotHere as lacking:
            log.info("release %s is not here yet: %s", body.version, lacking)
        except OSError as error:
            self.refused = f"it cannot be kept: {error}"
        else:
            self.refused, self._again_at = "", 0.0
            return
        self._again_at = self._clock.now().seconds + self._pause
        self._pause = min(2 * self._pause, FETCH_AGAIN_MAX_SECONDS)

    async def lacks(self, body: ReleaseBody) -> bool:
        """Whether a file of it is not here; not if that cannot be seen."""
        try:
            return await asyncio.to_thread(self._folder.lacks, body, self._platform)
        except OSError:
            return False

    async def _fetch_all(self, body: ReleaseBody, load: LoadStretch) -> None:
        folder = self._folder
        await asyncio.to_thread(folder.begin, body)
        needed = await asyncio.to_thread(folder.lacking, body, self._platform)
        size = sum(piece.size for piece, _ in needed)
        if why := await asyncio.to_thread(folder.lacks_room, size):
            raise OSError(why)
        if not await asyncio.to_thread(folder.has_manifest, body):
            data = await load(body.content[0])
            if not await asyncio.to_thread(folder.put_manifest, body, data):
                raise _Wrong("its manifest is another than the one that was chosen")
        for piece, stretches in needed:
            await self._fetch_piece(piece, stretches, load)

    async def _fetch_piece(
        self, piece: ReleasePiece, stretches: tuple[Reference, ...], load: LoadStretch
    ) -> None:
        for at, reference in enumerate(stretches):
            data = await load(reference)
            await asyncio.to_thread(self._folder.put_stretch, piece, data, first=not at)
        if not await asyncio.to_thread(self._folder.complete, piece):
            raise _Wrong(f"piece {piece.sha256[:12]} has another hash than its record names")
