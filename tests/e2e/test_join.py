"""A site joins a running tree with the file of a token, as its user does it, and leaves again."""

import asyncio
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from pathlib import Path

import pytest

from leafcast.ask.session import CallFailed, open_session
from leafcast.join.kept_grant import read_grant, write_grant
from leafcast.manifest_sources import BadManifests
from relay.atomic_file import atomic_write
from schemas.releases.release_manifest import digest_of, read_manifest
from schemas.values.identity import NodePath
from tests.awaiting import until
from tests.e2e.join_tree import WAIT_SECONDS, Site, Tree
from tests.launched import KEY, ROOTS, STRANGER
from tests.page_client import events_of
from tests.publishing import release
from tests.unit.releases_world import PIECES, LauncherLock, signed_manifest
from tests.written import apply_objects

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

HOSTILE_NAMES = [
    "..",
    "../site-1",
    "a.b",
    ">",
    "*",
    "a b",
    "a\u2024b",
    "n" * 300,
    "",
    "$SYS",
    "_INBOX",
]
FLAPS = 2
UNNAMABLE = [name for name in HOSTILE_NAMES if name != "a.b"]
KINDS = ("SyncTarget", "Location")
DOES_NOTHING = "runs elsewhere with the same key, so this run does nothing"
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: green}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{apiGroup: "", resources: [configmaps], namespaces: [shop]}]
"""


def documents(objects: Sequence[dict]) -> str:
    return "\n---\n".join(map(json.dumps, objects))


def hanging(name: str, path: str) -> dict:
    """A SyncTarget that hangs at a path."""
    metadata = {"name": name, "annotations": {"leafcast.io/path": path}}
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "SyncTarget",
        "metadata": metadata,
    }


async def asked_for_each(folder: Path, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """What a daemon says to each of its verbs about a path with such a name, and of its objects."""
    here, said = "/region-1/site-1", {}
    async with open_session(folder) as session:
        for name in names:
            path = f"/region-1/{name}"
            for what, verb, arguments in (
                ("register", "node-register", {"path": path}),
                ("remove", "node-remove", {"path": path, "force": True}),
                ("move", "node-move", {"path": path, "new_path": "/region-1/y"}),
                ("move to", "node-move", {"path": here, "new_path": path}),
                ("ask", "ask", {"path": path, "verb": "node"}),
            ):
                with pytest.raises(CallFailed) as refused:
                    await session.call(verb, **arguments)
                said[what, name] = str(refused.value)
        for number, name in enumerate(names):
            target = hanging(f"n-{number}", f"/region-1/{name}")
            with pytest.raises(BadManifests) as kept_out:
                await apply_objects(session, target)
            said["space", name] = str(kept_out.value)
    return said


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Iterator[Tree]:
    grown = Tree(tmp_path_factory.mktemp("join"))
    grown.run("up", "--regions", "1", "--sites", "2")
    grown.run("apply", "-f", "-", stdin=WORKLOAD)
    try:
        yield grown
    finally:
        for site in grown.sites:
            site.end()
        grown.run("down")


def test_a_site_joins_goes_on_after_a_stop_and_leaves_clean(tree):
    token = tree.add("/region-1/new-1", "--labels", "env=prod")
    before = tree.ask("/region-1/site-1", "node")
    site = tree.join(token, "new-1")
    site.until("in session with its parent")
    until(lambda: tree.settings_at("/region-1/new-1") == ["green"])
    until(lambda: tree.reached()["/region-1/new-1"])

    assert site.end() == 130
    assert "goes on" in site.said
    site = tree.join(token, "new-1")
    site.until("in session with its parent")
    assert tree.settings_at("/region-1/new-1") == ["green"]
    # It takes 46: docs/operations/service.md.
    site.until_resident(48.0)
    after = tree.ask("/region-1/site-1", "node")
    for figure in ("session", "objectsApplied", "mailWritten", "noted"):
        assert after[figure] == before[figure], figure
    # What is new in the other's mailbox are snapshots, in the same mailbox.
    assert after["cursor"]["incarnation"] == before["cursor"]["incarnation"]

    said = tree.run("node", "remove", "/region-1/new-1")
    assert "node /region-1/new-1 removed" in said
    assert "objects in its cluster" not in said
    site.until("does not know its key")
    # It gave back all that it had, so there is nothing that it could go on with.
    assert site.process.wait(WAIT_SECONDS) == 1
    assert "it was removed from the tree" in site.said
    assert "/region-1/new-1" not in tree.reached()


def test_a_node_that_up_started_ends_when_it_is_removed(tree):
    assert "site-2" in tree.run("tree")
    tree.run("node", "remove", "/region-1/site-2")
    until(lambda: "site-2" not in tree.run("tree"))
    assert "/region-1/site-2" not in tree.run("doctor")


def test_a_node_has_one_home_at_a_time_until_another_takes_its_place(tree):
    path = "/region-1/new-2"
    first = tree.add(path)
    site = tree.join(first, "new-2")
    site.until("in session with its parent")

    tree.copy_grant("new-2", "elsewhere")
    second = tree.join(first, "elsewhere")
    second.until(DOES_NOTHING)
    assert f"make a token with `leafcast node add {path} --replace`" in second.said
    assert second.process.poll() is None
    until(lambda: tree.reached()[path])
    assert "in session" not in second.said
    second.end()
    assert site.process.poll() is None

    refused = tree.run("node", "add", path, code=1)
    assert refused.startswith(f'error: node "{path}" already exists; --replace lets another key')
    again = tree.add(path, "--replace")
    assert tree.reached()[path], "a token alone cuts nobody off"
    other = tree.join(again, "other")
    site.until("does not know its key")
    site.end()
    tree.copy_grant("new-2", "void")
    void = tree.join(first, "void")
    assert void.process.wait(WAIT_SECONDS) == 1
    void.end()
    assert "does not know its key" in void.said
    other.until("in session with its parent")

    # Killed and wiped: a new key ends its session, so nothing is waited for.
    other.process.kill()
    other.process.wait(WAIT_SECONDS)
    site = tree.join(tree.add(path, "--replace"), "wiped")
    site.until("in session with its parent")
    assert DOES_NOTHING not in site.said
    tree.run("node", "remove", path, "--force")


def test_a_site_whose_folder_was_wiped_is_let_in_again_at_once_after_a_farewell(tree):
    path = "/region-1/wiped"
    token = tree.add(path, "--labels", "env=prod")
    site = tree.join(token, "before")
    site.until("in session with its parent")
    until(lambda: tree.settings_at(path) == ["green"])
    site.end()
    until(lambda: tree.node(path)["state"] == "stopped")
    assert tree.node(path)["silent_since_ms"] <= time.time() * 1000
    until(lambda: tree.node(path)["synced"] == 0)

    tree.copy_grant("before", "after")
    again = tree.join(token, "after")
    again.until("in session with its parent")
    until(lambda: tree.settings_at(path) == ["green"])
    until(lambda: tree.node(path)["state"] == "up")
    tree.run("node", "remove", path, "--force")
    again.end()


def test_a_site_that_was_killed_and_wiped_does_nothing_while_it_may_be_another(tree):
    """Nobody can tell it from a second place: it waits until the killed one is silent for long."""
    path = "/region-1/killed"
    token = tree.add(path, "--labels", "env=prod")
    site = tree.join(token, "killed")
    site.until("in session with its parent")
    until(lambda: tree.settings_at(path) == ["green"])
    site.end(signal.SIGKILL)

    tree.copy_grant("killed", "killed-wiped")
    again = tree.join(token, "killed-wiped")
    again.until(DOES_NOTHING)
    assert "if its machine is cut off, wait 90 seconds" in again.said
    assert again.process.poll() is None
    assert "in session" not in again.said
    again.end()
    # The killed one's own folder goes on at once: it is the same home.
    site = tree.join(token, "killed")
    site.until("in session with its parent")
    tree.run("node", "remove", path)
    site.end()


def test_a_relay_joins_and_sites_below_it(tree):
    tree.join(tree.add("/region-9", "--relay"), "region-9").until("in session with its parent")
    edge = tree.add("/region-9/s1", "--labels", "env=prod")
    tree.join(edge, "region-9-s1").until("in session with its parent")
    until(lambda: tree.settings_at("/region-9/s1") == ["green"])

    def listed() -> dict[str, str]:
        found = json.loads(tree.run("status", "shop", "--destinations", "-o", "json"))
        return {item["path"]: item["state"] for item in found["destinationList"]}

    until(lambda: listed().get("/region-9/s1") == "synced")
    assert "/region-9" not in listed()
    # What hangs below a relay that runs elsewhere is asked for there.
    until(lambda: tree.node("/region-9/s1")["state"] == "up")
    figures = ("destinations", "synced", "healthy", "complete", "lag")
    until(lambda: [tree.node("/region-9/s1")[name] for name in figures] == [1, 1, 1, True, 0])
    by_node = json.loads(tree.run("status", "shop", "--tree", "-o", "json"))["nodes"]
    assert "/region-9/s1" in [node["path"] for node in by_node]
    level = tree.call("level", path="/region-9")
    assert (level["node"]["edges"], level["answers"]) == (1, True)
    (child,) = level["children"]
    assert child["path"] == "/region-9/s1"
    assert [child[name] for name in ("state", "edges", *figures)] == ["up", 1, 1, 1, 1, True, 0]
    tree.sites[-1].end()
    until(lambda: "/region-9/s1 is stopped since" in tree.run("status", "shop"))
    until(lambda: "/region-9/s1 is stopped since" in tree.run("tree"))


def test_a_release_goes_to_a_relay_first_then_to_its_edges_wave_by_wave(tree, tmp_path):
    manifest = tmp_path / "release.json"
    of = read_manifest(signed_manifest("9.0.0").encode())
    for name, data in PIECES.items():
        (tmp_path / f"{name}.whl").write_bytes(data)
    manifest.write_bytes(release(ROOTS, STRANGER, of=of))
    start = ("upgrade", "start", "9.0.0", "--manifest", manifest, "--pieces", tmp_path)
    for words in (start, ("upgrade", "plan", "9.0.0", "--manifest", manifest)):
        assert "release: 0 of the 1 signatures" in tree.run(*words, code=1)
    assert not [*tree.folder.rglob("releases/pieces/*")]
    manifest.write_bytes(release(ROOTS, KEY, of=of))
    launchers = {name: SaidLauncher(tree.folder / name) for name in ("r7", "r7-s1", "r7-s2")}
    tree.join(tree.add("/region-7", "--relay"), "r7").until("in session with its parent")
    for name in ("s1", "s2"):
        token = tree.add(f"/region-7/{name}", "--labels", f"wave-{name}=yes")
        tree.join(token, f"r7-{name}").until("in session with its parent")
    tree.run(*start, "--waves", "wave-s1,wave-s2")
    for name, waiting in (("r7", "r7-s1"), ("r7-s1", "r7-s2"), ("r7-s2", "")):
        until(lambda at=name: launchers[at].wanted == "9.0.0")
        assert not waiting or launchers[waiting].wanted is None
        launchers[name].says("9.0.0", digest_of(manifest.read_bytes()))
    until(lambda: "9.0.0: Complete" in tree.run("upgrade", "status"))
    # They say themselves what they run, whatever is said of them.
    here = f"/region-7 {version('leafcast')} healthy 3"
    assert here in " ".join(tree.run("tree", "--versions").split())
    # One goes back; the doctor says so, and it tries once more when a person asks.
    said = digest_of(manifest.read_bytes())
    launchers["r7-s1"].says("0.1.0", said, state="rolled-back", why="it never joined")
    until(lambda: "/region-7/s1 went back from 9.0.0" in tree.run("doctor"))
    tree.run("upgrade", "retry", "9.0.0")
    until(lambda: launchers["r7-s1"].attempt == 1)
    launchers["r7-s1"].says("9.0.0", said, attempt=1)
    until(lambda: "9.0.0: Complete" in tree.run("upgrade", "status"))
    assert launchers["r7-s2"].attempt == 0, "who runs it has nothing to try"
    tree.run("delete", "leafcastrelease", "9.0.0")
    for site in tree.sites[-3:]:
        site.end()


class SaidLauncher:
    """What a launcher would write beside a node, said by a test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "releases"
        self._folder.mkdir(parents=True)
        (self._folder / "pinned.json").write_text("{}")
        self._lock = LauncherLock(self._folder)
        self.says("0.1.0", "")

    def says(self, version: str, manifest: str, state: str = "healthy", **more: object) -> None:
        said = {"running": version, "state": state, "manifest": manifest, **more}
        atomic_write(self._folder / "launcher.json", json.dumps(said))

    @property
    def attempt(self) -> int:
        return json.loads((self._folder / "wanted.json").read_text())["attempt"]

    @property
    def wanted(self) -> str | None:
        file = self._folder / "wanted.json"
        return json.loads(file.read_text())["version"] if file.exists() else None


