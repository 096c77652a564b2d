"""The queue before the core: bounded, fair between children, each child in its order."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.events import HelloArrived, LinkChanged, MailArrived, ReportArrived, Tick
from relay.ports import BusBroken
from relay.shell.fair_shares import HEAVY_SHARE, REMEMBERED_SECONDS, SLICE_SECONDS
from relay.shell.inbox import INBOX_MAX, LANE_BYTES_MAX, LANE_MAX, LANE_SHARE, Inbox
from schemas.values.identity import MailKey

SAID = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=60)


def report(child, slot, data=b"r"):
    return ReportArrived(child, str(slot), data, 1)


@given(SAID, st.integers(1, 20))
def test_each_childs_last_words_come_in_the_order_in_which_they_were_said(said, most):
    async def run():
        inbox, taken = Inbox(), []
        for number, (child, slot) in enumerate(said):
            assert inbox.offer(report(child, slot, b"%d" % number))
            inbox.assert_invariants()
        while batch := await inbox.next_batch(most, 0):
            assert len(batch) <= most
            taken += batch
            inbox.assert_invariants()
        for child in "abc":
            last = {slot: number for number, (c, slot) in enumerate(said) if c == child}
            of_child = [int(event.data) for event in taken if event.child == child]
            assert of_child == sorted(last.values())

    asyncio.run(run())


async def test_who_says_little_is_in_the_next_batch_however_much_another_says():
    inbox = Inbox()
    for slot in range(LANE_MAX):
        assert inbox.offer(report("loud", slot))
    assert not inbox.offer(report("loud", "one more"))
    assert inbox.offer(report("loud", 0))
    assert inbox.is_full_of("loud")
    assert inbox.offer(report("quiet", 1))
    assert not inbox.is_full_of("quiet")
    batch = await inbox.next_batch(512)
    assert [event.child for event in batch].count("loud") == LANE_SHARE
    assert report("quiet", 1) in batch


async def test_no_child_is_passed_over_for_ever_when_batches_are_small():
    inbox = Inbox()
    children = [f"c{number}" for number in range(10)]
    for child in children:
        for slot in range(100):
            inbox.offer(report(child, slot))
    heard = set()
    for _ in range(len(children)):
        heard |= {event.child for event in await inbox.next_batch(LANE_SHARE)}
    assert heard == set(children)


class Costs:
    """A processor: what is dealt with costs what its child's words cost, and each turn besides."""

    def __init__(self, turn=0.0, **each) -> None:
        self.used, self.each, self.of_turn = 0.0, each, turn
        self.inbox = Inbox(lambda: self.used, lambda: self.used)

    async def turn(self, *others):
        """Deal with the next batch, and with others before and after it; whose words it has."""
        batch = await self.inbox.next_batch(512)
        words = [event.child for event in batch]
        for event in self.inbox.weigh((*others, *batch)):
            if not isinstance(event, Tick):
                self.used += self.each[event.child]
        self.used += self.of_turn
        self.inbox.handled()
        return words

    async def heavy_words_in(self, seconds):
        """How many words of one heavy child are dealt with, while nobody else says any."""
        self.inbox._shares.took("loud", 1, REMEMBERED_SECONDS, 0.0)
        words = count = 0
        while self.used < seconds:
            while self.inbox.offer(report("loud", count)):
                count += 1
            words += len(await self.turn())
        return words


@pytest.mark.parametrize("others", [(), (Tick(),)])
async def test_a_child_pays_for_its_own_words_only(others):
    world = Costs(turn=0.1, quiet=0.0002)
    for number in range(20):
        world.inbox.offer(report("quiet", number))
        await world.turn(*others)
        assert not world.inbox._shares.heavy(world.used)


async def test_who_says_little_pays_not_for_who_is_heard_in_the_same_turn():
    world = Costs(loud=0.005, quiet=0.0002)
    for slot in range(LANE_SHARE):
        world.inbox.offer(report("loud", slot))
    world.inbox.offer(report("quiet", 1))
    assert "quiet" in await world.turn()
    assert world.inbox._shares.heavy(world.used) == ["loud"]


@pytest.mark.parametrize("each", [0.00003, 0.0001, 0.0005, 0.002])
@pytest.mark.parametrize("of_turn", [0.0, 0.0005, 0.002])
async def test_what_each_turn_costs_makes_no_slices_smaller(of_turn, each):
    words = await Costs(turn=of_turn, loud=each).heavy_words_in(1.0)
    in_whole_batches = LANE_SHARE / (of_turn + LANE_SHARE * each)
    assert words >= 0.45 * in_whole_batches


@given(st.floats(0.0, 0.02), st.floats(0.0001, 0.01), st.integers(0, 3))
def test_a_heavy_childs_turn_is_paid_for_with_what_came_of_it_and_with_nothing_else(
    of_turn, each, ticks
):
    async def run():
        world = Costs(turn=of_turn, loud=each)
        shares = world.inbox._shares
        world.inbox._shares.took("loud", 1, REMEMBERED_SECONDS, 0.0)
        world.inbox.offer(report("loud", 1))
        shares.idle()
        assert await world.turn(*[Tick()] * ticks) == ["loud"]
        earned = of_turn * HEAVY_SHARE / (1 - HEAVY_SHARE) if ticks else -of_turn
        assert shares._credit == pytest.approx(min(SLICE_SECONDS, SLICE_SECONDS - each + earned))

    asyncio.run(run())


