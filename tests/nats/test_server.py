"""The embedded server: ready by event, back after a crash, the same ports, nothing left behind."""

import asyncio
import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from relay.adapters.server.admin import system_connection
from relay.adapters.server.guard import GuardLost, ProcessGuard
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_config import BadServerSettings
from relay.adapters.server.nkey_pairs import BadNkey
from relay.adapters.server.port_holder import stranger_on
from relay.adapters.server.ports import PortTaken
from schemas.values.refusals import BadIdentity
from tests.awaiting import eventually
from tests.nats.conftest import new_nkey, new_seeds
from tests.nats.raw_leaf import let_in
from tests.processes import alive

pytestmark = pytest.mark.nats
CLOSED = 1
"""How CONNZ is asked for connections that were closed."""


async def until_gone(pid: int) -> None:
    await eventually(lambda: not alive(pid), f"process {pid} is left")


async def test_a_started_server_serves_its_accounts_and_no_stranger(grove):
    async with grove:
        node = await grove.plant()
        relay = await grove.connect(node, node.seeds.relay)
        assert (await relay.jetstream().account_info()).domain == "lc"
        assert relay.max_payload == 1024 * 1024
        assert await grove.is_refused(node, new_nkey()[0])
        assert await grove.is_refused(node, None)


async def test_its_secrets_are_readable_by_the_owner_only(grove, tmp_path):
    async with grove:
        await grove.plant()
        mode = stat.S_IMODE((tmp_path / "lc" / "nats.conf").stat().st_mode)
        assert mode == 0o600


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc to look at")
async def test_it_collects_garbage_early_unless_told_otherwise(grove, monkeypatch):
    for told, found in ((None, b"GOGC=50"), ("70", b"GOGC=70")):
        if told:
            monkeypatch.setenv("GOGC", told)
        async with grove:
            node = await grove.plant()
            environment = Path(f"/proc/{node.server.pid}/environ").read_bytes().split(b"\0")
        assert found in environment


async def test_it_keeps_the_last_100_of_those_that_went_and_no_more(grove):
    async with grove:
        node = await grove.plant()
        address = urlsplit(node.server.url)
        async with system_connection(node.server.url, node.seeds.system) as system:

            async def told(verb, what, **asked):
                answer = await system.request(
                    f"$SYS.REQ.SERVER.PING.{verb}", json.dumps(asked).encode(), timeout=60
                )
                return json.loads(answer.data)["data"][what]

            here = await told("VARZ", "connections")
            for _ in range(150):
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
                assert await reader.readline()
                writer.close()
                await writer.wait_closed()

            async def gone():
                return await told("VARZ", "connections") == here

            async def noted():
                return await told("CONNZ", "total", state=CLOSED) >= 100

            # Each is noted beside its going, maybe a moment later.
            await eventually(gone)
            await eventually(noted)
            assert await told("CONNZ", "total", state=CLOSED) == 100


