"""Freed memory is given back each minute, and nothing is done where the C library cannot."""

import asyncio
import gc

import pytest

from leafcast.node import freed_memory


class Clock:
    """Lets so many pauses pass, and then none."""

    def __init__(self, pauses):
        self.pauses = pauses
        self.slept = []

    async def sleep(self, seconds):
        if len(self.slept) == self.pauses:
            raise asyncio.CancelledError
        self.slept.append(seconds)


@pytest.fixture(autouse=True)
def searched():
    """After these tests what is new is searched for cycles as often as before."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def test_it_goes_back_once_started_and_after_each_pause(monkeypatch):
    trimmed = []
    monkeypatch.setattr(freed_memory, "_trim", lambda: trimmed.append)
    clock = Clock(4)
    with pytest.raises(asyncio.CancelledError):
        await freed_memory.give_back_freed(clock)
    assert trimmed == [0, 0, 0, 0]
    assert clock.slept == [freed_memory.STARTED_SECONDS, *[freed_memory.TRIM_EVERY_SECONDS] * 3]


async def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(freed_memory, "_trim", lambda: None)
    await freed_memory.give_back_freed(Clock(1))


async def test_what_a_program_started_with_is_searched_for_cycles_no_more(monkeypatch):
    called = []
    monkeypatch.setattr(gc, "freeze", lambda: called.append("freeze"))
    monkeypatch.setattr(gc, "collect", lambda: called.append("collect"))
    monkeypatch.setattr(freed_memory, "_trim", lambda: None)
    await freed_memory.give_back_freed(Clock(1))
    assert called == ["collect", "freeze"]
    assert gc.get_threshold()[0] == freed_memory.SEARCH_AFTER_OBJECTS
