"""What a grant covers does not depend on whether a record comes in full or as a head."""

import pytest

from schemas.records.records import DeltaHead, KeyGrant, LocationRecord, Source
from schemas.values.identity import KeyId, NodePath

SOURCE = Source("edge.kubestellar.io/Location", "inventory", "", "stores")
LOCATION = LocationRecord(SOURCE, 1, "00" * 8, "", {"tier": "gold"}, {}, None)
DELTA = DeltaHead(SOURCE, 1, "00" * 8, "", b"", (), 0)


@pytest.mark.parametrize("path", ["/", "/emea"])
def test_a_head_of_a_location_is_covered_as_the_location_is(path: str):
    grant = KeyGrant(KeyId("b" * 26), bytes(32), ("location", "delta"), NodePath.parse(path))
    assert grant.covers("location", LOCATION)
    assert grant.covers("location", LOCATION.head)
    assert grant.covers("delta", DELTA) is (path == "/")
