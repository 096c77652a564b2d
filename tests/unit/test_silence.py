"""An API server that stands still is told of, with the time, and taken back once it answers."""

import asyncio

from relay.adapters.clock import SystemClock
from relay.adapters.kubernetes import silence
from relay.adapters.kubernetes.silence import Silence
from relay.space_errors import SpaceError
from relay.space_port import ServerUnanswered


class Server:
    def __init__(self):
        self.answers = asyncio.Event()
        self.heard_at = 0.0
        self.refuses = False
        self.takes_seconds = 0.0
        self.asked = 0

    async def ask(self):
        self.asked += 1
        if self.refuses:
            raise SpaceError("Forbidden", "namespaces is forbidden")
        if self.takes_seconds:
            await asyncio.sleep(self.takes_seconds)
            raise SpaceError("ServiceUnavailable", "it cannot be reached")
        await self.answers.wait()


class Hurried(SystemClock):
    async def sleep(self, seconds):
        await super().sleep(min(seconds, 0.01))


async def told_by(server, monkeypatch):
    monkeypatch.setattr(silence, "ANSWER_SECONDS_MAX", 0.05)
    told = asyncio.Queue()
    watch = Silence(Hurried(), server.ask, lambda: server.heard_at, told.put)
    return told, asyncio.create_task(watch.run())


async def test_who_gives_no_answer_is_told_of_once_until_there_is_one(monkeypatch):
    server = Server()
    told, watch = await told_by(server, monkeypatch)
    said = await told.get()
    assert said.why.startswith("Timeout: its API server gives no answer; since 20")
    while server.asked < 3:
        await asyncio.sleep(0.01)
    assert told.empty()
    server.answers.set()
    assert await told.get() == ServerUnanswered("")
    server.answers.clear()
    assert (await told.get()).why
    watch.cancel()


async def test_who_lets_one_wait_for_a_connection_does_not_answer_and_who_refuses_it_is_gone(
    monkeypatch,
):
    server = Server()
    server.takes_seconds = 0.05
    told, watch = await told_by(server, monkeypatch)
    monkeypatch.setattr(silence, "ANSWER_SECONDS_MAX", 5.0)
    monkeypatch.setattr(silence, "WAITED_SECONDS", 0.04)
    assert (await told.get()).why
    server.takes_seconds = 0.001
    assert await told.get() == ServerUnanswered("")
    watch.cancel()


async def test_who_refuses_answers_and_who_was_heard_lately_is_not_asked(monkeypatch):
    server = Server()
    server.refuses = True
    told, watch = await told_by(server, monkeypatch)
    while server.asked < 3:
        await asyncio.sleep(0.01)
    server.heard_at = SystemClock().now().seconds + 1000
    await asyncio.sleep(0)
    asked = server.asked
    await asyncio.sleep(0.1)
    assert server.asked <= asked + 1
    assert told.empty()
    watch.cancel()
