"""`leafcast up` and `down` as their user runs them, and the commands about a running tree."""

import json
import os
import re
import signal
import socket
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from leafcast.daemon.process import start_daemon
from leafcast.local.views import TreeShape
from relay.adapters.server.ports import free_port
from tests.awaiting import until
from tests.e2e.program import ROOT, SMALL, Program
from tests.processes import alive

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

NODES = {"/", "/region-1", "/region-1/site-1", "/region-1/site-2"}
WAIT_SECONDS = 60


def command(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def servers_of(folder: Path) -> list[int]:
    """The processes of nats-servers that run below a folder."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    words = {pid: command(pid) for pid in pids}
    return [
        pid
        for pid, said in words.items()
        if said and "nats-server" in said[0] and any(str(folder) in word for word in said)
    ]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree that is up, for tests that only look."""
    program = Program(tmp_path_factory.mktemp("up") / "data")
    done = program.run("up", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "a centre, 1 region, 2 sites" in done.stdout
    assert "leafcast apply -f" in done.stdout
    yield program
    assert program.run("down").returncode == 0
    assert servers_of(program.place.folder) == []


@pytest.fixture
def program(tmp_path):
    """A data directory of the test's own; what is left running is stopped."""
    program = Program(tmp_path / "data")
    yield program
    program.run("down")


def test_up_on_a_running_tree_says_so(tree):
    done = tree.run("up")
    assert done.returncode == 0
    assert "already up" in done.stdout
    assert done.stderr == ""


def test_another_shape_than_the_trees_is_refused_with_the_remedy(tree):
    done = tree.run("up", "--sites", "5")
    assert done.returncode == 1
    assert "--sites 2, not 5" in done.stderr
    assert "--data-dir" in done.stderr


def test_the_tree_names_every_node_and_fits_80_columns_without_colour(tree):
    form = tree.json("tree")
    assert {node["path"] for node in form["nodes"]} == NODES
    assert {node["state"] for node in form["nodes"]} == {"up"}
    shown = tree.run("tree").stdout
    assert "└─ site-2" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert not any(line != line.rstrip() for line in shown.splitlines())


def test_status_tells_delivered_and_working_of_each_node_and_destination(tree):
    assert tree.run("apply", "-f", str(ROOT / "leafcast" / "shop")).returncode == 0
    until(
        lambda: tree.json("status")["placements"][0]["health"] == {"healthy": 2},
        "the shop is not healthy",
    )
    one = tree.json("status", "shop", "--tree")
    assert one["complete"]
    assert {node["path"]: node["states"] for node in one["nodes"]} == {
        "/": {"synced": 2},
        "/region-1": {"synced": 2},
        "/region-1/site-1": {"synced": 1},
        "/region-1/site-2": {"synced": 1},
    }
    listed = tree.json("status", "shop", "--destinations")["destinationList"]
    assert [item["path"] for item in listed] == ["/region-1/site-1", "/region-1/site-2"]
    assert re.search(r"shop +\d+ +2/2 +2/2", tree.run("status").stdout)

    def noted():
        events = tree.run("events", "-o", "json").stdout.splitlines()
        return {json.loads(event)["reason"] for event in events}

    # What is counted may be seen a moment before the condition that it leads to.
    until(lambda: {"Delivered", "Working"} <= noted(), lambda: f"only {noted()}")


def test_a_placement_that_is_not_there_is_an_error_that_says_which_there_are(tree):
    done = tree.run("status", "nope")
    assert done.returncode == 1
    assert 'no EdgePlacement "nope"' in done.stderr


def test_the_configuration_of_a_node_is_shown_without_its_secret(tree):
    shown = tree.run("nats-config", "/region-1").stdout
    whole = tree.run("nats-config", "/region-1", "--show-secrets").stdout
    assert 'server_name: "lc_region-1"' in shown
    assert "SU" in whole
    assert not re.search(r"\bSU[A-Z2-7]{40}", shown)
    done = tree.run("nats-config", "/nowhere")
    assert done.returncode == 1
    assert "leafcast tree" in done.stderr


def test_the_tree_and_its_commands_outlive_a_crash_of_the_centres_server(program):
    assert program.run("up", *SMALL).returncode == 0
    config = program.place.folder / "centre" / "nats.conf"
    (server,) = (pid for pid in servers_of(program.place.folder) if str(config) in command(pid))
    os.kill(server, signal.SIGKILL)
    until(lambda: not alive(server), "the server is still there")
    until(
        lambda: (
            program.run("tree").returncode == 0
            and {node["state"] for node in program.json("tree")["nodes"]} == {"up"}
        ),
        "the tree did not come back",
    )
    assert program.run("apply", "-f", str(ROOT / "leafcast" / "shop")).returncode == 0
    until(
        lambda: program.json("status", "shop")["states"] == {"synced": 2},
        "the shop was not delivered",
    )


def test_commands_without_a_tree_say_how_to_start_one(program):
    for command in (["tree"], ["status"], ["events"]):
        done = program.run(*command)
        assert done.returncode == 1
        assert "leafcast up" in done.stderr
    assert "No tree is running" in program.run("down").stdout


def test_a_daemon_that_is_killed_leaves_nothing_running_and_the_next_finds_its_data(program):
    port = free_port(program.place.folder.parent, 7)
    assert program.run("up", *SMALL, "--health-port", str(port)).returncode == 0
    other = program.run("up", "--health-port", str(port + 1))
    assert other.returncode == 1
    assert f"runs with its health port at 127.0.0.1:{port}; run `leafcast down`" in other.stderr
    pid = program.place.daemon()["pid"]
    assert len(servers_of(program.place.folder)) == 4
    os.kill(pid, signal.SIGKILL)
    until(lambda: not servers_of(program.place.folder), "servers outlived their daemon")
    assert "leafcast up" in program.run("tree").stderr
    again = program.run("up")
    assert again.returncode == 0, again.stderr
    assert "up again, with its data" in again.stdout
    assert {node["state"] for node in program.json("tree")["nodes"]} == {"up"}
    with urlopen(f"http://127.0.0.1:{port}/livez") as answer:
        assert answer.read() == b"ok\n"


def test_what_a_killed_daemon_said_is_never_taken_for_the_next_ones(program):
    """In a container the next one has its number, and was taken to be ready before it began."""
    assert program.run("up", "--regions", "0").returncode == 0
    killed = program.place.daemon()
    os.kill(killed["pid"], signal.SIGKILL)
    until(lambda: not servers_of(program.place.folder), "servers outlived their daemon")
    assert program.place.daemon() == killed
    with start_daemon(program.place, TreeShape(0, 0)) as daemon:
        assert (program.place.daemon() or {}).get("pid") in (None, daemon.pid)
        until(lambda: (program.place.daemon() or {}).get("ready"), "it is not up")
        # Whoever starts a second one takes nothing from the first.
        with start_daemon(program.place, TreeShape(0, 0)) as second:
            assert second.wait(WAIT_SECONDS) == 1
        assert program.place.daemon()["pid"] == daemon.pid
        assert program.run("down").returncode == 0
        assert daemon.wait(WAIT_SECONDS) == 0


def test_the_nodes_are_counted_that_are_there(program):
    assert program.run("up", *SMALL).returncode == 0
    removed = program.run("node", "remove", "/region-1/site-2")
    assert removed.returncode == 0, removed.stderr
    until(
        lambda: "already up: a centre, 1 region, 1 site." in program.run("up").stdout,
        lambda: program.run("up").stdout,
    )
    assert program.run("down").returncode == 0
    assert ": a centre, 1 region, 1 site." in program.run("up").stdout


def test_two_that_are_started_at_once_are_one_tree(program):
    with program.start("up", *SMALL) as first, program.start("up", *SMALL) as second:
        said = [process.communicate(timeout=WAIT_SECONDS) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    assert len(servers_of(program.place.folder)) == 4


def test_ctrl_c_while_it_starts_stops_the_daemon_and_keeps_the_data(program):
    with program.start("up", *SMALL) as starting:
        until(lambda: program.place.daemon() is not None, "no daemon")
        pid = program.place.daemon()["pid"]
        starting.send_signal(signal.SIGINT)
        _, said = starting.communicate(timeout=WAIT_SECONDS)
    if starting.returncode != 0:  # Else it was up before the signal came.
        assert starting.returncode == 130
        assert "data is kept" in said
        until(lambda: not alive(pid), "the daemon is still there")
        until(lambda: servers_of(program.place.folder) == [], "servers are left")
    assert program.place.tree() is not None


def test_a_data_directory_of_a_newer_version_is_refused(program):
    program.place.folder.mkdir()
    (program.place.folder / "tree.json").write_text('{"format": 99, "shape": [1, 1, 3]}')
    done = program.run("up")
    assert done.returncode == 1
    assert "format 99" in done.stderr
    assert "--data-dir" in done.stderr


def test_a_folder_of_other_things_is_refused(program):
    program.place.folder.mkdir()
    (program.place.folder / "letters.txt").write_text("dear")
    done = program.run("up")
    assert done.returncode == 1
    assert "letters.txt" in done.stderr


def test_a_folder_that_cannot_be_written_is_refused(program):
    done = program.run("up", "--data-dir", "/proc/leafcast")
    assert done.returncode == 1
    assert "name another --data-dir" in done.stderr


def test_a_directory_in_use_by_another_process_is_refused(program):
    program.place.folder.mkdir()
    with program.place.locked():
        done = program.run("up")
    assert done.returncode == 1
    assert "another process uses it" in done.stderr
    assert "--data-dir" in done.stderr


def test_the_doctor_finds_a_healthy_tree_well_and_says_how_to_start_one_that_is_not(program):
    assert program.run("up", *SMALL).returncode == 0
    well = program.run("doctor", "--json")
    odd = {check["group"] for check in json.loads(well.stdout)["checks"] if check["state"] != "ok"}
    # It has no backup yet.
    assert (well.returncode, odd) == (0, {"Backups"}), well.stdout
    assert program.run("down").returncode == 0
    ill = program.run("doctor", "--json")
    assert ill.returncode == 1
    found = json.loads(ill.stdout)
    (failure,) = [check for check in found["checks"] if check["state"] == "failure"]
    assert (found["ok"], "leafcast up" in failure["remedy"]) == (False, True)


def test_a_taken_port_is_named_by_the_last_words_of_the_daemon(program):
    assert program.run("up", *SMALL).returncode == 0
    assert program.run("down").returncode == 0
    ports = json.loads((program.place.folder / "centre" / "ports.json").read_text())
    with socket.create_server(("127.0.0.1", ports["client"])):
        done = program.run("up")
    assert f"process {os.getpid()} (" in done.stderr
    assert done.returncode == 1
    assert f"port {ports['client']}" in done.stderr
    assert "in use" in done.stderr


def sockets(pid: int) -> int:
    try:
        links = [str(link.readlink()) for link in (Path("/proc") / str(pid) / "fd").iterdir()]
    except OSError:
        return 0
    return sum(1 for link in links if link.startswith("socket:"))


@pytest.mark.timeout(300)
def test_a_wait_goes_on_through_the_death_of_the_daemon_and_of_the_centres_server(program):
    shop = ROOT / "leafcast" / "shop"
    broken = program.place.folder.parent / "web.yaml"
    broken.write_text(
        re.sub(r"image: (.*):.*", r"image: \1:broken", (shop / "web.yaml").read_text())
    )
    assert program.run("up", *SMALL).returncode == 0
    for file in (shop, broken):
        applied = program.run("apply", "-f", str(file))
        assert applied.returncode == 0, applied.stderr
    with program.start("wait", "shop", "--for", "healthy", "--timeout", "180s") as waiting:
        until(lambda: sockets(waiting.pid) > 2, "it does not connect")
        program.json("tree")  # Long enough for what began before to have asked.
        os.kill(program.place.daemon()["pid"], signal.SIGKILL)
        until(lambda: servers_of(program.place.folder) == [], "servers are left")
        assert program.run("up").returncode == 0
        (server,) = [
            pid for pid in servers_of(program.place.folder) if "/centre/" in " ".join(command(pid))
        ]
        os.kill(server, signal.SIGKILL)
        assert waiting.poll() is None
        until(lambda: program.run("apply", "-f", str(shop)).returncode == 0, "not applied")
        said, errors = waiting.communicate(timeout=180)
    assert waiting.returncode == 0, errors
    assert "condition met" in said
    program.run("down")


def test_events_are_shown_through_restarts_each_once(program):
    assert program.run("up", *SMALL).returncode == 0
    seen, names = program.place.folder.parent / "events", ("first", "second", "third")
    with seen.open("w") as out, ExitStack() as stack:
        watching = stack.enter_context(program.start("events", "-w", "-o", "json", stdout=out))
        stack.callback(watching.kill)
        for name in names:
            applied = program.run("apply", "-f", str(_without_destinations(program, name)))
            assert applied.returncode == 0, applied.stderr
            until(lambda said=name: f"edgeplacement/{said}" in seen.read_text(), seen.read_text)
            if name == "first":
                os.kill(program.place.daemon()["pid"], signal.SIGKILL)
                until(lambda: servers_of(program.place.folder) == [], "servers are left")
                assert program.run("up").returncode == 0
            elif name == "second":
                assert program.run("down").returncode == 0
                assert program.run("up").returncode == 0
        listed = _happenings(program.run("events", "-o", "json").stdout)
        assert listed
        until(lambda: listed <= _happenings(seen.read_text()), seen.read_text)
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=WAIT_SECONDS)
        assert (watching.returncode, errors) == (130, "")
    shown = seen.read_text().splitlines()
    assert len(shown) == len(set(shown))


def _happenings(lines):
    """Which events are shown, however often each has happened; a line may be half written."""
    items = [json.loads(line) for line in lines.splitlines() if line.endswith("}")]
    return {(it["reason"], it["object"], it["message"], it["first_ms"]) for it in items}


def _without_destinations(program, name):
    """A placement that leads to an event at once."""
    file = program.place.folder.parent / f"{name}.json"
    selector = {"matchLabels": {"nowhere": "true"}}
    placement = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {"locationSelectors": [selector]},
    }
    file.write_text(json.dumps(placement))
    return file


def test_a_tree_in_the_foreground_ends_when_it_is_told_to_and_fails_when_it_is_not(program):
    def start():
        started = program.start("up", "--foreground", "--regions", "1", "--sites", "1")
        assert started.stdout.readline().startswith("The tree is up")
        return started

    told = start()
    assert program.run("up", "--foreground").returncode == 1
    told.send_signal(signal.SIGTERM)
    assert told.wait(WAIT_SECONDS) == 0
    assert "Stopped." in told.stdout.read()
    assert servers_of(program.place.folder) == []

    killed = start()
    os.kill(program.place.daemon()["pid"], signal.SIGKILL)
    assert killed.wait(WAIT_SECONDS) == 1
    assert "the tree ended" in killed.stderr.read()
    told.communicate()
    killed.communicate()


@contextmanager
def manager(program):
    """A service manager that hears what the program says of itself; yields what it heard."""
    address = str(program.place.folder.parent / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.bind(address)
        own.setblocking(False)
        program.environment["NOTIFY_SOCKET"] = address

        def heard():
            with suppress(BlockingIOError):
                while True:
                    yield own.recv(500).decode()

        yield heard


@pytest.mark.parametrize("frozen", ["server", "daemon"])
def test_a_start_in_the_foreground_that_hangs_is_told_of_ended_and_tried_again(program, frozen):
    words = ("up", "--foreground", "--regions", "0", "--timeout")
    with manager(program) as heard:
        hangs = program.start(*words, "8")
        if frozen == "server":
            until(lambda: servers_of(program.place.folder))
            (pid,) = servers_of(program.place.folder)
        else:
            pid = until(lambda: (program.place.daemon() or {}).get("pid"))
        os.kill(pid, signal.SIGSTOP)
        out, said = hangs.communicate(timeout=2 * WAIT_SECONDS)
        assert (hangs.returncode, out) == (1, "")
        assert "is not up after 8 s" in said
        assert "it is stopped, and its data is kept; where it only needs longer, say --time" in said
        until(lambda: not program.place.in_use() and not servers_of(program.place.folder))
        told = [*heard()]
        assert told[0].startswith("STATUS=Starting")
        assert told[-1] == "STATUS=The tree is not up in time, and is stopped"
        again = program.start(*words, "60")
        said = again.stdout.readline()
        assert said.startswith("The tree is up"), again.stderr.read()
        until(lambda: "READY=1\nSTATUS=The tree is up" in heard())
        again.send_signal(signal.SIGTERM)
        assert again.wait(WAIT_SECONDS) == 0
        again.communicate()
