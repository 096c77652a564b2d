"""What the simulation's world takes for granted of a bus, in memory and over real nats-servers."""

import pytest

from relay.core.effects import AckMail, ClearMail
from relay.core.events import Welcomed
from schemas.reports.link import Welcome
from schemas.values.wire import encode
from tests.contract.buses import TREES, key, letter, mails


@pytest.fixture(params=TREES)
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


async def test_slots_are_read_in_the_order_of_their_last_writing(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    written = await centre.write(mail=[letter("emea", number) for number in range(4)])
    await centre.write(mail=[letter("emea", 1, written[1].sequence)])
    await centre.write(mail=[letter("emea", 0, written[0].sequence)])

    _, emea = await tree.open("/emea")

    came = await emea.mail(4)
    assert [mail.key for mail in came] == [key(2), key(3), key(1), key(0)]
    assert [mail.pending for mail in came] == [3, 2, 1, 0]


async def test_a_run_may_read_again_what_a_former_one_read(tree):
    centre, _ = await tree.open()
    _, emea = await tree.sprout("/emea", centre)
    await centre.write(mail=[letter("emea", number) for number in range(3)])
    await emea.mail(3)
    await tree.close("/emea")

    _, emea = await tree.open("/emea")

    assert [mail.key for mail in await emea.mail(3)] == [key(number) for number in range(3)]


async def test_sequences_go_on_where_a_slot_was_cleared_or_a_child_erased(tree):
    centre, _ = await tree.open()
    await tree.plant("/emea", centre)
    await tree.plant("/apac", centre)
    (first,) = await centre.write(mail=[letter("emea", 1)])
    await centre.clear_mail(ClearMail("emea", key(1), first.sequence))
    (second,) = await centre.write(mail=[letter("emea", 1)])
    await centre.remove_child("emea")
    (third,) = await centre.write(mail=[letter("apac", 1)])

    assert first.sequence < second.sequence < third.sequence


async def test_a_welcome_is_not_kept_for_a_child_that_is_away(tree):
    centre, _ = await tree.open()
    bus, emea = await tree.sprout("/emea", centre)
    early, late = (Welcome("inc", "run", last, b"") for last in (1, 2))
    await tree.close("/emea")
    await centre.send_welcome("emea", encode(early))

    bus, emea = await tree.open("/emea")
    (written,) = await centre.write(mail=[letter("emea", 1)])
    await emea.mail(1)
    await bus.ack_mail(AckMail(written.sequence))
    await centre.send_welcome("emea", encode(late))

    await emea.until(lambda events: Welcomed(late) in events)
    assert Welcomed(early) not in emea.events
    assert len(mails(emea.events)) == 1
