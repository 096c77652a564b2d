"""The virtual-time loop keeps asyncio's promises, and a seed is one schedule."""

import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.simulation import virtual_time
from tests.simulation.virtual_time import Deadlock, Livelock, VirtualLoop

ROOT = Path(__file__).resolve().parents[2]
LOOPS = [None, 0, 1, 2]


@pytest.fixture(params=LOOPS, ids=["in order", *(f"seed {seed}" for seed in LOOPS[1:])])
def loop(request):
    made = VirtualLoop(None if request.param is None else Random(request.param))
    yield made
    made.close()


async def sleeper(told, seconds):
    await asyncio.sleep(seconds)
    told.append((asyncio.get_running_loop().time(), seconds))


def test_sleepers_wake_in_the_order_of_their_times_and_no_time_is_wasted(loop):
    told = []

    async def main():
        async with asyncio.TaskGroup() as group:
            for seconds in (3600.0, 0.5, 60.0):
                group.create_task(sleeper(told, seconds))

    loop.run_until_complete(main())
    assert told == [(0.5, 0.5), (60.0, 60.0), (3600.0, 3600.0)]


def test_time_stands_still_until_it_is_stepped(loop):
    told = []
    loop.create_task(sleeper(told, 10.0))
    loop.run_until(9.99)
    assert told == []
    loop.run_until(25.0)
    assert told == [(10.0, 10.0)]
    assert loop.time() == 25.0


def test_a_timeout_cancels_what_takes_too_long_when_it_is_due(loop):
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.sleep(6)
        return asyncio.get_running_loop().time()

    assert loop.run_until_complete(main()) == 5.0


def test_a_timer_that_was_cancelled_is_never_due(loop):
    told = []
    loop.call_later(1.0, told.append, "cancelled").cancel()
    loop.call_later(2.0, told.append, "kept")
    loop.run_until(3.0)
    assert told == ["kept"]
    assert loop.next_due() is None


def test_a_cancelled_task_ends_at_once_and_cleans_up(loop):
    told = []

    async def work():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            told.append(asyncio.get_running_loop().time())

    async def main():
        task = asyncio.create_task(work())
        await asyncio.sleep(2)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    loop.run_until_complete(main())
    assert told == [3.0]


def test_who_waits_for_what_nobody_brings_is_found(loop):
    async def main():
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="nothing is ready, and no timer is set"):
        loop.run_until_complete(main())


def test_who_never_lets_time_pass_is_found(loop, monkeypatch):
    monkeypatch.setattr(virtual_time, "TURNS_MAX", 100)

    async def main():
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Livelock, match=r"callbacks at 0\.0 s"):
        loop.run_until_complete(main())


def test_what_a_callback_raises_ends_the_run(loop):
    loop.call_later(1.0, {}.pop, "nothing")
    with pytest.raises(KeyError):
        loop.run_until(2.0)


def test_what_would_run_in_a_thread_runs_at_once(loop):
    async def main():
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)
        return await asyncio.to_thread(divmod, 7, 2), asyncio.get_running_loop().time()

    assert loop.run_until_complete(main()) == ((3, 1), 0.0)


def test_there_are_no_sockets(loop):
    async def main():
        await asyncio.open_connection("127.0.0.1", 1)

    with pytest.raises(NotImplementedError):
        loop.run_until_complete(main())


def test_a_task_that_is_begun_has_run_to_where_it_first_waits(loop):
    told = []

    async def work():
        told.append("begun")
        await asyncio.sleep(1)
        told.append("done")

    loop.call_soon(told.append, "later")
    loop.begin(work())
    assert told == ["begun"]
    loop.run_until(1.0)
    assert told == ["begun", "later", "done"]


def test_closing_ends_all_tasks(loop):
    told = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            told.append("ended")

    for _ in range(3):
        loop.create_task(work())
    loop.run_ready()
    loop.close()
    assert told == ["ended"] * 3
    assert loop.is_closed()


async def at_once(told, name):
    await asyncio.sleep(1)
    told.append(name)
    if name == 3:
        raise ValueError(name)
    try:
        await asyncio.sleep(60)
    finally:
        told.append(-name)


def schedule_of(seed):
    """Who went on in which order: eight tasks at one moment, of which one fails and ends all."""
    told = []
    loop = VirtualLoop(None if seed is None else Random(seed))

    async def main():
        async with asyncio.TaskGroup() as group:
            for name in range(8):
                group.create_task(at_once(told, name))

    with pytest.raises(ExceptionGroup):
        loop.run_until_complete(main())
    loop.close()
    return told


def test_without_a_seed_what_is_ready_first_runs_first():
    assert schedule_of(None)[:8] == list(range(8))


def test_seeds_are_different_schedules():
    assert len({tuple(schedule_of(seed)) for seed in range(20)}) > 10


def test_the_same_seed_is_the_same_schedule_in_every_process():
    code = "from tests.simulation.test_virtual_time import schedule_of\n"
    code += "print([schedule_of(seed) for seed in range(20)])"
    told = set()
    for hash_seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PATH": "", "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        told.add(done.stdout)
    assert len(told) == 1
