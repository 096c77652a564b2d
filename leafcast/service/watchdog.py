"""What a service manager hears of a program: that it is up, how it is, and that its loop turns.

By the protocol of sd_notify(3). Where nobody asked to be told, nothing is said.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

PINGS_IN_TIME = 3
"""So often within the time in which the manager wants to hear of it once."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServiceManager:
    """Whom to tell; `address` is that of its socket, "" if there is none."""

    address: str = ""
    # 0: nobody waits for a sign of life.
    watchdog_seconds: float = 0.0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> ServiceManager:
        """The one that started the program, by what it put into the environment."""
        try:
            microseconds = int(environment.get("WATCHDOG_USEC", "0"))
        except ValueError:
            microseconds = 0
        return cls(environment.get("NOTIFY_SOCKET", ""), max(microseconds, 0) / 1e6)

    def tell(self, line: str) -> None:
        """Tell it, if it is there: a manager that does not listen keeps nobody from his work."""
        if not self.address.startswith(("/", "@")):
            return
        # A name that begins with @ is none of the file system.
        place = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
            to.setblocking(False)  # noqa: FBT003 - the library's
            to.sendto(line.encode(), place)

    @contextmanager
    def watching(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Within it the manager hears in time that the loop turns; a loop that hangs is silent."""
        waiting: list[asyncio.TimerHandle] = []

        def alive() -> None:
            self.tell("WATCHDOG=1")
            waiting[:] = [loop.call_later(self.watchdog_seconds / PINGS_IN_TIME, alive)]

        if self.watchdog_seconds:
            alive()
        try:
            yield
        finally:
            for handle in waiting:
                handle.cancel()


def manager() -> ServiceManager:
    """The one that started this program."""
    return ServiceManager.of(os.environ)


async def attended(work: Coroutine[Any, Any, T], *, ready: bool = True) -> T:
    """Do the work, and have the service manager hear that it goes on; if `ready`, that it is up."""
    # Here, as the launcher has no loop.
    import asyncio  # noqa: PLC0415

    if ready:
        manager().tell("READY=1")
    with manager().watching(asyncio.get_running_loop()):
        return await work