class NodePage:
    """`leafcast ui` at a node's own data directory, and a browser that was let in."""

    def __init__(self, tree: Tree, folder: str) -> None:
        command = [sys.executable, "-m", "leafcast", "ui", "--port", "0", "--data-dir"]
        self.process = subprocess.Popen(
            [*command, tree.folder / folder],
            env=tree.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        address = self.process.stdout.readline().strip()
        self.base = address.partition("/?")[0]
        jar = CookieJar(DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainLiberal))
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        with self.browser.open(address, timeout=WAIT_SECONDS) as answer:
            assert b'data-of="node"' in answer.read()

    def here(self):
        with self.browser.open(f"{self.base}/api/v1/here", timeout=WAIT_SECONDS) as answer:
            return json.loads(answer.read())["view"]

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_site_that_stopped_has_stopped_since_then_however_its_tree_ends(tree):
    """And one that goes on while its tree is away says so at its own page, since when, and why."""
    path = "/region-1/new-9"
    site = tree.join(tree.add(path), "new-9")
    other = tree.join(tree.add("/new-10", "--labels", "env=prod"), "new-10")
    site.until("in session with its parent")
    other.until("in session with its parent")
    until(lambda: tree.settings_at("/new-10") == ["green"])
    page = NodePage(tree, "new-10")
    try:
        _stops_and_is_cut_off(tree, site, path, page)
    finally:
        page.end()
    said = tree.run("status", "--data-dir", tree.folder / "new-10", code=1)
    assert "which answers `leafcast ui` alone" in " ".join(said.split())
    other.end()
    said = tree.run("ui", "--port", "0", "--data-dir", tree.folder / "new-10", code=1)
    assert "the node does not run" in said
    tree.run("node", "remove", "/new-10", "--force")


