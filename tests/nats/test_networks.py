"""Machines of their own: what is open on an edge's, and what passes on the wire between."""

import asyncio
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from relay.adapters.server.process import server_binary
from relay.adapters.tls.authority import new_key, signing_request
from tests.awaiting import eventually
from tests.nats.network import ROOT, Machine, captured, connections_in, machines
from tests.nats.test_tls import NOW_MS, TREE

pytestmark = pytest.mark.nats
MARK = "nobody-on-the-way-reads-this-7f3a"
OBJECTS = f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: vault, labels: {{app: vault}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: combination, namespace: vault, labels: {{app: vault}}}}
data: {{it: {MARK}}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: vault}}
spec:
  locationSelectors: [{{matchLabels: {{id: region-1-store}}}}]
  downsync:
    - {{apiGroup: "", resources: ["*"], namespaces: [vault], objectNames: ["*"]}}
    - {{apiGroup: "", resources: [namespaces], objectNames: [vault]}}
"""


def leafcast(machine: Machine, *words: str | Path):
    return machine.running(sys.executable, "-m", "leafcast", *words)


async def until_said(file: Path, said: str) -> None:
    await eventually(lambda: said in file.read_text(), file.read_text, every=0.1)


async def test_an_edge_elsewhere_opens_no_port_and_says_nothing_in_clear(tmp_path):
    with machines(tmp_path, ["centre.example", "store.example"]) as (centre, edge):
        wire = tmp_path / "wire.pcap"
        centre.leafcast("up", "--regions=1", "--sites=1", "--listen", "centre.example")
        try:
            added = centre.leafcast("node", "add", "/region-1/store", "--approved")
            line = re.search(
                r"LEAFCAST_TOKEN=(\S+) leafcast join (tls://centre.example:7423)", added
            )
            assert line, added
            join = ("join", line[2], "--token", line[1], "--data-dir", edge.folder / "node")
            with captured(edge, wire), leafcast(edge, *join) as said:
                await until_said(said, "is in session")
                manifest = tmp_path / "vault.yaml"
                manifest.write_text(OBJECTS)
                centre.leafcast("apply", "-f", manifest)
                centre.leafcast("wait", "vault", "--for", "synced", "--timeout", "60s")
                got = centre.leafcast(
                    "get", "configmaps", "-n", "vault", "-o", "yaml", "--at", "/region-1/store"
                )
                assert MARK in got
                assert all(at.startswith("127.0.0.1:") for at in edge.listening())
                # From the network there is TLS on the relays' ports, and nothing else.
                open_to_all = [at for at in centre.listening() if not at.startswith("127.0.0.1:")]
                assert sorted(open_to_all) == ["*:7422", "*:7423"]
        finally:
            centre.leafcast("down")
        assert connections_in(edge, wire) == ""
        passed = wire.read_bytes()
        assert len(passed) > 10_000
        for word in (MARK, "combination", "vault", "_mail", "CONNECT {", "INFO {", line[1]):
            assert word.encode() not in passed, word


async def test_a_region_elsewhere_gets_its_certificate_with_its_first_child(tmp_path):
    with machines(tmp_path, ["centre.example", "emea.example"]) as (centre, emea):
        centre.leafcast("up", "--regions=1", "--sites=1", "--listen", "centre.example")

        def joining(machine: Machine, added: str, folder: str, *more: str):
            line = re.search(r"LEAFCAST_TOKEN=(\S+) leafcast join (tls://\S+)", added)
            assert line, added
            said = ("join", line[2], "--token", line[1], "--data-dir", machine.folder / folder)
            return line[2], leafcast(machine, *said, *more)

        try:
            added = centre.leafcast("node", "add", "/emea", "--relay", "--approved")
            listens = ("--listen", "emea.example:9000")
            _, region = joining(emea, added, "region", *listens)
            with region as said:
                await until_said(said, "is in session")
                assert all(at.startswith("127.0.0.1:") for at in emea.listening())
                added = centre.leafcast("node", "add", "/emea/s1", "--approved")
                url, edge = joining(centre, added, "edge")
                assert url == "tls://emea.example:9000"
                with edge as below:
                    await until_said(below, "is in session")
                    told = [file.read_text() for file in (said, below)]
                    # Another authority, known to both before it signs, under the links there are.
                    changed = centre.leafcast("keys", "rotate", "authority")
                    assert "nodes believe that alone" in changed
                    shown = centre.leafcast("tree")
                    assert re.search(r"s1 +up", shown), shown
                    assert told == [file.read_text() for file in (said, below)]
                # While one is away it is not changed again.
                waits = centre.leafcast("keys", "rotate", "authority")
                assert "signs once it is known to 1 node" in waits, waits
                assert "/emea/s1" in waits
                assert "is on its way" in centre.leafcast("keys", "list")
                forced = centre.leafcast("keys", "rotate", "authority", "--force")
                assert "nodes believe that alone" in forced
            # It goes on with the certificate that it has.
            with leafcast(
                emea,
                "join",
                emea.folder / "region" / "bundle.json",
                "--data-dir",
                emea.folder / "region",
                *listens,
            ) as said:
                await until_said(said, "is in session")
                assert "*:9000" in emea.listening()
        finally:
            centre.leafcast("down")


def proxies(machine: Machine, stack: ExitStack, *files: str) -> None:
    """Those of deploy/proxies, on the machine, until the stack is closed."""
    for file in files:
        if shutil.which(command := file.partition(".")[0], path="/usr/sbin:/usr/bin") is None:
            pytest.skip(f"NOT RUN: no {command} here; on Debian: apt-get install {command}")
        text = (ROOT / "deploy" / "proxies" / file).read_text()
        own = machine.folder / file
        if command == "nginx":
            own.write_text(text.replace("/etc/ssl/", f"{machine.folder.parent}/"))
            options = f"daemon off; pid {machine.folder}/pid; error_log stderr;"
            running = machine.running("nginx", "-p", machine.folder, "-c", own, "-g", options)
        else:
            nowhere = "cache_log /dev/null\naccess_log none\ncoredump_dir none\n"
            own.write_text(f"{text}pid_filename none\n{nowhere}shutdown_lifetime 0 seconds\n")
            running = machine.running("squid", "-N", "-f", own)
        stack.enter_context(running)


async def test_a_region_joins_out_through_a_proxy_and_its_sites_through_another(tmp_path):
    names = ["centre.example", "emea.example"]
    key = new_key()
    certificate = TREE.issue(signing_request(key, names), NOW_MS)
    (tmp_path / "centre.example.pem").write_text(certificate)
    (tmp_path / "centre.example.key").write_text(key)
    (tmp_path / "ca.pem").write_text(TREE.certificate)
    believed = ("--tls-ca", tmp_path / "ca.pem")
    with machines(tmp_path, names) as (centre, emea), ExitStack() as stack:
        proxies(centre, stack, "nginx.conf")
        proxies(emea, stack, "nginx.conf", "squid.conf")
        at = "wss://centre.example/leaf"
        centre.leafcast("up", "--regions=1", "--sites=1", "--listen", at, *believed)
        stack.callback(centre.leafcast, "down")

        def joining(machine: Machine, path: str, url: str, *more: str | Path) -> Path:
            role = ["--relay"] if path == "/emea" else []
            added = centre.leafcast("node", "add", path, *role, "--approved")
            line = re.search(rf"LEAFCAST_TOKEN=(\S+) leafcast join ({url})\n", added)
            assert line, added
            name = path.replace("/", "-")
            said = ("join", line[2], "--token", line[1], "--data-dir", machine.folder / name)
            return stack.enter_context(leafcast(machine, *said, *more))

        out = ("--proxy", "http://127.0.0.1:3128", "--listen", "wss://emea.example/leaf")
        await until_said(joining(emea, "/emea", at, *out, *believed), "is in session")
        links = emea.run("ss", "-Htn", "dport = :443")
        assert "10.213.7.1:443" in links, "squid's own"
        assert len(links.splitlines()) == 1
        await until_said(joining(centre, "/emea/s1", "wss://emea.example/leaf"), "is in session")
        # A path that the proxy keeps for itself: its words, and nothing is changed.
        _, token = centre.leafcast("node", "add", "/s2", "--approved").split("LEAFCAST_TOKEN=")
        wrong = ("join", "wss://centre.example/web", "--token", token.split()[0])
        said = stack.enter_context(leafcast(emea, *wrong, "--data-dir", emea.folder / "s2"))
        await until_said(said, "does not let a WebSocket through (403 Forbidden)")
        assert "/s2" not in centre.leafcast("node", "list")


async def test_servers_that_others_run_speak_tls_to_clients_and_children(tmp_path):
    tree = tmp_path / "tree"
    with machines(tmp_path, ["nats-centre", "nats-region-1"]) as (centre, region):
        centre.leafcast("layout", tree, "--regions=1", "--sites=1")
        folders = (tree / "centre", tree / "lc_region-1")
        wire = tmp_path / "wire.pcap"
        with (
            captured(region, wire),
            centre.running(server_binary(), "--config", folders[0] / "nats.conf") as server,
            region.running(server_binary(), "--config", folders[1] / "nats.conf") as lower,
        ):
            await asyncio.gather(*(until_said(it, "Server is ready") for it in (server, lower)))
            with (
                leafcast(
                    *(centre, "run", "center", "--config", folders[0] / "node.yaml"),
                    *("--ui", "127.0.0.1:7780"),
                ) as centre_said,
                leafcast(region, "run", "relay", "--config", folders[1] / "node.yaml") as said,
            ):
                await until_said(said, "is in session")
                await until_said(centre_said, f"next browser is in {tree / 'page-address'}")
                assert (tree / "page-address").read_text().startswith("http://127.0.0.1:7780/?")
                at = ("--data-dir", tree)
                shown = centre.leafcast("tree", *at)
                assert shown.startswith("NODE"), "with no word of the libraries"
                assert re.search(r"region-1 +up", shown), shown
                files = list(tree.glob("*/tls/certificate.pem"))
                before = {file: file.read_text() for file in files}
                waits = centre.leafcast("keys", "rotate", "authority", *at)
                assert "/region-1/site-1" in waits, "it was never started"
                changed = centre.leafcast("keys", "rotate", "authority", "--force", *at)
                assert "nodes believe that alone" in changed
                again = {file for file, text in before.items() if file.read_text() != text}
                assert again == {folder / "tls" / "certificate.pem" for folder in folders}
                assert re.search(r"region-1 +up", centre.leafcast("tree", *at))
        assert b"INFO {" not in wire.read_bytes()
