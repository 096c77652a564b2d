"""What every message bus promises: one suite over the bus in memory and over real nats-servers."""

import os

import pytest

from relay.core.effects import AckMail, ClearMail, StoreOwn
from relay.core.events import (
    BlobArrived,
    HelloArrived,
    LinkChanged,
    MailSlot,
    OwnRecord,
    ReportArrived,
    Welcomed,
)
from relay.ports import MailConflict
from schemas.content.blobs import OBJECT, Reference, open_value, store
from schemas.objects.objects import ObjectKey
from schemas.reports.link import Welcome
from schemas.reports.reports import Done
from schemas.values.identity import ContentHash
from schemas.values.wire import encode
from tests.contract.buses import (
    CONTAINERS,
    TREES,
    blob_of,
    key,
    letter,
    mails,
    record,
    said_anew,
)


@pytest.fixture(params=[*TREES, CONTAINERS])
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


async def test_what_was_stored_is_remembered_after_a_restart(tree):
    centre, listener = await tree.open()
    assert listener.remembered.own == ()
    await tree.plant("/emea", centre)
    blob = store(OBJECT, b"x" * 100)
    done = Done(ObjectKey("", "configmaps", "shop", "a"), "uid", "00", ("p",), True, 1)
    await centre.write(
        own=[
            StoreOwn("_cursor", b"c1", 1, "inc", 7),
            StoreOwn("gone", b"x", 2),
            StoreOwn("_cursor", b"c2", 3, "inc", 8),
            StoreOwn("gone", None),
            StoreOwn("late", b"l", 4),
            StoreOwn("_taken", b"t"),
            StoreOwn(f"_history_{key(1)}", b"h"),
        ]
    )
    (written,) = await centre.write(mail=[letter("emea", 2, generation=5)])
    await centre.write(blobs=blob.values)
    await centre.store_done({"a": done})
    await centre.store_done({"b": done})
    await centre.store_done({"b": None})
    await tree.close("/")

    centre, listener = await tree.open()

    remembered = listener.remembered
    assert sorted(remembered.own, key=lambda record: record.key) == [
        OwnRecord("_cursor", b"c2", "inc", 8),
        OwnRecord(f"_history_{key(1)}", b"h", "", 0),
        OwnRecord("_taken", b"t", "", 0),
        OwnRecord("late", b"l", "", 0),
    ]
    slot = MailSlot("emea", key(2), written.sequence, 5, b"\2" * 32, has_body=True)
    assert remembered.mail == (slot,)
    assert remembered.blobs == set(blob.values)
    assert await centre.load_done() == [done]