def _stops_and_is_cut_off(tree, site, path, page):
    before = page.here()
    assert (before["path"], before["role"], before["tone"]) == ("/new-10", "edge", "good")
    (row,) = (it for it in before["rows"] if it["id"] == "epl/shop")
    assert (row["tone"], row["waits"]) == ("good", [])
    site.end()
    until(lambda: tree.node(path)["state"] == "stopped")
    since = tree.node(path)["silent_since_ms"]
    assert since
    for end in (lambda: tree.run("down"), tree.kill):
        end()
        until(lambda: page.here()["headline"].startswith("Its parent is not reached"))
        cut = page.here()
        assert cut["tone"] == "away"
        assert cut["sinceMs"] > before["startedMs"]
        assert [it["id"] for it in cut["rows"]] == [it["id"] for it in before["rows"]]
        tree.run("up", "--regions", "1", "--sites", "2")
        until(lambda: page.here()["tone"] == "good")
        found = tree.node(path)
        assert (found["state"], found["silent_since_ms"]) == ("stopped", since)
    assert page.here()["flaps"] == 2
    tree.run("node", "remove", path, "--force")


@pytest.mark.long
def test_a_page_of_a_site_goes_on_while_its_parents_server_comes_and_goes(tree):
    """It keeps what the site holds, and says since when the parent is away; nothing piles up."""
    path = "/region-1/new-12"
    site = tree.join(tree.add(path, "--labels", "env=prod"), "new-12")
    site.until("in session with its parent")
    until(lambda: tree.settings_at(path) == ["green"])
    page = NodePage(tree, "new-12")
    try:
        until(lambda: page.here()["tone"] == "good")
        _looked_at_while_its_link_flaps(tree, page)
    finally:
        page.end()
    site.end()
    tree.run("node", "remove", path, "--force")


