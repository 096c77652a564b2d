"""An edge whose API server takes rights away, refuses objects, is older, or wants another proof."""

import asyncio
import json
import shutil
import subprocess
from contextlib import suppress

import pytest

from leafcast.local.kube_servers import api_server as local_server
from leafcast.local.kube_servers.kubeconfig import write_kubeconfig
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes import informer
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.space_errors import SpaceError
from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.contract.spaces import config_map, deployment
from tests.contract.syncing import Bench
from tests.memory_tree import memory_tree, placement

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")
BIG = ObjectKey("", "configmaps", "shop", "big")
EDGE = NodePath.parse("/r1/s1")


@pytest.fixture
async def connect():
    """A space on a server, as the user of a kubeconfig."""
    spaces = []

    def on(kubeconfig):
        spaces.append(KubernetesSpace(Kubeconfig(str(kubeconfig)), SystemClock(), SystemDice()))
        return spaces[-1]

    yield on
    for space in spaces:
        with suppress(SpaceError):
            await space.kinds()
        await space.close()


def bench_on(space):
    return Bench(space, SystemClock(), SystemDice())


async def run(verb, *arguments, **how):
    return await asyncio.to_thread(verb, *arguments, **how)


async def test_rights_lost_in_mid_work_are_said_of_what_needs_them_and_the_rest_goes_on(
    connect, api_server, monkeypatch
):
    monkeypatch.setattr(informer, "LASTING_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(informer, "WATCH_SECONDS_MIN", 1)
    guest = await run(api_server.add_user, "edge")
    verbs = "get,list,watch,patch,create,delete"
    granted = {}
    for name, what in (
        ("config", "configmaps"),
        ("spaces", "namespaces"),
        ("webs", "deployments.apps"),
    ):
        role = ("create", "clusterrole", name, f"--verb={verbs}", f"--resource={what}")
        await run(api_server.kubectl, *role)
        granted[name] = ("create", "clusterrolebinding", name, f"--clusterrole={name}")
        await run(api_server.kubectl, *granted[name], "--user=edge")
    bench = bench_on(connect(guest))
    async with bench.running():
        bench.want(config_map(a="1"), deployment())
        await bench.settled()
        kept = dict(bench.done.held)
        await run(api_server.kubectl, "delete", "clusterrolebinding", "webs")
        await bench.until(lambda: "Forbidden" in bench.said[WEB].error)
        assert "as edge" in bench.said[WEB].error
        bench.want(config_map(a="2"), deployment())
        await bench.until(lambda: bench.said[SETTINGS].address == bench.address(SETTINGS))
        assert "Forbidden" in bench.syncer.unready
        bench.want(config_map(a="2"), deployment(replicas=3))
        await run(api_server.kubectl, *granted["webs"], "--user=edge")
        await bench.settled()
        assert not bench.said[WEB].error
        assert bench.space.deleted == []
        assert bench.done.held.keys() == kept.keys()
        assert (await bench.space.get(WEB))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("big", "word"),
    [
        ({"metadata": {"annotations": {"note": "x" * 1_000_000}}}, "annotations: Too long"),
        ({"data": {"text": "x" * 1_200_000}}, "Too long"),
        # Who owns each of the fields is more than etcd takes.
        ({"data": {f"key-{at:06}": "x" for at in range(60_000)}}, "larger than max"),
    ],
    ids=["annotations", "data", "fields"],
)
async def test_what_is_too_large_for_a_server_is_said_in_its_words_and_holds_up_nothing(
    connect, clean_server, big, word
):
    bench = bench_on(connect(clean_server.kubeconfig))
    plain = config_map("big")
    huge = {**plain, **big, "metadata": {**plain["metadata"], **big.get("metadata", {})}}
    async with bench.running():
        bench.want(huge, config_map(a="1"))
        await bench.until(lambda: BIG in bench.said and bench.said[BIG].error)
        assert word in bench.said[BIG].error
        await bench.until(lambda: SETTINGS in bench.said and bench.said[SETTINGS].address)
        bench.want(config_map("big", a="small"), config_map(a="1"))
        await bench.settled()
        assert not bench.said[BIG].error


async def test_a_kind_that_an_older_server_lacks_is_said_and_comes_with_its_upgrade(
    connect, api_server, monkeypatch
):
    monkeypatch.setitem(local_server._OPTIONS, "runtime-config", "policy/v1=false")
    await run(api_server.restart)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    key = ObjectKey("policy", "poddisruptionbudgets", "shop", "web")
    bench = bench_on(connect(api_server.kubeconfig))
    async with bench.running():
        bench.want(budget, config_map(a="1"))
        await bench.until(lambda: key in bench.said and bench.said[key].error)
        assert 'no matches for kind "PodDisruptionBudget"' in bench.said[key].error
        await bench.until(lambda: SETTINGS in bench.said and bench.said[SETTINGS].address)
        monkeypatch.undo()
        await run(api_server.restart)
        await bench.settled()
        assert await bench.space.get(key)
        assert bench.space.deleted == []


