"""What the centre's publisher tells of its ledger, whatever lies there."""

import msgspec

from relay.core.config import NodeConfig
from relay.core.events import OwnRecord, Remembered
from relay.core.instant import Instant
from relay.core.node import Node
from relay.shell.counters import Counters
from relay.shell.publisher import CentrePublisher
from schemas.records.records import Record, Source
from schemas.records.roots import Roots
from schemas.values.identity import KEYS_KEY, NodePath
from schemas.values.wire import encode
from tests.doubles.watches import centre_watch
from tests.unit.meeting import ROOT, SIGNER, TREE, Meeting

SOURCE = Source("leafcast.io/EdgePlacement", "wds", "", "shop")


def test_a_delta_of_a_newer_program_counts_as_damaged_and_hides_no_other_record():
    keys = Meeting().centre.records[KEYS_KEY].data
    fields = msgspec.msgpack.decode(encode(Record(SOURCE, 5, "00" * 8, "trace")))
    payload = msgspec.msgpack.encode([*fields, {"a newer": "form"}])
    newer = SIGNER.seal("delta", payload, b"\x80").encode()
    own = tuple(
        OwnRecord(key, data, "", 0) for key, data in ((KEYS_KEY, keys), (SOURCE.key, newer))
    )
    config = NodeConfig(NodePath(), TREE, Roots({ROOT.key_id: ROOT.public_key}), "run")
    remembered = Remembered(own=own)
    node = Node(config, remembered, [], Instant(0.0, 0))
    assert node.view.records[SOURCE.key].opaque
    watch = centre_watch(None)
    publisher = CentrePublisher(None, None, TREE, lambda: node.view, None, Counters(), watch)
    publisher.restore(remembered)
    ledger = publisher.ledger()
    assert (ledger.records.keys(), ledger.damaged) == ({KEYS_KEY}, {SOURCE.key})