async def test_after_a_crash_it_is_back_on_the_same_ports_with_what_it_stored(grove):
    async with grove:
        node = await grove.plant()
        before = (node.server.url, node.server.leaf_url)
        relay = await grove.connect(node, node.seeds.relay)
        await relay.jetstream().add_stream(name="OWN", subjects=["lc._own.*"])
        await relay.jetstream().publish("lc._own.a", b"kept")

        os.kill(node.server.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            assert await node.server.next_start(1) == 2

        assert (node.server.url, node.server.leaf_url) == before
        again = await grove.connect(node, node.seeds.relay)
        stored = await again.jetstream().get_last_msg("OWN", "lc._own.a")
        assert stored.data == b"kept"


async def test_a_folder_keeps_its_ports_for_life(grove):
    seeds = new_seeds()
    async with grove:
        async with grove.server("/emea", seeds) as first:
            before = (first.url, first.leaf_url)
        async with grove.server("/emea", seeds) as second:
            assert (second.url, second.leaf_url) == before


async def test_two_servers_on_one_folder_are_refused(grove, monkeypatch):
    monkeypatch.setattr("relay.adapters.server.nats_server.PORT_WAIT_SECONDS", 0.3)
    seeds = new_seeds()
    async with grove, grove.server("/", seeds):
        with pytest.raises(PortTaken, match="in use"):
            async with grove.server("/", seeds):
                pass


async def test_a_port_that_another_program_took_is_refused_at_once_and_the_program_named(
    grove, monkeypatch
):
    monkeypatch.setattr("relay.adapters.server.nats_server.PORT_WAIT_SECONDS", 600)
    seeds = new_seeds()
    async with grove:
        async with grove.server("/", seeds) as first:
            port = int(first.leaf_url.rpartition(":")[2])
        with socket.create_server(("127.0.0.1", port)):
            async with asyncio.timeout(60):
                with pytest.raises(PortTaken, match=rf"port {port} .* process {os.getpid()} "):
                    async with grove.server("/", seeds):
                        pass


async def test_a_port_to_listen_at_that_another_program_has_is_named_at_the_first_start(grove):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        async with grove:
            with pytest.raises(PortTaken, match=rf"port {port} .* say another --listen"):
                async with grove.server(
                    leaf_address=LeafAddress(("wss://centre.example/leaf",), port)
                ):
                    pass


async def test_where_the_system_does_not_tell_the_greeting_does(grove, monkeypatch, tmp_path):
    monkeypatch.setattr("relay.adapters.server.port_holder._PROC", tmp_path / "nothing")
    async with grove, grove.server() as server:
        port = int(server.url.rpartition(":")[2])
        assert await stranger_on(port, tmp_path, server.path.domain) is None
        assert str(await stranger_on(port, tmp_path, "lc_other")) == "another program"
    assert await stranger_on(port, tmp_path, "lc_other") is None, "nobody listens"


async def test_a_server_that_cannot_start_says_why(grove, tmp_path):
    (tmp_path / "lc").mkdir()
    (tmp_path / "lc" / "jetstream").write_text("a file where the store should be")
    async with grove:
        with pytest.raises(ServerFailed, match="ended as it started") as failed:
            async with grove.server():
                pass
        assert failed.value.log


async def test_a_server_that_does_not_stay_up_ends_its_owners_block(grove, monkeypatch, tmp_path):
    monkeypatch.setattr("relay.adapters.server.nats_server.CRASHES_MAX", 0)
    async with grove:

        async def own() -> None:
            async with grove.server() as server:
                os.kill(server.pid, signal.SIGKILL)
                await asyncio.Event().wait()

        with pytest.raises(ExceptionGroup) as lost:
            await own()
        assert lost.group_contains(ServerFailed, match="does not stay up")


async def test_a_server_that_does_not_answer_is_stopped_all_the_same(grove, monkeypatch):
    monkeypatch.setattr("relay.adapters.server.logged_process.STOP_SECONDS", 0.2)
    async with grove:
        async with grove.server() as server:
            os.kill(server.pid, signal.SIGSTOP)
        assert not alive(server.pid)


async def test_an_added_child_is_admitted_and_nobody_else_is_disturbed(grove):
    async with grove:
        node = await grove.plant()
        relay = await grove.connect(node, node.seeds.relay)
        children = {f"site-{number}": new_nkey() for number in range(20)}
        async with asyncio.TaskGroup() as group:
            for name, (_, nkey) in children.items():
                group.create_task(node.server.add_child(name, nkey))
        for seed, _ in children.values():
            await let_in(node.server, seed)
        assert relay.is_connected
        assert node.server.starts == 1


async def test_a_reload_that_meets_a_crash_returns_when_the_next_run_serves(grove):
    async with grove:
        node = await grove.plant()
        seed, nkey = new_nkey()
        os.kill(node.server.pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            await node.server.add_child("late", nkey)
        await let_in(node.server, seed)
        assert node.server.starts == 2


async def test_bad_children_are_refused_before_anything_changes(grove):
    async with grove:
        node = await grove.plant()
        _, nkey = new_nkey()
        await node.server.add_child("good", nkey)
        wrong = nkey[:-1] + ("A" if nkey[-1] != "A" else "B")
        for name, key, refusal in (
            ("RELAY", new_nkey()[1], BadIdentity),
            ("a.b", new_nkey()[1], BadIdentity),
            ("typo", wrong, BadNkey),
            ("seed", new_nkey()[0], BadNkey),
            ("twin", nkey, BadServerSettings),
            ("self", node.seeds.public().system, BadServerSettings),
        ):
            with pytest.raises(refusal):
                await node.server.add_child(name, key)
        await node.server.reload()
        assert node.server.starts == 1


PARENT = """
import asyncio, sys
from pathlib import Path
from tests.nats.conftest import Grove

async def main():
    folder = Path(sys.argv[1])
    async with Grove(folder) as grove:
        grove.guard.remove_at_end(folder)
        node = await grove.plant()
        print(node.server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_nothing_outlives_a_killed_program(tmp_path):
    folder = tmp_path / "with a space"
    folder.mkdir()
    program = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with program:
        line = await asyncio.to_thread(program.stdout.readline)
        server = int(line)
        assert alive(server)
        assert any(folder.iterdir())
        program.kill()
        # Whoever reads the program's output sees its end at once: no one else holds it open.
        assert await asyncio.to_thread(program.stdout.read) == b""
    await until_gone(server)
    await eventually(lambda: not folder.exists(), f"{folder} is left")


LONE_SERVER = """
import asyncio, sys
from pathlib import Path
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.process import ServerProcess, server_binary

async def main():
    async with ProcessGuard() as guard:
        server = ServerProcess(guard, server_binary(), Path(sys.argv[1]))
        await server.until_ready(60)
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_server_whose_program_is_killed_ends_in_order(tmp_path):
    """It has words to say as it ends, and nobody reads them any more."""
    config, ports = tmp_path / "nats.conf", tmp_path / "ports"
    ports.mkdir()
    config.write_text(f'listen: "127.0.0.1:-1"\nports_file_dir: "{ports}"\n')
    program = subprocess.Popen(
        [sys.executable, "-c", LONE_SERVER, str(config)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with program:
        server = int(await asyncio.to_thread(program.stdout.readline))
        assert any(ports.iterdir())
        program.kill()
    await until_gone(server)
    assert not any(ports.iterdir()), "it takes its file away as the last it does"


async def test_the_guard_ends_only_what_is_still_registered(tmp_path):
    command = ["sh", "-c", "echo up >&2; exec sleep 600"]
    async with asyncio.TaskGroup() as group, ProcessGuard() as guard:
        first, released, last = processes = [
            guard.spawn(command, cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(3)
        ]
        for process in processes:
            assert await asyncio.to_thread(process.stderr.readline) == b"up\n"
            process.stderr.close()
        guard.release(released.pid)
        # Reaped as they end, as the owner of a process does.
        codes = [group.create_task(asyncio.to_thread(process.wait)) for process in (first, last)]
    assert [code.result() for code in codes] == [-signal.SIGTERM, -signal.SIGTERM]
    assert released.poll() is None
    released.kill()
    released.wait()


async def test_a_folder_that_is_written_to_as_it_is_removed_goes_all_the_same(tmp_path):
    folder = tmp_path / "written"
    folder.mkdir()
    for number in range(500):
        (folder / f"before-{number}").touch()

    def write() -> None:
        end = time.monotonic() + 2
        with suppress(FileNotFoundError):
            for number in itertools.count():
                (folder / str(number)).touch()
                if time.monotonic() > end:
                    break

    async with asyncio.TaskGroup() as group:
        async with ProcessGuard() as guard:
            guard.remove_at_end(folder)
            group.create_task(asyncio.to_thread(write))
            await eventually((folder / "0").exists)
        assert not folder.exists()


async def test_a_guard_that_is_not_open_starts_nothing(tmp_path):
    with pytest.raises(GuardLost):
        ProcessGuard().spawn(["sleep", "600"], cwd=tmp_path, stderr=subprocess.DEVNULL)
