"""What was delivered and does not work yet says why, up to the placement's condition."""

import pytest

from relay.syncer import stalled
from tests.awaiting import eventually
from tests.contract.spaces import deployment
from tests.memory_tree import memory_tree, placement
from tests.unit.centre_world import placement_key

pytestmark = pytest.mark.leaps


async def test_what_does_not_work_yet_says_why_in_the_placements_condition(tmp_path, monkeypatch):
    monkeypatch.setattr(stalled, "STALLED_SECONDS", 0.3)
    async with memory_tree(tmp_path, ["/emea", "/emea/s1", "/emea/s2"]) as tree:
        broken = {**deployment(image="web:broken"), "kind": "StatefulSet"}
        await tree.apply(broken, placement("shop", "shop"))

        async def said():
            status = (await tree.workloads.get(placement_key("shop"))).get("status", {})
            conditions = {item["type"]: item for item in status.get("conditions", ())}
            message = conditions.get("Healthy", {}).get("message", "")
            # One of them may be told of before the other.
            return status.get("errors") == [] and message.startswith(
                "0 of 2 destinations are healthy (2 progressing): "
                "shop/statefulsets.apps/web: 0 of 2 replicas ready (2 destinations, e.g. /emea/s"
            )

        await eventually(said)
        await tree.apply({**deployment(), "kind": "StatefulSet"})
        healthy = await tree.until("shop", lambda count: count.summary.health == {"healthy": 2})
        assert healthy.summary.exceptions == ()
