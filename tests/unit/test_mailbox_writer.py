"""A child's mailbox at its parent: what many writes leave behind."""

import sys

from relay.core.events import MailSlot
from relay.core.link.writer import MailboxWriter, Supply
from schemas.records.snapshots import SnapshotRank
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


def test_who_read_what_a_former_run_left_reads_on_behind_it_whatever_is_written_since():
    target = Target()
    kept, newer = location(target, 1), location(target, 2)
    writer = writer_of(target)
    payload = target.record(kept).payload_hash
    writer.restore(MailSlot("child", kept, 7, 1, payload, has_body=True))
    held, reached = writer._digest.of_all, SnapshotRank(0, 1)
    writer.mark(newer)
    writer.flush(0.0)
    assert writer._digest.of_all != held
    # The same hello comes again under load: before the write is confirmed, and after.
    assert writer.read_through(held, reached, ()) == 7
    writer.written(newer, 9)
    assert writer.end == 9
    assert writer.read_through(held, reached, ()) == 7
    assert writer.read_through(writer._digest.of_all, reached, ()) == 9
    assert writer.read_through(bytes(16), reached, ()) is None
    writer.assert_invariants()


def test_a_mailbox_that_is_written_anew_is_read_whole():
    target = Target()
    kept = location(target, 1)
    writer = writer_of(target)
    payload = target.record(kept).payload_hash
    writer.restore(MailSlot("child", kept, 7, 1, payload, has_body=True))
    held = writer._digest.of_all
    writer.rewrite()
    assert writer.read_through(held, SnapshotRank(0, 1), ()) is None


def test_of_an_empty_mailbox_nothing_was_read_before():
    target = Target()
    writer = writer_of(target)
    held = writer._digest.of_all
    writer.mark(location(target, 1))
    writer.flush(0.0)
    assert writer.read_through(held, SnapshotRank(0, 1), ()) is None
