"""Erasing goes by turns of the children, and none pushes out what another left."""

import asyncio

import pytest

from relay.core.effects import DropReport
from relay.shell import report_cleanup
from relay.shell.report_cleanup import AT_ONCE, OF_CHILD_MAX, ReportCleanup


class Bus:
    """Notes what is erased, until it was told to erase so much."""

    def __init__(self, most):
        self.erased, self.most, self.over = [], most, asyncio.Event()

    async def drop_reports(self, drops):
        self.erased += drops
        assert len(drops) <= AT_ONCE
        if len(self.erased) >= self.most:
            self.over.set()


async def erased(drops, most):
    bus = Bus(most)
    cleanup = ReportCleanup(bus)
    for drop in drops:
        cleanup.add(drop)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(cleanup.run())
        await bus.over.wait()
        running.cancel()
    return bus.erased


def junk(child, number):
    return [DropReport(child, str(at), at) for at in range(number)]


async def test_what_one_child_left_waits_for_no_flood_of_another():
    honest = DropReport("bream", "k", 1)
    found = await erased([honest, *junk("cod", 2 * OF_CHILD_MAX)], AT_ONCE)
    assert honest in found
    late = await erased([*junk("cod", 2 * OF_CHILD_MAX), honest], AT_ONCE)
    assert honest in late
    assert late[0] == DropReport("cod", str(OF_CHILD_MAX), OF_CHILD_MAX), "the oldest go"


async def test_of_too_many_of_all_those_go_of_whoever_left_most(monkeypatch):
    monkeypatch.setattr(report_cleanup, "WAITING_MAX", 5)
    drops = [*junk("bream", 1), *junk("cod", 4), *junk("dab", 2)]
    found = await erased(drops, 5)
    assert len(found) == 5
    assert {(drop.child, drop.key) for drop in found} == {
        ("bream", "0"), ("cod", "2"), ("cod", "3"), ("dab", "0"), ("dab", "1")
    }  # fmt: skip


@pytest.mark.parametrize("later", [2, 9])
async def test_of_a_slot_the_last_word_counts(later):
    drops = [DropReport("cod", "k", 1), DropReport("cod", "k", later, older=True)]
    assert await erased(drops, 1) == drops[1:]
