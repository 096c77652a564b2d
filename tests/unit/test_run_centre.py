"""`leafcast run center` says in the log what is wrong with its spaces, and runs whatever it is."""

import asyncio
import logging
from types import SimpleNamespace

import pytest

from leafcast.cli import run_centre
from leafcast.doctor import placement_checks, space_checks
from leafcast.space_settings import CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from schemas.crds.definitions import custom_resource_definitions
from tests.awaiting import eventually
from tests.unit.stub_api_server import CONFIG_MAP_KIND, stub_server, write_kubeconfig


class Daemon:
    """One that runs until a test ends it."""

    def __init__(self):
        self.runs, self.end = False, asyncio.Event()

    async def run(self):
        self.runs = True
        await self.end.wait()


def serve_all(stub):
    """Have it serve all kinds of ours, and Nodes, of which there is one."""
    groups = {}
    for definition in custom_resource_definitions(inventory=False):
        name, _, group = definition["metadata"]["name"].partition(".")
        groups.setdefault(group, []).append({**CONFIG_MAP_KIND, "name": name, "kind": name})
    versions = [{"version": "v1"}]
    stub.answers["/apis"]["groups"] = [{"name": it, "versions": versions} for it in groups]
    for group, kinds in groups.items():
        stub.answers[f"/apis/{group}/v1"] = {"kind": "APIResourceList", "resources": kinds}
    nodes = {**CONFIG_MAP_KIND, "name": "nodes", "kind": "Node", "namespaced": False}
    stub.answers["/api/v1"]["resources"].append(nodes)
    node = {"metadata": {"name": "worker-1"}}
    stub.answers["/api/v1/nodes"] = {"metadata": {"resourceVersion": "7"}, "items": [node]}


@pytest.mark.parametrize("allowed", [False, True])
async def test_a_centre_whose_objects_would_come_to_life_says_so_and_names_the_setting(
    tmp_path, caplog, allowed
):
    caplog.set_level(logging.WARNING, "leafcast")
    daemon = Daemon()
    async with stub_server() as stub, asyncio.TaskGroup() as group:
        serve_all(stub)
        setting = SpaceSetting("kubeconfig", str(write_kubeconfig(tmp_path, stub.url, {})))
        spaces = CentreSpaces((setting,), allow_live=allowed)
        place = SimpleNamespace(spaces=lambda: spaces, folder=tmp_path)
        ran = group.create_task(run_centre._looking(daemon, place, None))
        await eventually(lambda: daemon.runs, "it does not run")
        daemon.end.set()
        await ran
    said = [record.message for record in caplog.records]
    assert ["worker-1" in text and "allow_live_cluster: true" in text for text in said] == (
        [] if allowed else [True]
    )


async def test_the_doctor_says_of_a_further_hub_that_nobody_looks_at_its_objects(tmp_path):
    hubs = []
    async with stub_server() as stub:
        serve_all(stub)
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            file = write_kubeconfig(tmp_path / name, stub.url, {})
            hubs.append(SpaceSetting("kubeconfig", str(file)))
        spaces = CentreSpaces(tuple(hubs), allow_live=True)
        facts = await space_checks.look_at_spaces(spaces, SystemClock(), SystemDice())
    found = [check for check in placement_checks.space_checks(facts) if check.state != "ok"]
    assert [(check.state, check.said) for check in found] == [
        (
            "warning",
            f"workloads in {hubs[1].title}: what became of its objects is not looked at here",
        )
    ]
    assert "kubectl get epl" in found[0].remedy
