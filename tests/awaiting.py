"""Waiting: for an object by its space's own watch, for what nothing tells of by looking again."""

import asyncio
import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relay.space_port import Interest, Interests

WAIT_SECONDS = 80
LOOK_SECONDS, REST_SECONDS_MAX = 0.02, 0.5
LAST_LOOK_SECONDS = 10
"""How much longer than the time there is a look may take, before it counts as stuck."""

LOADED_SECONDS_MAX = 20.0
"""What is done soon takes no longer, however busy the machine is."""


async def until_object(space, key, holds, seconds=WAIT_SECONDS):
    """The object, or None where there is none, as soon as `holds` says yes to it."""
    moved = asyncio.Event()

    async def tell(_event):
        moved.set()

    async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
        interests = Interests([Interest(key.group, key.resource)])
        following = group.create_task(space.follow(interests, tell))
        await moved.wait()
        while not holds(found := await space.get(key)):
            moved.clear()
            await moved.wait()
        following.cancel()
    return found


async def until_gone(space, key):
    """Wait until there is no such object."""
    await until_object(space, key, lambda found: found is None)


async def eventually(
    holds, said="it did not come to be", *, seconds=WAIT_SECONDS, every=LOOK_SECONDS
):
    """Look until a fact, plain or to be awaited, holds; for what tells no one that it changed.

    Returns what it is then. If time is up it fails with `said`: a text, or what makes one.
    """
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        found = holds()
        if inspect.isawaitable(found):
            found = await _seen(found, end, said)
        if found:
            return found
        assert time.monotonic() < end, _text(said)
        await asyncio.sleep(max(every, _rest(began)))


async def _seen(look, end, said):
    """What a look sees; one that does not end fails, too."""
    stuck = asyncio.timeout(max(0, end - time.monotonic()) + LAST_LOOK_SECONDS)
    try:
        async with stuck:
            return await look
    except TimeoutError:
        assert not stuck.expired(), f"looking does not end; before that: {_text(said)}"
        raise


def until(holds, said="it did not come to be", *, seconds=WAIT_SECONDS):
    """As `eventually`, for a plain fact and a test without a loop."""
    began = time.monotonic()
    end = began + seconds
    while not (found := holds()):
        assert time.monotonic() < end, _text(said)
        time.sleep(_rest(began))
        began = time.monotonic()
    return found


def _rest(began):
    """How long to pause after a look: one that is a command takes time from what is waited for."""
    return max(LOOK_SECONDS, min((time.monotonic() - began) / 2, REST_SECONDS_MAX))


@dataclass
class Taken:
    """How many seconds it took, and in how many of them some process of this machine waited."""

    seconds: float = 0.0
    stalled: float = 0.0


@contextmanager
def soon(seconds: float, loaded: float = LOADED_SECONDS_MAX) -> Iterator[Taken]:
    """What is done within takes so long at most, where no process waits for another one.

    Those seconds are added in which one did wait, for a processor or a disk, up to `loaded` in all.
    """
    taken, stalled, began = Taken(), _stalled_seconds(), time.monotonic()
    yield taken
    taken.seconds, taken.stalled = time.monotonic() - began, _stalled_seconds() - stalled
    assert taken.seconds < max(seconds, min(loaded, seconds + taken.stalled)), taken


def _stalled_seconds():
    """Since the machine was started; 0 where nobody counts it."""
    files = [Path("/proc/pressure") / name for name in ("cpu", "io")]
    said = [file.read_text().split("total=")[1].split()[0] for file in files if file.exists()]
    return sum(map(int, said)) / 1e6


def _text(said):
    return said() if callable(said) else said
