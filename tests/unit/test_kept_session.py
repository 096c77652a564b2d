"""A session that views share: one slow question ends it for nobody else."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import SimpleNamespace

import pytest

from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui.kept_session import KeptSession, is_away
from relay.adapters.clock import SystemClock

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def kept_one(tmp_path):
    """What is kept, and what was opened so far, by a queue."""
    opened = asyncio.Queue()

    @asynccontextmanager
    async def opens(_):
        session = SimpleNamespace(data_dir=SimpleNamespace(folder=tmp_path))
        opened.put_nowait(session)
        yield session

    kept = KeptSession(tmp_path, SystemClock(), opens)
    keeps = asyncio.create_task(kept.keep())
    yield kept, opened
    keeps.cancel()


async def fails(kept, error):
    with pytest.raises(type(error)):
        async with kept.session():
            raise error


async def fails_while_others_are_answered(kept, error):
    async with kept.session() as session:
        async with kept.session() as other:
            assert other is session
        raise error


async def test_a_question_that_takes_too_long_leaves_the_session_to_the_others(tmp_path):
    async with kept_one(tmp_path) as (kept, opened):
        first = await opened.get()
        slow = CallFailed("status", "Timeout", "no answer in time", "")
        with pytest.raises(CallFailed, match="in time"):
            await fails_while_others_are_answered(kept, slow)
        await asyncio.sleep(0)
        async with kept.session() as session:
            assert session is first
        assert opened.empty()


@pytest.mark.parametrize("code", ["Lost", "NotServed", "Timeout", ""])
async def test_one_that_was_lost_is_opened_anew_and_who_held_the_former_ends_it_not(tmp_path, code):
    async with kept_one(tmp_path) as (kept, opened):
        lost = CallFailed("status", code, "gone", "") if code else NotRunning(tmp_path)
        first, second = await opened.get(), None
        async with AsyncExitStack() as failing:
            failing.enter_context(suppress(type(lost)))
            held = await failing.enter_async_context(kept.session())
            await fails(kept, lost)
            second = await opened.get()
            assert held is first
            raise lost
        await asyncio.sleep(0)
        async with kept.session() as now:
            assert now is second


@pytest.mark.parametrize(
    ("verb", "code", "away"),
    [
        ("status", "Timeout", True),
        ("status", "Restarting", True),
        ("status", "NotFound", False),
        ("ask", "NotServed", True),
        ("ask", "Lost", True),
        ("ask", "Timeout", False),
        ("ask", "Restarting", False),
        ("why", "Timeout", False),
    ],
)
def test_a_node_that_is_late_is_not_taken_for_a_tree_that_is_away(verb, code, away):
    assert is_away(CallFailed(verb, code, "no answer", "")) is away


async def test_a_node_that_starts_leaves_the_session_to_others_that_are_answered(tmp_path):
    async with kept_one(tmp_path) as (kept, opened):
        first = await opened.get()
        starts = CallFailed("ask", "Restarting", "it starts", "")
        with pytest.raises(CallFailed, match="it starts"):
            await fails_while_others_are_answered(kept, starts)
        await asyncio.sleep(0)
        async with kept.session() as session:
            assert session is first
        # A session that nobody hears is opened anew, whatever was asked.
        await fails(kept, CallFailed("why", "Timeout", "no answer", ""))
        assert await opened.get() is not first
