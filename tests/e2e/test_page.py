"""`leafcast ui` on a running tree: it says what the commands say, and outlives its daemon."""

import asyncio
import json
import os
import shlex
import signal
import sys
import tarfile
import urllib.request
from http.cookiejar import CookieJar, DefaultCookiePolicy

import pytest
from mcp import Client, StdioServerParameters

from leafcast.support.redaction import HIDDEN
from tests.awaiting import until
from tests.e2e.program import SMALL, Program, did
from tests.page_client import events_of

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]
WAIT_SECONDS = 60
APP = """\
apiVersion: v1
kind: Namespace
metadata: {name: page}
---
apiVersion: v1
kind: Secret
metadata: {name: door, namespace: page}
stringData: {code: open-sesame}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: page}
spec: {locationSelectors: [{}], downsync: [{namespaces: [page]}]}
"""


def _says_what_commands_say(tree, seen):
    (row,) = seen("placements")["rows"]
    assert (row["id"], row["tone"], row["delivered"]) == (
        "epl/page",
        "good",
        {"n": 2, "of": 2, "exact": True},
    )
    below = {row["id"]: row for row in seen("tree?path=/region-1")["rows"]}
    told = {it["path"]: it for it in tree.json("tree")["nodes"]}
    assert below.keys() == {path for path in told if path.startswith("/region-1/")}
    for path, row in below.items():
        assert (row["state"], row["objects"]) == ("up", told[path]["objects_applied"])
        assert (row["target"], row["edges"]) == (told[path]["sync_target"], 1)
    traced = seen("trace?name=epl/page&at=/region-1/site-2")
    assert {it["path"] for it in traced["rows"]} == {"/", "/region-1", "/region-1/site-2"}
    assert {"signed", "applied"} <= {it["stage"] for it in traced["rows"]}
    tier = seen("placement?name=page&at=/region-1")
    assert [row["id"] for row in tier["rows"]] == sorted(below)
    assert [it["id"] for it in seen("places?search=site-2")["rows"]] == ["/region-1/site-2"]

    assert "bad" not in {row["tone"] for row in seen("doctor")["rows"]}
    assert "edgeplacement/page" in {row["object"] for row in seen("events")["rows"]}
    assert seen("requests") == seen("rollouts") == {"rows": []}

    copy = seen("copy?at=/region-1/site-1&object=secrets/page/door")
    assert (copy["isThere"], copy["tone"], copy["why"]) == (True, "good", [])
    proof = seen("proof?at=/region-1/site-1&object=secrets/page/door")
    (row,) = proof["rows"]
    assert (proof["tone"], row["placement"], row["refused"]) == ("good", "epl/page", "")
    command, _, file = proof["commands"][0].rpartition(" > ")
    assert file == "proof.json"
    told = json.loads(did(tree, *shlex.split(command)[1:]).stdout)
    (shown,) = told["lists"]
    assert (shown["address"], row["object"]["closed"]) == (row["object"]["address"], False)
    assert shown["key"] not in json.dumps(proof)
    (stop,) = seen("copy?at=/region-1/site-1&object=configmaps/page/nothing")["why"]
    why = ("why", "configmap/nothing", "-n", "page", "--at", "/region-1/site-1")
    told = json.loads(did(tree, *why, "-o", "json", code=1).stdout)["explanations"][0]
    assert told["said"] in stop["said"]
    assert stop["remedy"] == told["remedy"]


def _bundle_tells_no_secret(tree, file):
    """Of a real tree, whose centre knows a Secret, and whose folder has real keys."""
    done = did(tree, "support-bundle", "--to", str(file))
    assert "parts, secrets hidden; nothing is missing" in done.stdout
    with tarfile.open(file) as tar:
        parts = {it.name.partition("/")[2]: tar.extractfile(it).read().decode() for it in tar}
    assert "leafcast_nats_up" in parts["metrics/centre.txt"]
    assert "the tree is up" in parts["logs/daemon.log"]
    assert "edgeplacement/page" in parts["events.json"]
    whole = "".join(parts.values())
    keys = json.loads((tree.place.keys / "keys.json").read_text())
    kept = [*(it["seed"] for it in keys["roots"]), keys["signing"]["seed"], "sesame"]
    assert [it for it in [*kept, tree.place.admin()["seed"]] if it in whole] == []
    assert "it is there already" in did(tree, "support-bundle", "--to", str(file), code=1).stderr