async def test_a_client_certificate_that_is_rotated_in_its_files_is_used_from_then_on(
    connect, api_server, tmp_path, monkeypatch
):
    if not shutil.which("openssl"):
        pytest.skip("NOT RUN: openssl makes the certificates: install it")

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=tmp_path)

    def authority(name):
        subject = ("-subj", f"/CN={name}", "-days", "2", "-nodes")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-keyout", f"{name}.key", *subject)
        openssl("req", "-x509", "-key", f"{name}.key", "-out", f"{name}.crt", *subject)

    def client(by):
        subject = ("-subj", "/O=system:masters/CN=edge", "-nodes")
        openssl("req", "-newkey", "rsa:2048", "-keyout", "new.key", "-out", "new.csr", *subject)
        signed = ("-CA", f"{by}.crt", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", "-in", "new.csr", "-out", "new.crt", *signed)
        (tmp_path / "new.key").replace(tmp_path / "client.key")
        (tmp_path / "new.crt").replace(tmp_path / "client.crt")

    for name in ("first", "second"):
        await run(authority, name)
    await run(client, "first")
    monkeypatch.setitem(local_server._OPTIONS, "client-ca-file", str(tmp_path / "first.crt"))
    await run(api_server.restart)
    file = tmp_path / "kubeconfig"
    write_kubeconfig(file, [api_server.real.access()])
    form = json.loads(await run(api_server.kubectl, "config", "view", "--raw", "-o", "json"))
    proof = {"client-certificate": "client.crt", "client-key": "client.key"}
    form["users"] = [{**form["users"][0], "user": proof}]
    file.write_text(json.dumps(form))
    bench = bench_on(connect(file))
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        # The old authority is trusted no more: then its certificates are refused.
        monkeypatch.setitem(local_server._OPTIONS, "client-ca-file", str(tmp_path / "second.crt"))
        await run(api_server.restart)
        bench.want(config_map(a="2"))
        await bench.until(lambda: "Unauthorized" in bench.said[SETTINGS].error)
        await run(client, "second")
        await bench.settled()
        assert (await bench.space.get(SETTINGS))["data"] == {"a": "2"}
        assert bench.space.deleted == []


async def test_a_flip_of_overwrite_is_seen_at_the_server_and_does_as_it_says(connect, clean_server):
    def asked(value, **data):
        obj = config_map(**data)
        said = {"edge.kubestellar.io/downsync-overwrite": value}
        return {**obj, "metadata": {**obj["metadata"], "annotations": said}}

    def live():
        form = json.loads(
            clean_server.kubectl("-n", "shop", "get", "configmap", "settings", "-o", "json")
        )
        said = form["metadata"]["annotations"]
        return form["data"], said.get("edge.kubestellar.io/downsync-overwrite")

    bench = bench_on(connect(clean_server.kubeconfig))
    async with bench.running():
        bench.want(asked("true", a="1"))
        await bench.settled()
        bench.want(asked("false", a="2"))
        await bench.settled()
        assert await run(live) == ({"a": "1"}, "false")
        patch = ("patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"a":"theirs"}}')
        await run(clean_server.kubectl, "-n", "shop", *patch)
        bench.want(asked("false", a="3"))
        await bench.settled()
        assert await run(live) == ({"a": "theirs"}, "false")
        bench.want(asked("true", a="4"))
        await bench.settled()
        assert await run(live) == ({"a": "4"}, "true")
        bench.want(asked("false", a="5"))
        await bench.settled()
        bench.want()
        # Its Namespace is kept for it, and is looked at again.
        await bench.until(lambda: not bench.said[SETTINGS].present)
        assert await run(live) == ({"a": "4"}, "false")
        bench.want(asked("true", a="6"))
        await bench.until(lambda: bench.said[SETTINGS].address == bench.address(SETTINGS))
        assert await run(live) == ({"a": "6"}, "true")


async def test_of_two_hubs_that_want_one_object_one_has_it_and_the_other_says_so(
    connect, new_server, clean_server, tmp_path
):
    servers = [await run(new_server), await run(new_server), clean_server]
    hubs = [connect(server.kubeconfig) for server in servers[:2]]
    edge = connect(servers[2].kubeconfig)
    for server in servers[:2]:
        form = {"apiVersion": "v1", "kind": "List", "items": list(custom_resource_definitions())}
        await run(server.kubectl, "apply", "-f", "-", stdin=json.dumps(form))
        await run(server.await_definitions)

    def prepare(tree):
        tree.workloads = hubs
        tree.spaces[EDGE] = edge

    async with memory_tree(tmp_path, ["/r1", "/r1/s1"], prepare=prepare):
        for number, server in enumerate(servers[:2]):
            shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
            items = [shop, config_map(a=str(number)), placement(f"from-{number}", "shop")]
            form = {"apiVersion": "v1", "kind": "List", "items": items}
            await run(server.kubectl, "apply", "-f", "-", stdin=json.dumps(form))

        async def statuses():
            found = []
            for number, server in enumerate(servers[:2]):
                got = await run(server.kubectl, "get", "epl", f"from-{number}", "-o", "json")
                status = json.loads(got).get("status", {})
                synced = [
                    its["status"] for its in status.get("conditions", ()) if its["type"] == "Synced"
                ]
                found.append((synced == ["True"], " ".join(status.get("errors", ()))))
            return found

        async with asyncio.timeout(100):
            while sorted(synced for synced, _ in await statuses()) != [False, True]:
                await asyncio.sleep(0.2)
            while not any("Overridden" in error for _, error in await statuses()):
                await asyncio.sleep(0.2)
        told = await statuses()
        (loser,) = (number for number, (synced, _) in enumerate(told) if not synced)
        by = f"edgeplacement/from-{1 - loser} of space "
        assert f"shop/configmaps/settings: Overridden: {by}" in told[loser][1]
        assert "Overridden" not in told[1 - loser][1]
        assert (await edge.get(SETTINGS))["data"] == {"a": str(1 - loser)}
        # What the winner gives up the other has at once.
        gone = ("-n", "shop", "delete", "configmap", "settings")
        await run(servers[1 - loser].kubectl, *gone)
        async with asyncio.timeout(100):
            while not (await statuses())[loser][0]:
                await asyncio.sleep(0.2)
        assert (await edge.get(SETTINGS))["data"] == {"a": str(loser)}