def _not_reached(here):
    return here if here["headline"].startswith("Its parent is not reached") else None


def _looked_at_while_its_link_flaps(tree, page):
    began, before = time.time(), page.here()
    held = [it["id"] for it in before["rows"]]
    with page.browser.open(f"{page.base}/api/v1/live/here", timeout=WAIT_SECONDS) as followed:
        for _ in range(FLAPS):
            since_ms = page.here()["sinceMs"]
            with tree.without_server("lc_region-1"):
                cut = until(lambda: _not_reached(page.here()))
                assert (cut["tone"], cut["sinceMs"] > since_ms) == ("away", True)
                assert cut["remedy"]
                assert [it["id"] for it in cut["rows"]] == held
            until(lambda: page.here()["tone"] == "good")
        ended, told = time.time(), list[str]()
        for name, said in events_of(followed):
            told.append(name)
            if said.get("asOfMs", 0) > 1000 * ended:
                break
    after = page.here()
    assert [it["id"] for it in after["rows"]] == held
    assert after["flaps"] >= FLAPS
    assert set(told) <= {"whole", "patch", "still"}
    # The node is asked each 2 s at most, however its link is.
    looks = len(told) - told.count("still")
    assert looks <= 2 + (said["asOfMs"] / 1000 - began) / 2


