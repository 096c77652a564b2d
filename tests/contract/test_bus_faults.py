"""What a message bus still keeps when links break, servers die and nodes come and go."""

import os
import signal

import pytest

from relay.adapters.jetstream import mailbox as jetstream_mailbox
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.delivery import place_of
from relay.core.effects import ClearMail, StoreOwn
from relay.core.events import HelloArrived, ReportArrived
from relay.ports import BusBroken
from schemas.values.subjects import deliveries
from schemas.values.wire import replace
from tests.awaiting import eventually
from tests.contract.buses import TREES, NatsTree, key, letter, links, mails, of


@pytest.fixture(params=TREES)
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


async def test_a_link_cut_and_healed_is_told_and_loses_nothing(tree):
    centre, listener = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    await centre.write(mail=[letter("emea", number) for number in range(3)])
    await emea.mail(3)

    await tree.cut("/emea")
    await centre.write(mail=[letter("emea", number) for number in range(3, 6)])
    assert not await bus.send_hello(b"beat")
    assert not await bus.send_report({"a": b"1"})
    await emea.linked(up=False)
    await centre.write(mail=[letter("emea", number) for number in range(6, 9)])
    await tree.heal("/emea")
    await emea.linked()
    await centre.write(mail=[letter("emea", 9)])

    await emea.until(lambda events: any(mail.key == key(9) for mail in mails(events)))
    assert {mail.key for mail in mails(emea.events)} == {key(number) for number in range(10)}
    assert links(emea.events) == [True, False, True]
    assert await bus.send_report({"a": b"1"})
    await listener.until(lambda events: ReportArrived("emea", "a", b"1") in events)


@pytest.mark.nats
async def test_a_parent_that_answers_nothing_is_silent_and_one_without_a_link_is_not(tmp_path):
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        bus, emea = await tree.sprout("/emea", centre)
        server, _ = tree._servers["/"]
        os.kill(server.pid, signal.SIGSTOP)
        try:
            assert not await bus.send_hello(b"beat")
            await emea.linked(up=False)
            await eventually(lambda: bus.is_parent_silent, "what answers nothing is not silent")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await emea.linked()
        assert not bus.is_parent_silent
        await tree.cut("/emea")
        assert not await bus.send_hello(b"beat")
        await emea.linked(up=False)
        assert not await bus._uplink._probe()
        assert not bus.is_parent_silent