async def test_mail_arrives_at_its_child_only_in_order_and_says_when_none_is_left(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    _, apac = await tree.sprout("/apac", centre)

    written = await centre.write(mail=[letter("emea", n) for n in range(20)])
    await centre.write(mail=[letter("apac", 99)])

    came = await emea.mail(20)
    assert [(mail.key, mail.sequence) for mail in came] == [(w.key, w.sequence) for w in written]
    assert [mail.data for mail in came] == [record(b"delta %d" % number) for number in range(20)]
    assert came[-1].pending == 0
    assert [mail.key for mail in await apac.mail(1)] == [key(99)]


async def test_only_the_last_value_of_a_slot_is_kept_for_who_comes_later(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    sequence = 0
    for version in range(5):
        (written,) = await centre.write(
            mail=[letter("emea", 1, sequence, data=record(b"v%d" % version))]
        )
        sequence = written.sequence

    _, emea = await tree.open("/emea")

    (mail,) = await emea.mail(1)
    assert (mail.data, mail.sequence, mail.pending) == (record(b"v4"), sequence, 0)


async def test_a_reset_delivers_again_from_that_sequence(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    written = await centre.write(mail=[letter("emea", number) for number in range(10)])
    await emea.mail(10)
    await bus.ack_mail(AckMail(written[-1].sequence))
    emea.events.clear()

    await bus.reset_mail(written[6].sequence)
    assert [mail.key for mail in await emea.mail(4)] == [key(number) for number in range(6, 10)]
    emea.events.clear()
    await bus.reset_mail(1)

    came = await emea.mail(10)
    assert [mail.key for mail in came] == [key(number) for number in range(10)]
    assert [mail.pending for mail in came] == list(reversed(range(10)))


async def test_after_a_reset_beyond_the_end_new_mail_still_arrives(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    (first,) = await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)

    await bus.reset_mail(first.sequence + 1)
    await centre.write(mail=[letter("emea", 2)])

    assert [mail.key for mail in await emea.mail(2)] == [key(1), key(2)]


async def test_no_mail_is_delivered_before_it_is_read_from_somewhere(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    bus = tree.new_bus("/emea")
    await bus.start()
    try:
        while LinkChanged(up=True) not in await bus.inbox.next_batch(1000):
            pass
        written = await centre.write(mail=[letter("emea", number) for number in range(5)])
        # Over the same link and after it, so the mail would be here by now.
        await bus.load_blob(store(OBJECT, b"none").reference)
        assert not mails(await bus.inbox.next_batch(1000, 0))

        await bus.reset_mail(written[2].sequence)

        came = mails(await bus.inbox.next_batch(1000))
        assert came[0].sequence == written[2].sequence
    finally:
        await bus.close()


async def test_a_stale_writer_is_refused(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    (written,) = await centre.write(mail=[letter("emea", 1)])
    await centre.write(mail=[letter("emea", 1, written.sequence, 2)])

    with pytest.raises(MailConflict):
        await centre.write(mail=[letter("emea", 1, written.sequence, 3)])
    with pytest.raises(MailConflict):
        await centre.write(mail=[letter("emea", 1, 0, 3)])


async def test_a_slot_is_cleared_only_if_nothing_was_written_to_it_since(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    (old,) = await centre.write(mail=[letter("emea", 1)])
    (new,) = await centre.write(mail=[letter("emea", 1, old.sequence, 2)])

    assert not await centre.clear_mail(ClearMail("emea", key(1), old.sequence))
    assert await centre.clear_mail(ClearMail("emea", key(1), new.sequence))
    assert not await centre.clear_mail(ClearMail("emea", key(1), new.sequence))
    await centre.write(mail=[letter("emea", 1, 0, 3)])


async def test_reports_reach_the_parent_and_a_parent_that_starts_later_gets_the_last_ones(tree):
    centre, listener = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)

    assert await bus.send_report({"a": b"1", "b": b"2"})
    assert await bus.send_hello(b"beat 1")
    expected = [ReportArrived("emea", "a", b"1"), ReportArrived("emea", "b", b"2")]
    expected.append(HelloArrived("emea", b"beat 1"))
    await listener.until(lambda events: events == expected)
    await tree.close("/")
    assert await bus.send_report({"a": b"3"})
    assert await bus.send_hello(b"beat 2")

    _, listener = await tree.open()

    last = [ReportArrived("emea", "b", b"2"), ReportArrived("emea", "a", b"3")]
    last.append(HelloArrived("emea", b"beat 2"))
    await listener.until(lambda events: [said_anew(event) for event in events] == last)
    assert listener.events[-1].former_ms is not None, "it lay there before"
    assert await bus.send_hello(b"beat 3")
    await listener.until(lambda events: events[-1] == HelloArrived("emea", b"beat 3"))


async def test_who_was_ever_heard_of_is_remembered_and_nobody_else(tree):
    centre, listener = await tree.open()
    assert listener.remembered.heard == frozenset()
    bus, _ = await tree.sprout("/emea", centre)
    await tree.sprout("/apac", centre)
    while not await bus.send_hello(b"here"):
        pass
    await tree.close("/")
    _, listener = await tree.open()
    assert listener.remembered.heard == {"emea"}


async def test_a_child_is_welcomed(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    message = Welcome("inc", "run", 17, b"snapshot", "say")

    await centre.send_welcome("emea", encode(message))

    await emea.until(lambda events: Welcomed(message) in events)


async def test_small_content_travels_along_and_the_record_is_as_it_was(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    carried = (blob_of(b"a"), blob_of(b"b" * 900))

    await centre.write(mail=[letter("emea", 1, carried=carried), letter("emea", 2)])

    came = await emea.mail(2)
    assert [mail.data for mail in came] == [record(b"delta 1"), record(b"delta 2")]
    assert [mail.carried for mail in came] == [carried, ()]


async def test_what_is_written_at_once_is_all_kept_and_only_mail_is_answered(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    blob = store(OBJECT, b"x" * 100)

    written = await centre.write(
        blobs=blob.values,
        own=[StoreOwn("a", b"1"), StoreOwn("b", None), StoreOwn("c", b"2")],
        mail=[letter("emea", number) for number in range(3)],
    )

    assert [mail.key for mail in written] == [key(number) for number in range(3)]
    await tree.close("/")
    _, listener = await tree.open()
    remembered = listener.remembered
    assert [own.key for own in remembered.own] == ["a", "c"]
    assert remembered.blobs == set(blob.values)
    assert [slot.sequence for slot in remembered.mail] == [mail.sequence for mail in written]


async def test_content_comes_from_the_parent_and_then_from_the_own_store(tree):
    centre, _ = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)
    plain = os.urandom(1_200_000)
    blob = store(OBJECT, plain)
    assert len(blob.values) == 4
    await centre.write(blobs=blob.values)

    came = await bus.load_blob(blob.reference)

    assert not came.local
    assert open_value(blob.reference, came.value, dict(came.parts)) == plain
    await bus.write(blobs={blob.reference.address: came.value, **dict(came.parts)})
    await tree.cut("/emea")
    again = await bus.load_blob(blob.reference)
    assert again.local
    assert open_value(blob.reference, again.value, dict(again.parts)) == plain


async def test_content_that_was_dropped_is_gone_and_the_rest_stays(tree):
    centre, _ = await tree.open()
    gone, stays = (store(OBJECT, os.urandom(100)) for _ in range(2))
    await centre.write(blobs={**gone.values, **stays.values})

    await centre.drop_blobs([gone.reference.address, ContentHash("0" * 64)])

    assert (await centre.load_blob(gone.reference)).value is None
    assert (await centre.load_blob(stays.reference)).value is not None
    await tree.close("/")
    _, listener = await tree.open()
    assert listener.remembered.blobs == set(stays.values)


async def test_content_that_nobody_has_is_none(tree):
    centre, _ = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)
    nothing = Reference(OBJECT, ContentHash("0" * 64), 10)
    blob = store(OBJECT, os.urandom(1_200_000))
    await centre.write(blobs={blob.reference.address: blob.values[blob.reference.address]})

    lacked = BlobArrived(nothing, None, local=False)
    assert await centre.load_blob(nothing) == lacked
    assert await bus.load_blob(nothing) == lacked
    assert await bus.load_blob(blob.reference) == BlobArrived(blob.reference, None, local=False)


async def test_that_the_parent_does_not_answer_for_content_is_not_its_word_that_it_has_none(tree):
    centre, _ = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)
    there = store(OBJECT, os.urandom(100))
    await centre.write(blobs=there.values)

    await tree.cut("/emea")

    missed = await bus.load_blob(there.reference)
    assert missed == BlobArrived(there.reference, None, local=False, unheard=True)


async def test_many_letters_in_one_call_are_all_kept_and_all_arrive(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    count = 5000

    written = await centre.write(mail=[letter("emea", number) for number in range(count)])

    assert len({mail.sequence for mail in written}) == count
    came = await emea.mail(count)
    assert [mail.sequence for mail in came] == [mail.sequence for mail in written]
    assert came[-1].pending == 0


async def test_mail_comes_however_much_of_it_waits_unacknowledged(tree):
    """A child without memory acknowledges nothing before it has seen the index, which comes last.

    So many letters once came and no more: the server's own limit.
    """
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    count = 20_100

    await centre.write(mail=[letter("emea", number) for number in range(count)])

    assert (await emea.mail(count))[-1].pending == 0


async def test_a_reader_that_comes_late_finds_everything(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    bus = tree.new_bus("/emea")
    await bus.start()
    written = await centre.write(mail=[letter("emea", number) for number in range(5000)])
    while LinkChanged(up=True) not in await bus.inbox.next_batch(1000):
        pass
    await bus.reset_mail(1)

    came = []
    while not came or came[-1].sequence != written[-1].sequence:
        came += mails(await bus.inbox.next_batch(1000))
    await bus.close()

    assert [mail.sequence for mail in came] == [mail.sequence for mail in written]
    assert came[-1].pending == 0


async def test_mail_and_content_go_down_two_tiers(tree):
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    store_1, listener = await tree.sprout("/emea/s1", emea)
    blob = store(OBJECT, b"y" * 5000)
    await centre.write(blobs=blob.values)

    assert (await store_1.load_blob(blob.reference)).value is None
    found = await emea.load_blob(blob.reference)
    await emea.write(blobs={blob.reference.address: found.value})
    (written,) = await emea.write(mail=[letter("s1", 4)])

    assert (await store_1.load_blob(blob.reference)).value == found.value
    assert [mail.sequence for mail in await listener.mail(1)] == [written.sequence]
    assert await store_1.send_report({"a": b"1"})


async def test_the_last_reset_counts(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    await centre.write(mail=[letter("emea", number) for number in range(300)])
    await emea.mail(300)

    await bus.reset_mail(200)
    await bus.reset_mail(1)
    await centre.write(mail=[letter("emea", 300)])

    await emea.until(lambda events: mails(events)[-1].sequence == 301)
    assert [mail.sequence for mail in mails(emea.events)[-301:]] == list(range(1, 302))