def test_what_a_site_brought_up_does_not_tell_how_its_copy_is_while_it_is_away(tree):
    path = "/region-1/new-7"
    site = tree.join(tree.add(path, "--labels", "env=prod"), "new-7")
    site.until("in session with its parent")
    clause = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["shop"], "names": ["*"]}
    up = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    spec = {"locationSelectors": [{"matchLabels": {"env": "prod"}}], "upsync": [clause]}
    tree.run("apply", "-f", "-", stdin=json.dumps({**up, "metadata": {"name": "up"}, "spec": spec}))
    # Only what was brought up can be told of it while it is away.
    brought_up = {"resource": "configmaps", "child": "new-7"}
    until(lambda: tree.ask("/region-1", "upsynced", **brought_up)["copies"])
    compared = ("render", "cm/settings", "-n", "shop", "--at", path, "--live")
    assert tree.run(*compared) == ""

    site.end()

    until(lambda: "AS OF" in tree.run("get", "cm", "-n", "shop", "--at", path))
    assert f"{path} cannot be reached" in tree.run(*compared, code=2)
    tree.run("delete", "epl", "up")
    tree.run("node", "remove", path, "--force")


def test_a_site_moves_with_the_folder_it_has(tree):
    site = tree.join(tree.add("/region-1/new-4", "--labels", "env=prod"), "new-4")
    site.until("in session with its parent")
    until(lambda: tree.settings_at("/region-1/new-4") == ["green"])
    (before,) = tree.ask("/region-1/new-4", "get", resource="configmaps")["objects"]

    token = tree.folder / "moved.join"
    said = tree.run("node", "move", "/region-1/new-4", "/new-5", "-o", token)
    assert "Moved /region-1/new-4 to /new-5" in said
    assert "env=prod, id=region-1-new-4, region=new-5" in said
    site.until("the node was removed, moved or revoked")
    site.end()
    # Who forgets its folder begins anew, and goes on in that afterwards.
    elsewhere = {**tree.environment, "LEAFCAST_DATA_DIR": str(tree.folder / "state")}
    forgetful = Site(token, None, environment=elsewhere)
    tree.sites.append(forgetful)
    forgetful.until("in session with its parent")
    assert "It begins anew: what it kept as /region-1/new-4 is in another folder" in forgetful.said
    forgetful.end()
    site = Site(token, tree.folder / "new-4", environment=elsewhere)
    tree.sites.append(site)
    site.until("in session with its parent")
    assert "/new-5 hung at /region-1/new-4, and takes along what it keeps" in site.said
    until(lambda: tree.settings_at("/new-5") == ["green"])
    (after,) = tree.ask("/new-5", "get", resource="configmaps")["objects"]
    assert after["metadata"] == before["metadata"]
    gone = " ".join(tree.run("node", "move", "/region-1/new-4", "/new-6", code=1).split())
    assert "there is no such node; `leafcast node list` shows the nodes there are" in gone
    here = " ".join(tree.run("node", "move", "/region-1/site-1", "/new-6", code=1).split())
    assert "`leafcast up` starts it here" in here
    tree.run("node", "remove", "/new-5")
    site.end()


