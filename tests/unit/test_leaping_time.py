"""Seconds that nothing but timers waits for pass at once; those of threads and sockets do not."""

import asyncio
import socket
import threading
import time

import pytest

from tests.leaping_time import LoopClock

pytestmark = pytest.mark.leaps

LONG_SECONDS = 100_000


@pytest.fixture
def clock():
    return LoopClock()


async def test_what_is_slept_for_has_passed_at_once(clock):
    began, really = clock.now(), time.monotonic()
    await clock.sleep(LONG_SECONDS)
    passed = clock.now()
    assert passed.seconds - began.seconds >= LONG_SECONDS
    assert passed.wall_ms - began.wall_ms >= (LONG_SECONDS - 1) * 1000
    assert time.monotonic() - really < LONG_SECONDS / 100


async def test_timers_are_due_in_their_order(clock):
    said = []

    async def say(seconds):
        await clock.sleep(seconds)
        said.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (300, 100, 200):
            group.create_task(say(seconds))
    assert said == [100, 200, 300]


async def test_a_deadline_does_not_pass_while_a_thread_works():
    async with asyncio.timeout(LONG_SECONDS):
        await asyncio.to_thread(time.sleep, 0.01)


async def test_a_deadline_does_not_pass_while_a_socket_is_waited_for():
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        thread = threading.Timer(0.01, other.send, [b"said"])
        thread.start()
        async with asyncio.timeout(LONG_SECONDS):
            assert await asyncio.get_running_loop().sock_recv(one, 4) == b"said"
        thread.join()