async def test_of_thousands_that_wait_a_siblings_word_is_taken_within_two_turns():
    world = Costs(loud=0.005, louder=0.02, quiet=0.0001)
    for child in ("loud", "louder"):
        for slot in range(LANE_MAX):
            world.inbox.offer(report(child, slot))
    for _ in range(5):
        await world.turn()
    for number in range(50):
        world.inbox.offer(report("quiet", number))
        turns = [await world.turn(), await world.turn()]
        assert ["quiet"] in turns
        # A word costs more than a turn is to: so each takes one.
        assert max(map(len, turns)) == 1


async def test_all_that_heavy_children_said_is_taken_in_order_and_by_turns():
    world = Costs(loud=0.005, louder=0.005)
    for slot in range(300):
        for child in ("loud", "louder"):
            world.inbox.offer(report(child, slot))
    taken = []
    while len(taken) < 600:
        taken += await world.turn()
        world.inbox.assert_invariants()
    assert taken[-100:] in (["loud", "louder"] * 50, ["louder", "loud"] * 50)


def busy_world():
    """A heavy child's word waits, and others have so much to do that it is not its turn."""
    world = Costs(loud=1.0)
    world.inbox._shares.took("loud", 1, 1.0, 0.0)
    world.inbox._shares.took_heavy(1.0)
    world.inbox.offer(report("loud", 0))
    world.inbox._used = world.inbox._spare_time._used = lambda: next(ticking)
    ticking = itertools.count(0.0, 0.0012)
    return world


async def test_who_is_woken_waits_for_no_heavy_childs_turn():
    world = busy_world()
    reading = asyncio.create_task(world.inbox.next_batch(10))
    await asyncio.sleep(0)
    world.inbox.wake()
    assert not await reading
    # What others took until then is not enough for its turn.
    assert not world.inbox._shares.admits_heavy


async def test_who_waits_for_a_moment_waits_for_no_heavy_childs_turn():
    world = busy_world()
    assert not await world.inbox.next_batch(10, 0)
    assert not world.inbox._shares.admits_heavy


async def test_what_a_heavy_child_says_wakes_no_reader_before_its_turn():
    world = busy_world()
    reading = asyncio.create_task(world.inbox.next_batch(10))
    await asyncio.sleep(0)
    world.inbox.offer(report("loud", 1))
    assert list(await reading) == [report("loud", 0), report("loud", 1)][: len(reading.result())]
    assert reading.result()


async def test_who_says_the_same_over_and_over_waits_until_it_was_heard():
    inbox = Inbox()
    await inbox.put_after_former(HelloArrived("loud", b"1"))
    waiting = asyncio.create_task(inbox.put_after_former(HelloArrived("loud", b"2")))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert list(await inbox.next_batch(10)) == [HelloArrived("loud", b"1")]
    await waiting
    assert list(await inbox.next_batch(10)) == [HelloArrived("loud", b"2")]


async def test_a_full_lane_makes_only_its_own_writer_wait():
    inbox = Inbox()
    inbox.offer(report("loud", 0, bytes(LANE_BYTES_MAX)))
    waiting = asyncio.create_task(inbox.put_from_child(report("loud", 1)))
    await inbox.put(Tick())
    await inbox.put_from_child(HelloArrived("quiet", b"h"))
    assert not waiting.done()
    await inbox.next_batch(10)
    await waiting
    assert list(await inbox.next_batch(10)) == [report("loud", 1)]


async def test_a_full_queue_makes_its_writer_wait_for_the_reader():
    inbox = Inbox()
    for _ in range(INBOX_MAX):
        await inbox.put(Tick())
    waiting = asyncio.create_task(inbox.put(LinkChanged(up=True)))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert len(await inbox.next_batch(INBOX_MAX)) == INBOX_MAX
    await waiting
    assert list(await inbox.next_batch(1)) == [LinkChanged(up=True)]


async def test_mail_of_an_earlier_reading_is_dropped_wherever_it_waits():
    inbox = Inbox()
    old = MailArrived(1, MailKey("k"), b"", 0, inbox.reading)
    await inbox.put(old)
    new = MailArrived(2, MailKey("k"), b"", 0, inbox.forget_mail())
    await inbox.put(new)
    assert list(await inbox.next_batch(10)) == [new]


async def test_a_reader_waits_as_long_as_it_says_and_hears_at_once_of_what_comes():
    inbox = Inbox()
    assert not await inbox.next_batch(1, 0)
    assert not await inbox.next_batch(1, 0.01)
    reading = asyncio.create_task(inbox.next_batch(1))
    await asyncio.sleep(0)
    inbox.offer(report("a", 1))
    assert list(await reading) == [report("a", 1)]


async def test_what_waits_is_still_given_out_after_the_end():
    inbox = Inbox()
    await inbox.put(Tick())
    inbox.fail(ValueError("gone"))
    assert list(await inbox.next_batch(1)) == [Tick()]
    with pytest.raises(BusBroken):
        await inbox.next_batch(1)
