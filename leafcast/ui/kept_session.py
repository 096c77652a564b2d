"""A session with a tree that is opened again whenever the tree was away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from leafcast.ask.failures import AWAY, CallFailed, NotRunning
from leafcast.ask.session import Session, open_session
from relay.ports import Clock

_LOST = AWAY - {"Timeout"}
"""Those that say so of the session as such; a question that takes too long may do so alone."""
_OF_NODES = frozenset({"ask", "doctor", "plan-make", "trace", "why"})
"""What the centre asks other nodes for: of these verbs it may be they that are late."""
AGAIN_SECONDS = 0.5

Open = Callable[[Path | None], AbstractAsyncContextManager[Session]]


def is_away(failed: CallFailed) -> bool:
    """Whether the tree as such does not answer, and not just a node that was asked."""
    by_nodes = failed.verb in _OF_NODES and failed.code in ("Restarting", "Timeout")
    return failed.code in AWAY and not by_nodes


class KeptSession:
    """Lends a session to whoever asks; who finds that the tree is away has it opened again."""

    def __init__(self, data_dir: Path | None, clock: Clock, opens: Open = open_session) -> None:
        self._data_dir, self._clock, self._opens = data_dir, clock, opens
        self._session: Session | None = None
        self._away: NotRunning | None = None
        self._answered = 0
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
        session, answered = self._session, self._answered
        try:
            yield session
            self._answered += 1
        except NotRunning as away:
            self._end(session, away)
            raise
        except CallFailed as failed:
            # Nobody else was answered meanwhile, so it may be that nobody hears this session.
            alone = self._answered == answered
            lost = failed.code in _LOST and is_away(failed)
            if lost or (failed.code in AWAY and alone):
                folder = session.data_dir.folder
                self._end(session, NotRunning(folder, failed.message, failed.remedy))
            raise

    def _end(self, session: Session, away: NotRunning) -> None:
        """Have another one opened, unless that was done since."""
        if session is self._session:
            self._away = away
            self._lost.set()
