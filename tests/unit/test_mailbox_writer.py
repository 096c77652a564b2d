"""A child's mailbox at its parent: what many writes leave behind."""

import sys

from relay.core.link.writer import MailboxWriter
from tests.unit.test_keys_first import Target, location

MANY = 1000


def test_of_many_writes_that_are_confirmed_nothing_is_left_to_look_through():
    target = Target()
    writer = MailboxWriter("child", target, [], lambda *_, **__: None)
    keys = [location(target, generation) for generation in range(1, MANY + 1)]
    for key in keys:
        writer.mark(key)
    writer.flush(0.0)
    assert writer.load == MANY
    for sequence, key in enumerate(keys, 1):
        writer.written(key, sequence)
    assert not list(writer.causes())
    assert sys.getsizeof(writer._in_flight) == sys.getsizeof({})
