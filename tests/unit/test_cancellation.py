"""What is cancelled as its answer comes ends, whichever Python runs it; so does a connection."""

from __future__ import annotations

import asyncio

import pytest

import relay.adapters  # noqa: F401 - makes wait_for keep cancellations
from relay.adapters.asking import asking
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream import cancellation
from relay.adapters.jetstream import connection as jetstream_connection
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.spaces.connection import space_connection
from relay.ports import BusBroken
from schemas.values.identity import NodePath

WAITS = [asyncio.wait_for, cancellation.wait_for]


@pytest.mark.parametrize("wait_for", WAITS)
async def test_a_cancellation_that_comes_together_with_the_answer_is_kept(wait_for):
    answer = asyncio.get_running_loop().create_future()
    task = asyncio.get_running_loop().create_task(wait_for(answer, 60))
    await asyncio.sleep(0)

    answer.set_result("too late")
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_group_that_is_cut_by_a_timeout_says_so_and_its_task_goes_on():
    async def fail():
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the way is closed")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), asyncio.TaskGroup() as group:
            group.create_task(fail())
    await asyncio.sleep(0)


@pytest.mark.parametrize("wait_for", WAITS)
async def test_what_does_not_come_in_time_is_cancelled(wait_for):
    answer = asyncio.get_running_loop().create_future()

    with pytest.raises(TimeoutError):
        await wait_for(answer, 0.01)

    assert answer.cancelled()


@pytest.mark.parametrize("wait_for", WAITS)
@pytest.mark.parametrize("timeout", [0, None, 60])
async def test_what_is_there_is_given(wait_for, timeout):
    answer = asyncio.get_running_loop().create_future()
    answer.set_result("there")

    assert await wait_for(answer, timeout) == "there"


@pytest.mark.parametrize("wait_for", WAITS)
async def test_without_time_left_nothing_is_waited_for(wait_for):
    answer = asyncio.get_running_loop().create_future()

    with pytest.raises(TimeoutError):
        await wait_for(answer, 0)


@pytest.mark.parametrize("has_ended", [True, False])
async def test_a_group_of_which_a_task_fails_leaves_nobody_cancelled(has_ended):
    """Whether its block has ended, or waits for something."""

    async def fail():
        await asyncio.sleep(0)
        raise BusBroken("the bus is gone")

    async def break_off():
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            if not has_ended:
                await asyncio.Event().wait()

    for _ in range(3):
        with pytest.raises(BaseExceptionGroup) as raised:
            await break_off()
        assert isinstance(raised.value.exceptions[0], BusBroken)
        assert not asyncio.current_task().cancelling()


async def test_who_begins_again_ends_if_it_is_cancelled_as_a_group_of_its_fails():
    begun, failing = 0, asyncio.Event()

    async def fail():
        raise BusBroken("the bus is gone")

    async def end_slowly():
        try:
            await asyncio.Event().wait()
        finally:
            failing.set()
            await asyncio.sleep(0)

    async def begin_again():
        nonlocal begun
        while True:
            begun += 1
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(end_slowly())
                    await asyncio.sleep(0)
                    group.create_task(fail())
            except* BusBroken:
                pass

    task = asyncio.get_running_loop().create_task(begin_again())
    await failing.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert begun == 1


@pytest.mark.parametrize("connection", [asking, brief_connection, space_connection])
async def test_who_is_cancelled_while_it_connects_leaves_no_socket_behind(connection):
    came, over = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader, writer):
        came.set()
        assert await reader.read() == b""
        writer.close()
        over.set()

    async def connect(port):
        async with connection(f"nats://127.0.0.1:{port}", new_user_nkey(bytes(32))[0], "test"):
            pass

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        task = asyncio.get_running_loop().create_task(connect(port))
        async with asyncio.timeout(60):
            await came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await over.wait()


async def test_a_bus_whose_server_does_not_come_in_time_is_broken_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(jetstream_connection, "CONNECT_SECONDS", 0.1)

    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    class NoServer:
        async def add_child(self, name, nkey):
            raise AssertionError(name)

        async def remove_child(self, name):
            raise AssertionError(name)

    seed = new_user_nkey(bytes(32))[0]
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        address = BusAddress(url, seed, uplink_seed=seed, system_seed=seed)
        path = NodePath.parse("/r1")
        bus = JetStreamBus(path, address, NoServer(), clock=SystemClock(), dice=SystemDice())
        with pytest.raises(BusBroken, match="cannot connect"):
            await bus.start()
