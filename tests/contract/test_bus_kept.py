"""What a bus keeps, whoever is away: in memory, and over real nats-servers.

Not promised is that a reset takes back an acknowledgement just before it: what a run reads before
it is welcomed counts for nothing, and a session begins with a reset.
"""

import asyncio

import pytest

from relay.adapters.jetstream import streams as jetstream_streams
from relay.adapters.jetstream.connection import Connection
from relay.core.effects import AckMail, ClearMail, DropReport, StoreOwn
from relay.core.events import HelloArrived, OwnRecord, ReportArrived, Welcomed
from schemas.content.blobs import OBJECT, store
from schemas.objects.objects import ObjectKey
from schemas.reports.link import Welcome
from schemas.reports.reports import Done
from schemas.values.wire import encode
from tests.awaiting import eventually
from tests.contract.buses import TREES, NatsTree, key, letter, mails, of, said_anew


@pytest.fixture(params=TREES)
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


async def loads(bus, reference):
    return (await bus.load_blob(reference)).value is not None


async def test_what_was_confirmed_outlives_its_server_however_that_ends(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    blob = store(OBJECT, b"x" * 100)
    done = Done(ObjectKey("", "configmaps", "shop", "a"), "uid", "00", ("p",), True, 1)
    await centre.store_done({"a": done})
    await centre.write(blobs=blob.values)
    (written,) = await centre.write(mail=[letter("emea", 2)])
    await centre.write(own=[StoreOwn("a", b"1", 1, "inc", 7)])

    await tree.kill_server("/")
    await tree.close("/")
    centre, listener = await tree.open()

    remembered = listener.remembered
    assert remembered.own == (OwnRecord("a", b"1", "inc", 7),)
    assert [(slot.child, slot.sequence) for slot in remembered.mail] == [("emea", written.sequence)]
    assert remembered.blobs == set(blob.values)
    assert await centre.load_done() == [done]


async def test_what_was_erased_stays_erased_however_its_server_ends(tree):
    centre, _ = await tree.open()
    for version in range(3):
        done = Done(ObjectKey("", "configmaps", "shop", "a"), "uid", "00", ("p",), True, version)
        for name in ("a", "b"):
            await centre.store_done({name: done})
            await centre.write(own=[StoreOwn(name, b"%d" % version)])
    await centre.store_done({"a": None})
    await centre.write(own=[StoreOwn("a", None)])

    for _ in range(2):
        await tree.kill_server("/")
        await tree.close("/")
        centre, listener = await tree.open()
        assert [(record.key, record.data) for record in listener.remembered.own] == [("b", b"2")]
        assert await centre.load_done() == [done]
        await centre.write(own=[StoreOwn("c", b"1"), StoreOwn("c", None)])


async def test_records_are_read_back_in_the_order_of_their_last_writing(tree):
    centre, _ = await tree.open()
    await centre.write(own=[StoreOwn(name, b"1") for name in ("a", "b", "c", "d")])
    await centre.write(own=[StoreOwn("b", b"2")])
    await centre.write(own=[StoreOwn("a", b"2"), StoreOwn("c", None)])
    await tree.close("/")

    _, listener = await tree.open()

    assert [record.key for record in listener.remembered.own] == ["d", "b", "a"]


async def test_mail_content_and_reports_need_the_parents_server_alone(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    blob = store(OBJECT, b"x" * 100)
    await centre.write(blobs=blob.values)
    (written,) = await centre.write(mail=[letter("emea", 1)])
    await tree.close("/")

    bus, emea = await tree.open("/emea")
    await emea.linked()
    await emea.mail(1)
    # On a link that has just opened not all ways lead through yet.
    await eventually(lambda: loads(bus, blob.reference))
    await eventually(lambda: bus.send_report({"a": b"1"}))
    await eventually(lambda: bus.send_hello(b"beat"))
    await bus.ack_mail(AckMail(written.sequence))

    _, listener = await tree.open()
    expected = [ReportArrived("emea", "a", b"1"), HelloArrived("emea", b"beat")]
    await listener.until(lambda events: [said_anew(it) for it in events[:2]] == expected)


async def test_what_is_yet_to_come_does_not_count_what_was_cleared(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    written = await centre.write(mail=[letter("emea", number) for number in range(4)])
    for at in (1, 3):
        assert await centre.clear_mail(ClearMail("emea", key(at), written[at].sequence))

    _, emea = await tree.open("/emea")

    came = await emea.mail(2)
    assert [(mail.key, mail.pending) for mail in came] == [(key(0), 1), (key(2), 0)]


async def test_the_same_bytes_written_again_are_a_message_of_their_own(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    (first,) = await centre.write(mail=[letter("emea", 1)])
    (second,) = await centre.write(mail=[letter("emea", 1, first.sequence)])
    assert second.sequence > first.sequence
    await emea.until(lambda events: any(m.sequence == second.sequence for m in mails(events)))


async def test_a_report_is_dropped_only_if_nothing_was_written_to_its_slot_since(tree):
    centre, listener = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)
    assert await bus.send_report({"a": b"1", "b": b"1"})
    await listener.until(lambda events: len(of(ReportArrived, events)) == 2)
    old, gone = of(ReportArrived, listener.events)
    assert await bus.send_report({"a": b"2"})
    await centre.drop_reports(
        [DropReport("emea", report.key, report.sequence) for report in (old, gone)]
    )
    await tree.close("/")

    _, listener = await tree.open()

    await listener.until(lambda events: ReportArrived("emea", "a", b"2") in events)
    assert [report.key for report in of(ReportArrived, listener.events)] == ["a"]


async def test_what_lies_in_a_slot_is_dropped_up_to_where_it_was_read_and_no_further(tree):
    centre, listener = await tree.open()
    bus, _ = await tree.sprout("/emea", centre)
    assert await bus.send_report({"a": b"1"})
    assert await bus.send_report({"b": b"1"})
    await listener.until(lambda events: len(of(ReportArrived, events)) == 2)
    last = max(report.sequence for report in of(ReportArrived, listener.events))
    assert await bus.send_report({"b": b"2"})
    # Of a slot in which nothing lies, too.
    drops = [DropReport("emea", key, last, older=True) for key in "abc"]
    await centre.drop_reports(drops)
    await tree.close("/")

    _, listener = await tree.open()

    await listener.until(lambda events: ReportArrived("emea", "b", b"2") in events)
    assert [report.key for report in of(ReportArrived, listener.events)] == ["b"]


async def test_welcomes_come_in_the_order_in_which_they_were_sent(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    (written,) = await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)
    await bus.ack_mail(AckMail(written.sequence))
    sent = [Welcome("inc", "run", last, b"") for last in range(1, 31)]
    for message in sent:
        await centre.send_welcome("emea", encode(message))
    await emea.until(lambda events: Welcomed(sent[-1]) in events)
    came = [event.message.last_sequence for event in of(Welcomed, emea.events)]
    assert came == sorted(came)
    assert len(came) == len(sent)


async def test_a_child_let_in_again_reads_what_was_written_since_from_its_beginning(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    (old,) = await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)
    await bus.ack_mail(AckMail(old.sequence))
    await centre.remove_child("emea")
    assert not await bus.send_hello(b"beat")
    await emea.linked(up=False)
    emea.events.clear()

    await tree.readmit("/emea", centre)
    (new,) = await centre.write(mail=[letter("emea", 2)])
    await emea.linked()
    await bus.reset_mail(1)

    came = await emea.mail(1)
    assert {(mail.key, mail.sequence) for mail in came} == {(key(2), new.sequence)}


@pytest.mark.nats
async def test_mail_that_waits_too_long_comes_again_in_its_order(tmp_path, monkeypatch):
    """After the newest, so that what comes late is older than what was read."""
    monkeypatch.setattr(jetstream_streams, "ACK_WAIT_SECONDS", 1)
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        bus, emea = await tree.sprout("/emea", centre)
        written = await centre.write(mail=[letter("emea", number) for number in range(3)])
        await emea.mail(3)
        await bus.ack_mail(AckMail(written[0].sequence))
        emea.events.clear()
        waiting = [mail.sequence for mail in written[1:]]
        await emea.until(lambda events: {m.sequence for m in mails(events)} >= {*waiting})
        came = list(dict.fromkeys(mail.sequence for mail in mails(emea.events)))
        assert came[-2:] == waiting


@pytest.mark.nats
async def test_what_a_record_replaces_is_kept_no_more_also_in_a_stream_made_before(
    tmp_path, monkeypatch
):
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        with monkeypatch.context() as before:
            before.setattr(jetstream_streams, "REPLACING", frozenset())
            await tree.open()
            await tree.close("/")
        centre, _ = await tree.open()
        for version in range(5):
            await centre.write(own=[StoreOwn(name, b"%d" % version) for name in ("a", "b")])
        info = await centre._relay.api("STREAM.INFO.OWN")
        assert info["state"]["messages"] == 2
        await centre.write(own=[StoreOwn("a", None)])
        await tree.kill_server("/")
        await tree.close("/")
        _, listener = await tree.open()
        assert [record.key for record in listener.remembered.own] == ["b"]


@pytest.mark.nats
async def test_streams_keep_the_last_value_of_each_slot_without_end(tmp_path, monkeypatch):
    """And where a child's reports find no room, the oldest give way to the newest."""
    monkeypatch.setattr(jetstream_streams, "STAT_MAX_BYTES", 200_000)
    shapes = {}
    honest = Connection.api

    async def api(self, verb, *rest, **config):
        if verb.startswith("STREAM.CREATE."):
            shapes[config["name"]] = config
        return await honest(self, verb, *rest, **config)

    monkeypatch.setattr(Connection, "api", api)
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, listener = await tree.open()
        bus, _ = await tree.sprout("/emea", centre)
        last = {"retention": "limits", "discard": "old", "storage": "file", "max_bytes": -1}
        for name in ("MAIL", "OWN", "BLOB", "DONE"):
            kept = shapes[name]
            assert {**kept, **last} == kept
            assert (kept["max_msgs_per_subject"] == 1) != kept.get("allow_rollup_hdrs", False)
            assert not kept.keys() & {"max_age", "max_msgs"}
            assert kept["duplicate_window"] == 100_000_000
        await tree.close("/")
        for number in range(10):
            assert await bus.send_report({f"slot-{number}": b"1" * 50_000})
        _, listener = await tree.open()
        await listener.until(
            lambda events: any(e.key == "slot-9" for e in of(ReportArrived, events))
        )
        there = [report.key for report in of(ReportArrived, listener.events)]
        assert there == [f"slot-{number}" for number in range(10)][-len(there) :]
        assert 1 <= len(there) <= 4


@pytest.mark.nats
async def test_a_slot_that_cannot_be_read_is_erased_and_ends_no_run(tmp_path):
    """Made once by hand with a relay's own key; the relay began again for ever."""
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        _, emea = await tree.sprout("/emea", centre)
        (kept,) = await centre.write(mail=[letter("emea", 1)])
        client = centre._relay.client
        strange = ({}, {"Lc-Gen": "x", "Lc-Hash": "00", "Lc-Has-Body": "1"}, {"Lc-Gen": "-1"})
        for number, headers in enumerate(strange):
            await client.request(f"lc.emea._mail.junk{number}", b"junk", headers=headers)
        await emea.mail(1 + len(strange))
        await tree.close("/")

        centre, listener = await tree.open()

        assert [slot.sequence for slot in listener.remembered.mail] == [kept.sequence]
        info = await centre._relay.api("STREAM.INFO.MAIL")
        assert info["state"]["messages"] == 1


@pytest.mark.nats
async def test_a_child_that_says_much_delays_no_other_and_loses_nothing(tmp_path):
    count = 5_000
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        loud, _ = await tree.sprout("/loud", centre)
        quiet, _ = await tree.sprout("/quiet", centre)
        await tree.close("/")
        centre = tree.new_bus("/")
        await centre.start()
        await tree.readmit("/loud", centre)
        await tree.readmit("/quiet", centre)
        try:
            assert await loud.send_report({f"slot-{n}": b"1" * 100 for n in range(count)})
            assert await quiet.send_report({"only": b"1"})
            heard, before_quiet = [], None
            async with asyncio.timeout(60):
                while len(heard) < count or before_quiet is None:
                    for event in await centre.inbox.next_batch(512):
                        if event.child == "quiet":
                            before_quiet = len(heard)
                        else:
                            heard.append(event.key)
            # Passed over in the common reading and read apart, the loud one is at about the half.
            assert before_quiet < count * 3 / 4
            assert list(dict.fromkeys(heard)) == [f"slot-{n}" for n in range(count)]
            assert await loud.send_report({"slot-0": b"2", "last": b"2"})
            last = []
            async with asyncio.timeout(60):
                while "last" not in last:
                    last += [event.key for event in await centre.inbox.next_batch(512)]
        finally:
            await centre.close()
