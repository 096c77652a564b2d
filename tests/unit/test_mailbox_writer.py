"""A child's mailbox at its parent: what many writes leave behind."""

import sys

from relay.core.events import MailSlot
from relay.core.link.writer import MailboxWriter, Supply
from tests.unit.test_keys_first import Target, location

MANY = 1000


class LateTarget(Target):
    """Its content comes later."""

    here = False

    def supply(self, _key):
        return Supply.HERE if self.here else Supply.COMING


def writer_of(target, child="child"):
    return MailboxWriter(child, target, [], lambda *_, **__: None)


def test_of_many_writes_that_are_confirmed_nothing_is_left_to_look_through():
    target = Target()
    writer = writer_of(target)
    keys = [location(target, generation) for generation in range(1, MANY + 1)]
    for key in keys:
        writer.mark(key)
    writer.flush(0.0)
    assert writer.load == MANY
    for sequence, key in enumerate(keys, 1):
        writer.written(key, sequence)
    assert not list(writer.causes())
    assert sys.getsizeof(writer._in_flight) == sys.getsizeof({})


def test_of_much_that_waited_for_content_nothing_is_left_to_look_through():
    target = LateTarget()
    writer = writer_of(target)
    keys = [location(target, generation) for generation in range(1, MANY + 1)]
    for key in keys:
        writer.mark(key)
    writer.flush(0.0)
    assert writer.awaits_content
    assert not writer.load
    target.here = True
    assert all(writer.supplied(key) for key in keys)
    assert sys.getsizeof(writer._awaiting) == sys.getsizeof({})
    writer.flush(0.0)
    assert writer.load == MANY


def test_what_all_mailboxes_hold_of_a_record_is_kept_once():
    target = Target()
    key = location(target, 1)
    record = target.record(key)
    written, restored = writer_of(target), writer_of(target)
    written.mark(key)
    written.flush(0.0)
    written.written(key, 3)
    restored.restore(MailSlot("child", key, 7, 1, record.payload_hash, has_body=True))
    for writer, sequence in ((written, 3), (restored, 7)):
        assert writer.slots[key].version is record.version
        assert writer.slots[key].sequence == sequence
        writer.assert_invariants()


def test_a_restored_slot_of_another_record_is_written_again():
    target = Target()
    key = location(target, 2)
    writer = writer_of(target)
    writer.restore(MailSlot("child", key, 7, 1, bytes(32), has_body=True))
    writer.assert_invariants()
    writer.flush(0.0)
    assert writer.slots[key].version is target.record(key).version
    writer.assert_invariants()
