"""Work that a signal ends in good order: what it started is stopped before the program goes on.

A second signal ends the program at once; what runs then is the guardian's
(relay.adapters.server.guard). Who does not stop on the first is told again, and in the end left to
the guardian, too.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STOPPING_SECONDS, INSISTING_SECONDS = 8.0, 2.0
INSISTENCES_MAX = 10
_SHOW_CURSOR = "\x1b[?25h"


class EndedBySignal(Exception):
    """A signal ended the work; `exit_code` is what shells expect of a program ended by it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


def run_until_signal(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end; SIGINT, SIGTERM and SIGHUP cancel it. Raises Ended if one did.

    A signal that is ignored when the program starts (`nohup`) stays ignored.
    """
    return asyncio.run(_attended(work))


async def _attended(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    loop = asyncio.get_running_loop()

    def end(number: int) -> None:
        if received:
            _leave(number)
        received.append(number)
        task.cancel()
        loop.call_later(STOPPING_SECONDS, insist, INSISTENCES_MAX)

    def insist(left: int) -> None:
        if not left:
            _leave(received[0])
        # A library may swallow a cancellation: who forgot is told again.
        for waiting in asyncio.all_tasks(loop):
            waiting.cancel()
        loop.call_later(INSISTING_SECONDS, insist, left - 1)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end, number)
    try:
        return await work
    except BaseException:
        # Whatever stopping brought about, the signal is why.
        if received:
            raise EndedBySignal(received[0]) from None
        raise


def _leave(number: int) -> NoReturn:
    """End at once; what still runs is the guardian's."""
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR.encode())
    os._exit(128 + number)
