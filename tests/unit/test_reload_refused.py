"""Whether a nats-server that keeps its old configuration asks to be told again."""

import pytest

from relay.adapters.server.process import ReloadRefused

BUSY = (
    "[ERR] Failed to reload server configuration: config reload not supported for LeafNode: "
    'remote urls=["nats://127.0.0.1:1"]: cannot be added at the moment, try again'
)
WRONG = "[ERR] Failed to reload server configuration: nats.conf:3: unknown field"
OTHER = "[INF] lid:9 - Leafnode connection closed: Client Closed"


@pytest.mark.parametrize(
    ("log", "for_now"),
    [([BUSY, OTHER], True), ([BUSY, WRONG], False), ([WRONG, BUSY], True), ([OTHER], False)],
)
def test_its_last_word_counts(log, for_now):
    assert ReloadRefused("refused", log).for_now is for_now
