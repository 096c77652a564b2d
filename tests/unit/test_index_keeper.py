"""The index is renewed at each change, gathered to one a second, and at least every 10 minutes."""

import asyncio

from controllers.core.drafts import Draft
from controllers.core.index import index_draft
from controllers.core.translate import bare_head
from controllers.index_keeper import (
    INDEX_AFTER_SECONDS,
    INDEX_GATHER_SECONDS,
    INDEX_MAX_AGE_SECONDS,
    IndexKeeper,
)
from controllers.issuing import Issuer
from relay.core.events import Instant
from schemas.identity import KeyId, MailKey, TreeId, mail_key, random_id
from schemas.records import IndexRecord, Source
from schemas.signing import Signer
from tests.unit.centre_relay import LedgerRelay

TREE = TreeId(random_id(bytes(16)))
SIGNER = Signer(TREE, KeyId(random_id(b"k" * 16)), b"s" * 32)


class HandClock:
    """Time passes only when the test says so."""

    def __init__(self):
        self.seconds = 0.0
        self.sleepers = []

    def now(self):
        return Instant(self.seconds, 1_800_000_000_000 + int(self.seconds * 1000))

    async def sleep(self, seconds):
        woken = asyncio.Event()
        self.sleepers.append((self.seconds + seconds, woken))
        await woken.wait()

    async def pass_by(self, seconds):
        await settle()
        self.seconds += seconds
        due = [item for item in self.sleepers if item[0] <= self.seconds]
        self.sleepers = [item for item in self.sleepers if item[0] > self.seconds]
        for _, woken in due:
            woken.set()
        await settle()


async def settle():
    for _ in range(50):
        await asyncio.sleep(0)


def issued(relay):
    return [record for record in relay.history if isinstance(record, IndexRecord)]


async def run_keeper(scenario):
    clock, relay = HandClock(), LedgerRelay(TREE)
    keeper = IndexKeeper(Issuer(relay, SIGNER, clock), clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        await settle()
        await scenario(clock, relay, keeper)
        task.cancel()


async def test_changes_within_a_second_make_one_index():
    async def scenario(clock, relay, keeper):
        for _ in range(5):
            keeper.renew()
            await clock.pass_by(INDEX_GATHER_SECONDS / 10)
        assert len(issued(relay)) == 1
        await clock.pass_by(INDEX_GATHER_SECONDS)
        assert len(issued(relay)) == 2

    await run_keeper(scenario)


async def test_a_change_after_a_silence_is_listed_right_after_its_delta():
    async def scenario(clock, relay, keeper):
        await clock.pass_by(INDEX_GATHER_SECONDS)
        await clock.pass_by(5)
        assert len(issued(relay)) == 1
        keeper.renew()
        await settle()
        assert len(issued(relay)) == 1
        await clock.pass_by(INDEX_AFTER_SECONDS)
        assert len(issued(relay)) == 2

    await run_keeper(scenario)


async def test_an_index_without_changes_is_renewed_within_ten_minutes():
    async def scenario(clock, relay, keeper):
        await clock.pass_by(INDEX_GATHER_SECONDS)
        await clock.pass_by(INDEX_MAX_AGE_SECONDS)
        first, second = issued(relay)
        assert second.issued_ms - first.issued_ms >= INDEX_MAX_AGE_SECONDS * 1000
        assert second.root == first.root

    await run_keeper(scenario)


async def test_a_restart_renews_an_index_only_when_it_is_old():
    clock, relay = HandClock(), LedgerRelay(TREE)
    await Issuer(relay, SIGNER, clock).issue_index()
    await clock.pass_by(INDEX_MAX_AGE_SECONDS / 2)
    keeper = IndexKeeper(Issuer(relay, SIGNER, clock), clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        await clock.pass_by(INDEX_MAX_AGE_SECONDS / 2 - 1)
        assert len(issued(relay)) == 1
        await clock.pass_by(1)
        assert len(issued(relay)) == 2
        task.cancel()


async def test_a_restart_lists_what_a_crash_left_unlisted():
    clock, relay = HandClock(), LedgerRelay(TREE)
    first = Issuer(relay, SIGNER, clock)
    await first.issue_index()
    await first.issue([Draft("delta", bare_head(Source("api", "s", "", "shop"), ()))])
    again = Issuer(relay, SIGNER, clock)
    assert again.in_force
    keeper = IndexKeeper(again, clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        await settle()
        assert len(issued(relay)) == 2
        task.cancel()


def test_an_index_writes_only_the_chunks_that_changed():
    placements = {mail_key("api", "s", "", str(at)): at for at in range(2000)}
    _, kept = index_draft(TREE, placements, 0)
    placements[MailKey(next(iter(placements)))] = 5000
    draft, _ = index_draft(TREE, placements, 1, kept)
    assert len(draft.blobs) == 2


async def test_generations_rise_even_while_the_clock_stands_still():
    clock, relay = HandClock(), LedgerRelay(TREE)
    issuer = Issuer(relay, SIGNER, clock)
    for _ in range(3):
        await issuer.issue_index()
    generations = [record.generation for record in relay.history]
    assert generations == sorted(set(generations))
    again = Issuer(relay, SIGNER, HandClock())
    await again.issue_index()
    assert relay.history[-1].generation == generations[-1] + 1