def _is_away_with_a_killed_daemon_and_live_again(tree, events):
    """Whoever looks is told since when nothing is known, and then all of it anew."""
    name, before = next(events)
    assert (name, len(before["view"]["rows"])) == ("whole", 1)
    os.kill(tree.place.daemon()["pid"], signal.SIGKILL)
    last_ms = before["asOfMs"]
    for name, said in events:
        if name == "failed" and said["error"]["away"]:
            break
        last_ms = said.get("asOfMs", last_ms)
    assert "leafcast up" in said["error"]["remedy"]
    since_ms = said["asOfMs"]
    assert since_ms >= last_ms
    did(tree, "up", *SMALL)
    for name, said in events:
        if name == "whole":
            break
        # It goes on to say since when, and not that it has just begun.
        assert said.get("asOfMs", since_ms) == since_ms
    assert said["asOfMs"] > since_ms
    assert [row["id"] for row in said["view"]["rows"]] == ["epl/page"]


async def _an_assistant_reads(tree):
    """By the library's own client, over standard input and output; it sees no secret."""
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "leafcast", "mcp"], env=tree.environment
    )
    async with Client(started) as client:
        tools = (await client.list_tools()).tools
        named = {it.name for it in tools}
        assert named == {"status", "plan", "diff", "why", "trace", "doctor", "get"}
        assert all(it.annotations.read_only_hint for it in tools)

        async def asked(tool, **arguments):
            answer = await client.call_tool(tool, arguments)
            assert "sesame" not in answer.content[0].text
            return answer.is_error, answer.content[0].text

        async def told(tool, **arguments):
            failed, text = await asked(tool, **arguments)
            assert not failed, text
            return json.loads(text)

        there = {"at": "/region-1/site-1", "namespace": "page"}
        assert (await told("status", placement="page"))["states"] == {"synced": 2}
        (door,) = (await told("get", **there, resource="secret", name="door"))["objects"]
        assert door["data"] == {"code": HIDDEN}
        lost = await told("why", **there, resource="configmap", name="nothing")
        assert not lost["ok"]
        assert {it["state"] for it in (await told("doctor"))["checks"]} <= {"ok", "warning"}
        changed = APP.replace("open-sesame", "open-sesame-2")
        (one,) = (await told("diff", manifests=changed))["changes"]
        assert one == {
            "object": "secrets/page/door",
            "lines": ["configured, in what is hidden only"],
        }
        planned = await told("plan", manifests=changed)
        assert {"object": "page/secrets/door", "verb": "configured"} in planned["objects"]
        failed, text = await asked("status", placement="none")
        assert failed
        assert 'there is no EdgePlacement "none"; there are: epl/page' in text
    # What it was asked to plan was not done.
    assert did(tree, "diff", "-f", str(tree.place.folder / "app.yaml")).stdout == ""


def test_the_page_shows_the_tree_as_commands_do_and_is_live_again_after_its_daemon_is_killed(
    tmp_path,
):
    tree = Program(tmp_path)
    did(tree, "up", *SMALL)
    page = None
    try:
        (tmp_path / "app.yaml").write_text(APP)
        did(tree, "apply", "-f", str(tmp_path / "app.yaml"))
        did(tree, "wait", "page", "--for", "healthy")
        page = tree.start("ui", "--port", "0")
        address = page.stdout.readline().strip()
        base = address.partition("/?")[0]
        # By the policy of the standard library a cookie of a machine without a dot goes nowhere.
        jar = CookieJar(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainLiberal))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

        def seen(view):
            with browser.open(f"{base}/api/v1/{view}", timeout=WAIT_SECONDS) as answer:
                text = answer.read().decode()
            assert "sesame" not in text
            return json.loads(text)["view"]

        browser.open(address, timeout=WAIT_SECONDS).close()
        _says_what_commands_say(tree, seen)
        asyncio.run(_an_assistant_reads(tree))
        _bundle_tells_no_secret(tree, tmp_path.parent / f"{tmp_path.name}.tar.gz")
        with browser.open(f"{base}/api/v1/live/placements", timeout=WAIT_SECONDS) as followed:
            _is_away_with_a_killed_daemon_and_live_again(tree, events_of(followed))
        until(lambda: seen("tree")["node"]["state"] == "up", "no tree", seconds=WAIT_SECONDS)
        page.send_signal(signal.SIGINT)
        assert page.wait(WAIT_SECONDS) == 130
        assert page.stderr.read() == ""
    finally:
        if page is not None:
            page.kill()
            page.communicate()
        tree.run("down")
