"""An API server takes Rollouts as they are meant, and gives a status back as it was written."""

import json

import pytest

from schemas.api import parse_kind
from schemas.crds.definitions import custom_resource_definitions
from schemas.yaml_writing import write_yaml
from tests.unit.rollout_world import V2, Fleet, rollout

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

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
    fleet.turn()
    fleet.ask("pin", path="/emea", revision=1)
    fleet.ask("freeze", path="/apac")
    status = fleet.want(V2).to_mapping()
    words = ("patch", "rollout", "shop", "--subresource=status", "--type=merge", "-p")
    module_server.kubectl(*words, json.dumps({"status": status}))
    read = json.loads(module_server.kubectl("get", "rollout", "shop", "-o", "json"))
    assert read["status"] == status
    said = parse_kind(read)
    assert said.status == fleet.state
    head, row = module_server.kubectl("get", "rol").splitlines()
    assert head.split()[:5] == ["NAME", "PLACEMENT", "REVISION", "WAVE", "PHASE"]
    # All are pinned or frozen: its waves are of nobody.
    assert row.split()[:5] == ["shop", "shop", "2", "rest", "Complete"]
