"""A session with a tree that is opened again whenever the tree was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ask.session import Session, open_session
from relay.ports import Clock

AWAY = frozenset({"NotServed", "Timeout", "Restarting", "Lost"})
"""Why a tree gave no answer that will give one later."""
AGAIN_SECONDS = 0.5

Open = Callable[[Path | None], AbstractAsyncContextManager[Session]]


class KeptSession:
    """Lends a session to whoever asks; who finds that the tree is away has it opened again."""

    def __init__(self, data_dir: Path | None, clock: Clock, opens: Open = open_session) -> None:
        self._data_dir, self._clock, self._opens = data_dir, clock, opens
        self._session: Session | None = None
        self._away: NotRunning | None = None
        self._lost, self._tried = asyncio.Event(), asyncio.Event()

    async def keep(self) -> None:
        """Keep one open until cancelled."""
        while True:
            self._lost.clear()
            try:
                async with self._opens(self._data_dir) as self._session:
                    self._tried.set()
                    await self._lost.wait()
            except NotRunning as away:
                self._away = away
                self._tried.set()
            finally:
                self._session = None
            await self._clock.sleep(AGAIN_SECONDS)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """The one that is open; raises NotRunning, and what the block raises."""
        await self._tried.wait()
        if self._session is None:
            assert self._away is not None
            raise self._away
        try:
            yield self._session
        except NotRunning as away:
            self._away = away
            self._lost.set()
            raise
        except CallFailed as failed:
            if failed.code in AWAY:
                self._away = NotRunning(self._session_folder(), failed.message, failed.remedy)
                self._lost.set()
            raise

    def _session_folder(self) -> Path:
        return self._session.data_dir.folder if self._session else self._data_dir or Path()