async def test_a_reset_while_the_link_is_cut_counts_for_nothing(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    written = await centre.write(mail=[letter("emea", number) for number in range(5)])
    await emea.mail(5)
    await tree.cut("/emea")
    assert not await bus.send_hello(b"beat")
    await emea.linked(up=False)

    await bus.reset_mail(2)
    await tree.heal("/emea")
    written += await centre.write(mail=[letter("emea", 5)])

    # Who listens reads on after the fifth when the link opens.
    came = await emea.mail(6)
    assert [mail.sequence for mail in came] == [mail.sequence for mail in written]


async def test_a_removed_child_is_cut_off_and_its_mail_is_gone(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    _, apac = await tree.sprout("/apac", centre)
    await bus.send_report({"a": b"1"})
    (written,) = await centre.write(mail=[letter("emea", 1)])
    await centre.write(mail=[letter("apac", 2)])

    await centre.remove_child("emea")
    await centre.remove_child("emea")

    assert not await bus.send_hello(b"beat")
    await emea.linked(up=False)
    assert not await centre.clear_mail(ClearMail("emea", key(1), written.sequence))
    await apac.mail(1)
    await tree.close("/")
    _, listener = await tree.open()
    assert [slot.child for slot in listener.remembered.mail] == ["apac"]
    assert of(ReportArrived, listener.events) == []


async def test_a_child_added_twice_keeps_its_place(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)
    await tree.close("/")

    centre, _ = await tree.open()
    await tree.readmit("/emea", centre)
    await centre.write(mail=[letter("emea", 2)])

    assert [mail.key for mail in await emea.mail(2)] == [key(1), key(2)]


async def test_a_child_whose_server_restarts_goes_on(tree):
    centre, listener = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    await bus.write(own=[StoreOwn("a", b"1")])
    await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)

    await tree.kill_server("/emea")
    await centre.write(mail=[letter("emea", 2)])

    await emea.until(lambda events: {mail.key for mail in mails(events)} == {key(1), key(2)})
    await emea.linked()
    await bus.write(own=[StoreOwn("b", b"2")])
    assert await bus.send_hello(b"beat")
    await listener.until(lambda events: HelloArrived("emea", b"beat") in events)


async def test_a_parent_whose_server_restarts_goes_on(tree):
    centre, listener = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    await bus.send_report({"a": b"1"})
    await listener.until(lambda events: ReportArrived("emea", "a", b"1") in events)

    await tree.kill_server("/")
    await centre.write(mail=[letter("emea", 1)])
    assert [mail.key for mail in await emea.mail(1)] == [key(1)]
    while not await bus.send_report({"a": b"2"}):
        emea.events.clear()
        await emea.linked()

    await listener.until(lambda events: ReportArrived("emea", "a", b"2") in events)


@pytest.mark.nats
async def test_a_bus_that_is_not_let_in_says_so_and_leaves_nothing_open(tmp_path, monkeypatch):
    monkeypatch.setattr("relay.adapters.jetstream.connection.CONNECT_SECONDS", 1.0)
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        bus = tree.new_bus("/", stranger=True)

        with pytest.raises(BusBroken, match="connect"):
            await bus.start()


async def test_mail_written_while_the_link_flaps_is_all_delivered(tree, monkeypatch):
    # So soon a consumer stands still no more whose flow control went into a broken link.
    monkeypatch.setattr("relay.adapters.jetstream.streams.IDLE_HEARTBEAT_SECONDS", 2)
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    count = 0

    for _ in range(3):
        await centre.write(mail=[letter("emea", count + number) for number in range(2000)])
        await tree.cut("/emea")
        count += 2000
        await tree.heal("/emea")

    # Only the latest is looked at: of all of them each time, a slow machine would not see the end.
    last = key(count - 1)
    await emea.until(lambda events: mails(events[-1:]) and events[-1].key == last)
    assert {mail.key for mail in mails(emea.events)} == {key(number) for number in range(count)}


@pytest.mark.nats
async def test_reports_that_the_client_drops_because_it_is_slow_are_read_again(
    tmp_path, monkeypatch
):
    count = 1000
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        bus, _ = await tree.sprout("/emea", centre)
        await tree.close("/")
        assert await bus.send_report({f"slot-{number}": b"1" * 100 for number in range(count)})
        monkeypatch.setattr("relay.adapters.jetstream.connection.PENDING_MESSAGES_MAX", 100)

        _, listener = await tree.open()

        await listener.until(lambda events: len(of(ReportArrived, events)) == count)
        assert [report.key for report in of(ReportArrived, listener.events)] == [
            f"slot-{number}" for number in range(count)
        ]


@pytest.mark.nats
async def test_mail_comes_to_its_end_though_its_server_said_that_one_more_follows(
    tmp_path, monkeypatch
):
    def one_too_many(reply):
        place = place_of(reply)
        return place and replace(place, pending=place.pending + 1)

    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        bus, emea = await tree.sprout("/emea", centre)
        monkeypatch.setattr(jetstream_mailbox, "place_of", one_too_many)

        written = await centre.write(mail=[letter("emea", number) for number in range(3)])

        last = await emea.until(lambda events: [m for m in mails(events) if not m.pending])
        assert [mail.sequence for mail in last] == [written[-1].sequence]
        reading = await bus.reset_mail(2)
        await emea.until(lambda events: len([m for m in mails(events) if not m.pending]) > 1)
        again = [mail.key for mail in mails(emea.events) if mail.reading == reading]
        assert again == [key(1), key(2), key(2)]


@pytest.mark.nats
async def test_a_consumer_that_kept_its_state_in_a_file_is_made_anew(tmp_path):
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        config = {
            "name": "emea",
            "durable_name": "emea",
            "deliver_subject": deliveries("emea"),
            "ack_policy": "all",
        }
        server, seeds = tree._servers["/"]
        connection = Connection(server.url, seeds.relay, "an older relay", "_INBOX.older")
        await connection.open()
        await connection.api("CONSUMER.CREATE.MAIL.emea", stream_name="MAIL", config=config)
        await centre.write(mail=[letter("emea", 1)])

        _, emea = await tree.sprout("/emea", centre)

        assert [mail.key for mail in await emea.mail(1)] == [key(1)]
        info = await connection.api("CONSUMER.INFO.MAIL.emea")
        assert info["config"]["mem_storage"]
        await connection.close()
