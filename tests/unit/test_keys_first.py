"""A child gets new keys before all that they vouch for, whatever is on its way."""

from relay.core.effects import WriteMail
from relay.core.link.writer import MailboxWriter, SlotForm, Supply
from relay.core.records.accepted import read_record
from schemas.records.records import (
    API_KEYS,
    KeysRecord,
    LocationRecord,
    Source,
    body_of,
    encode_payload,
)
from schemas.values.identity import KEYS_KEY
from tests.unit.meeting import ROOT, SIGNER, TERM, TREE


class Target:
    """Holds what the child is to have, all of it in full."""

    def __init__(self):
        self.held = {}

    def hold(self, signer, kind, record):
        held = read_record(signer.seal(kind, encode_payload(record), body_of(record)).encode())[1]
        self.held[held.key] = held
        return held.key

    def record(self, key):
        return self.held.get(key)

    def wish(self, _child, _record, *, has):
        del has
        return SlotForm.FULL

    def supply(self, _key):
        return Supply.HERE

    def carried(self, _key):
        return ()


def keys(target, generation):
    source = Source(API_KEYS, TREE, "", "keys")
    return target.hold(ROOT, "keys", KeysRecord(source, generation, TERM.hex(), "", ()))


def location(target, generation):
    source = Source("edge.kubestellar.io/Location", "inv", "", f"l{generation}")
    record = LocationRecord(source, generation, TERM.hex(), "", {}, {}, None)
    return target.hold(SIGNER, "location", record)


def test_keys_are_written_first_and_nothing_else_while_newer_ones_wait():
    out, target = [], Target()
    writer = MailboxWriter("child", target, out, lambda *_, **__: None)

    def written():
        writer.flush(0.0)
        found = [effect.key for effect in out if isinstance(effect, WriteMail)]
        out.clear()
        writer.assert_invariants()
        return found

    early = location(target, 2)
    writer.mark(early)
    writer.mark(keys(target, 1))
    assert written() == [KEYS_KEY, early]

    late = location(target, 4)
    writer.mark(keys(target, 3))
    writer.mark(late)
    assert written() == [], "the keys before are not confirmed"
    writer.written(KEYS_KEY, 1)
    assert written() == [KEYS_KEY, late]