def test_a_site_in_maintenance_keeps_what_it_has_is_not_waited_for_and_comes_along_in_the_end(tree):
    path, workload = "/region-1/new-8", WORKLOAD.replace("shop", "lab").replace("prod", "lab")
    tree.run("apply", "-f", "-", stdin=workload)

    def colours() -> list[str]:
        found = tree.ask(path, "get", resource="configmaps", namespace="lab")
        return [obj["data"]["colour"] for obj in found["objects"]]

    site = tree.join(tree.add(path, "--labels", "env=lab"), "new-8")
    site.until("in session with its parent")
    until(lambda: colours() == ["green"])
    assert "new disk" in tree.run("maintenance", "on", path, "--for", "90s", "--reason", "new disk")
    until(lambda: "1 in maintenance" in tree.run("status", "lab"))
    tree.run("apply", "-f", "-", stdin=workload.replace("green", "blue"))
    assert "(1 in maintenance)" in tree.run("wait", "lab", "--for", "synced")
    assert colours() == ["green"]
    for said in (tree.run("tree"), tree.run("node", "list"), tree.run("doctor")):
        assert "maintenance" in said
    site.end()
    until(lambda: tree.node(path)["state"] == "stopped")
    assert "(1 in maintenance)" in tree.run("wait", "lab", "--for", "healthy")
    site = tree.join(next(tree.folder.glob("region-1-new-8-*.join")), "new-8")
    site.until("in session with its parent")
    assert colours() == ["green"], "a restart lets nothing new in"
    tree.run("maintenance", "on", path, "--for", "3s")
    until(lambda: colours() == ["blue"])
    assert "maintenance" not in tree.run("wait", "lab", "--for", "synced")
    assert "no edge at or below" in tree.run("maintenance", "off", path, code=1)
    tree.run("delete", "epl", "lab")
    tree.run("node", "remove", path)


def test_a_site_goes_by_its_path_and_by_its_name(tree):
    tree.run("get", "ns", "--at", "region-1-site-1")
    assert (
        tree.run("get", "st", "/region-1/site-1", "-o", "name").strip().endswith("/region-1-site-1")
    )
    said = tree.run("get", "ns", "--at", "/region-1-site-1", code=1)
    assert 'did you mean "/region-1/site-1" (region-1-site-1)?' in said
    said = tree.run("node", "remove", "region-1-site1", code=2)
    assert 'did you mean "/region-1/site-1"' in said


def test_no_name_leads_out_of_its_subtree_at_a_running_tree(tree):
    """Also past the checks of the commands: asked of the daemon, and written into the space."""
    before = tree.standing()
    asked = asyncio.run(asked_for_each(tree.folder / "tree", HOSTILE_NAMES))
    assert len(asked) == 6 * len(HOSTILE_NAMES)
    for (what, name), said in asked.items():
        field = "metadata.annotations[leafcast.io/path]: " if what == "space" else ""
        rule = "is not a path in the tree; " if what == "space" else "is not a node path: "
        assert field in said, (what, name, said)
        assert rule in said, (what, name, said)
    paths = [hanging(f"n-{n}", f"/region-1/{name}") for n, name in enumerate(HOSTILE_NAMES)]
    named = [{**hanging(name, "/region-1/x"), "kind": kind} for kind in KINDS for name in UNNAMABLE]
    for objects, field in (
        (paths, "metadata.annotations[leafcast.io/path]"),
        (named, "metadata.name"),
    ):
        lines = tree.run("apply", "-f", "-", stdin=documents(objects), code=1).splitlines()
        assert lines.pop() == "error: nothing was applied; correct this, and apply again"
        assert len(lines) == len(objects)
        for line, obj in zip(lines, objects, strict=True):
            assert obj["kind"] in line
            assert obj["metadata"]["name"] in line
            assert f": {field}: " in line
            assert "; " in line, "what to do"
    assert tree.standing() == before


def test_what_cannot_be_joined_with_is_said_with_its_remedy(tree):
    late = tree.add("/region-1/new-3", "--valid", "1s")
    url, token = late.read_text().split()
    short, damaged, of_old = (tree.folder / name for name in ("short", "damaged", "old.json"))
    short.write_text(f"{url} {token[:-5]}\n")
    damaged.write_text("{" + token)
    grant = read_grant(next(tree.folder.glob("*/bundle.json")))
    write_grant(of_old, replace(grant, path=NodePath.parse("/region-1/new-3")))
    time.sleep(2)
    for file, reason in (
        (short, "cut short"),
        (damaged, "damaged, or holds no token"),
        (of_old, "a join bundle for /region-1/new-3, of a former release"),
        (late, "expired"),
    ):
        said = tree.run("join", file, "--data-dir", tree.folder / "nobody", code=1)
        assert reason in said
        assert "leafcast node add" in said
    assert "add /nowhere first" in tree.run("node", "add", "/nowhere/s1", code=1)
    said = " ".join(tree.run("node", "add", "/region-1/new-3", "--bundle", code=2).split())
    assert "there are no join bundles any more; leave it out for a token" in said
    assert "/region-1/new-3" not in tree.reached()
