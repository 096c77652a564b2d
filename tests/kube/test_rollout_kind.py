"""An API server takes Rollouts as they are meant, and gives a status back as it was written."""

import json

import pytest

from schemas.api.parsing import parse_kind
from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.yaml_writing import write_yaml
from tests.awaiting import until_object
from tests.kube.test_placement_finalizer import HubCentre, centre, issued
from tests.unit.centre_world import SHOP, condition, config, location, target
from tests.unit.rollout_world import V2, Fleet, rollout
from tests.unit.test_rollout_controller import ROLLOUT, answer, gates, phase
from tests.unit.test_rollout_deleted import is_free, reasons

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

__all__ = ["HubCentre", "centre"]

WAVES = (
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "soak": "30m"},
    {"name": "half", "percent": 50, "maxConcurrent": "25%", "windows": []},
    {"name": "rest", "percent": 100, "rate": {"base": 2, "factor": 1.5}},
)
WINDOW = {"cron": "0 2 * * 2-5", "duration": "3h", "zone": "destination"}


def object_of(**spec):
    said = {"placement": {"name": "shop"}, "waves": list(WAVES), **spec}
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop"},
        "spec": said,
    }


def test_a_status_comes_back_as_it_was_written(module_server):
    for definition in custom_resource_definitions():
        module_server.kubectl("apply", "-f", "-", stdin=write_yaml(definition))
    module_server.await_definitions()
    obj = object_of(windows=[WINDOW], failures={"maximum": "2%", "atLeast": 5})
    module_server.kubectl("apply", "-f", "-", stdin=json.dumps(obj))
    fleet = Fleet(rollout(WAVES, windows=[WINDOW]))
    fleet.facts = {"members": lambda _wave: 0}
    fleet.turn()
    fleet.ask("pin", path="/emea", revision=1)
    fleet.ask("freeze", path="/apac")
    status = fleet.want(V2).to_mapping()
    words = ("patch", "rollout", "shop", "--subresource=status", "--type=merge", "-p")
    module_server.kubectl(*words, json.dumps({"status": status}))
    read = json.loads(module_server.kubectl("get", "rollout", "shop", "-o", "json"))
    # What is not seen yet says so.
    assert read["status"] == {"observedGeneration": 0, **status}
    said = parse_kind(read)
    assert said.status == fleet.state
    head, row = module_server.kubectl("get", "rol").splitlines()
    assert head.split()[:6] == ["NAME", "PLACEMENT", "REVISION", "WAVE", "READY", "PHASE"]
    # All are pinned or frozen: its waves are of nobody.
    assert row.split()[:5] == ["shop", "shop", "2", "rest", "Complete"]


def held(reason):
    return lambda obj: reasons(obj) == [reason]


async def test_a_rollout_deleted_by_kubectl_lets_go_when_complete_and_else_freezes(centre):
    waves = [{"name": "all", "percent": 100, "approval": "before"}]
    said = {**object_of(waves=waves), "metadata": {"name": "shop"}}
    await centre.inventory.apply(target("s1", "/s1"), "user")
    await centre.inventory.apply(location("all"), "user")
    async with centre.running():
        await issued(centre)
        await centre.apply_all(said)
        await until_object(centre.wds, ROLLOUT, phase("Complete"))
        await centre.kubectl("delete", "-f", "-", stdin=json.dumps(said))
        await centre.relay.until(is_free)
        await centre.apply_all(said)
        await until_object(centre.wds, ROLLOUT, phase("Complete"))
        await centre.apply_all(config("a", value="2"))
        await until_object(centre.wds, SHOP, held("AwaitingApproval"))
        # Who has only kubectl approves by an annotation.
        asked = {"id": "7f3a", "action": "approve", "wave": "all", "user": "jane"}
        request = f"leafcast.io/rollout-request={json.dumps(asked)}"
        await centre.kubectl("annotate", "rollout", "shop", "--overwrite", request)
        await until_object(centre.wds, ROLLOUT, lambda obj: "request" in obj["status"])
        await until_object(centre.wds, SHOP, lambda obj: reasons(obj) != ["AwaitingApproval"])
        words = ("get", "rollout", "shop", "-o", "jsonpath={.status.request}")
        assert json.loads(await centre.kubectl(*words))["id"] == "7f3a"
        await answer(centre)
        await until_object(centre.wds, ROLLOUT, phase("Complete"))
        await centre.apply_all(config("a", value="3"))
        await until_object(centre.wds, SHOP, held("AwaitingApproval"))
        before = gates(centre.relay)
        await centre.kubectl("delete", "-f", "-", stdin=json.dumps(said))
        obj = await until_object(centre.wds, SHOP, held("RolloutDeleted"))
        since = obj["status"]["held"][0]["since"]
        assert condition(obj, "Synced")["reason"] == "RolloutDeleted"
        head, row = (await centre.kubectl("get", "epl", "shop")).splitlines()
        assert "HOLD" in head.split()
        assert "RolloutDeleted" in row.split()
        words = ("wait", "epl/shop", "--for=condition=Synced", "--timeout=1s")
        code, _, _ = await centre.kubectl(*words, check=False)
        assert code
    async with centre.running() as controllers:
        await controllers.caught_up()
        await controllers.written(["shop"])
        obj = json.loads(await centre.kubectl("get", "epl", "shop", "-o", "json"))
        assert obj["status"]["held"][0]["since"] == since
        assert gates(centre.relay) == before
        await centre.kubectl("annotate", "epl/shop", "leafcast.io/release-rollout=true")
        await centre.relay.until(is_free)
        await until_object(centre.wds, SHOP, lambda obj: reasons(obj) == [])
