"""In which order a node says things: a hello repeats a progress, and speaks of no newer report."""

import asyncio

import pytest

from relay.shell.outbox import Outbox
from schemas.values.subjects import PROGRESS_KEY


class Sent:
    """A way to the parent that takes what it is given, or nothing."""

    def __init__(self, *, takes=True):
        self.takes = takes
        self.all = []

    async def send_report(self, reports):
        self.all.append(dict(reports))
        return self.takes

    async def send_hello(self, hello):
        self.all.append(hello)
        return self.takes


async def test_a_hello_goes_before_what_was_reported_after_it():
    sent = Sent()
    outbox = Outbox(sent)
    outbox.report("a", b"1")
    outbox.report(PROGRESS_KEY, b"of a1")
    outbox.hello(b"of a1")
    outbox.report("a", b"2")
    outbox.report(PROGRESS_KEY, b"of a2")
    assert await outbox.send()
    assert sent.all == [b"of a1", {"a": b"2", PROGRESS_KEY: b"of a2"}]


async def test_progress_goes_last_and_the_newest_of_each_slot_once():
    sent = Sent()
    outbox = Outbox(sent)
    for key, data in (("a", b"1"), (PROGRESS_KEY, b"p"), ("b", b"1"), ("a", b"2")):
        outbox.report(key, data)
    assert await outbox.send()
    (reports,) = sent.all
    assert list(reports.items()) == [("b", b"1"), ("a", b"2"), (PROGRESS_KEY, b"p")]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(outbox.send(), 0.01)


async def test_what_the_link_did_not_take_is_told():
    outbox = Outbox(Sent(takes=False))
    outbox.hello(b"h")
    assert not await outbox.send()
    outbox.report("a", b"1")
    assert not await outbox.send()
