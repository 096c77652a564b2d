"""What a daemon says of itself over HTTP: live as long as it answers, ready if all checks hold."""

import asyncio
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from leafcast.metrics.catalogue import NODE_READY
from leafcast.node.health_endpoint import (
    ASKING_SECONDS,
    CONNECTIONS_MAX,
    HealthEndpoint,
    HealthPortTaken,
)
from relay.adapters.clock import SystemClock
from relay.ports import Instant


class Clock(SystemClock):
    """One that goes on by so much whenever one looks."""

    def __init__(self, step):
        self.seconds, self.step = 0.0, step

    def now(self):
        self.seconds += self.step
        return Instant(self.seconds, 0)


@asynccontextmanager
async def running(checks, clock=None, warnings=dict, **more):
    asked = checks if callable(checks) else lambda: checks
    endpoint = HealthEndpoint(asked, clock or SystemClock(), 0, warnings=warnings, **more)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(endpoint.run())
        await endpoint.listening.wait()
        yield endpoint
        task.cancel()


async def ask(endpoint, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
    writer.write(request)
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]) if head else None, body


def get(path, method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_who_answers_is_live_whatever_it_waits_for():
    async with running({"session": "not in session"}) as endpoint:
        assert await ask(endpoint, get("/livez")) == (200, "ok\n")


async def test_ready_is_one_of_which_every_check_holds_and_each_is_named():
    checks = {"session": "", "workloads": "not listed yet"}
    async with running(checks) as endpoint:
        code, body = await ask(endpoint, get("/readyz?verbose"))
        assert code == 503
        assert body == "[+]session ok\n[-]workloads: not listed yet\nrole: active\nnot ready\n"
        checks["workloads"] = ""
        assert (await ask(endpoint, get("/readyz")))[0] == 200


async def test_what_is_warned_of_is_told_and_keeps_nobody_from_being_ready():
    warnings = {"backups": "the folder is gone", "other": ""}
    async with running({"session": ""}, warnings=lambda: warnings) as endpoint:
        code, body = await ask(endpoint, get("/readyz"))
        assert code == 200
        assert body == "[+]session ok\n[!]backups: the folder is gone\nrole: active\nready\n"


async def test_a_member_that_stands_by_says_so():
    async with running({"members": ""}, role=lambda: "standby") as endpoint:
        assert (await ask(endpoint, get("/readyz")))[1].endswith("role: standby\nready\n")


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (get("/livez", "HEAD"), 200),
        (get("/elsewhere"), 404),
        (get("/readyz", "DELETE"), 405),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"x" * 20_000, None),
    ],
)
async def test_what_is_asked_strangely_is_refused_and_the_next_is_answered(request_bytes, code):
    async with running({}) as endpoint:
        try:
            assert (await ask(endpoint, request_bytes))[0] == code
        except ConnectionResetError:
            assert code is None
        assert (await ask(endpoint, get("/livez")))[0] == 200


async def test_connections_without_end_that_say_nothing_keep_no_file_from_the_daemon():
    async with running({}, Clock(step=1.0)) as endpoint:
        before, most, silent = files_open(), 0, []
        for number in range(10 * CONNECTIONS_MAX):
            silent.append(await asyncio.open_connection("127.0.0.1", endpoint.port))
            silent[-1][1].write(b"GET /livez HT")
            # What is held at this end is counted, too.
            if not number % CONNECTIONS_MAX:
                assert await ask(endpoint, get("/livez")) == (200, "ok\n")
                most = max(most, files_open() - before - len(silent))
        # The first ones were cut off, the last ones may still ask.
        with suppress(ConnectionResetError):
            assert await silent[0][0].read() == b""
        silent[-1][1].write(b"TP/1.1\r\n\r\n")
        assert (await silent[-1][0].read()).endswith(b"ok\n")
        for _, writer in silent:
            writer.close()
    assert most <= CONNECTIONS_MAX + 2


async def test_who_has_just_connected_is_not_pushed_out_before_he_asks():
    clock = Clock(step=0.0)
    async with running({}, clock) as endpoint:
        reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.port)
        silent = [
            await asyncio.open_connection("127.0.0.1", endpoint.port)
            for _ in range(CONNECTIONS_MAX + 10)
        ]
        while len(endpoint._open) < CONNECTIONS_MAX:
            await asyncio.sleep(0)
        writer.write(get("/livez"))
        assert (await reader.read()).endswith(b"ok\n")
        writer.close()
        assert len(endpoint._open) <= CONNECTIONS_MAX
        late = asyncio.ensure_future(ask(endpoint, get("/livez")))
        clock.seconds += 2 * ASKING_SECONDS
        assert await late == (200, "ok\n"), "the silent ones make room for who waits"
        for _, writer in silent:
            writer.close()


async def test_a_check_that_fails_keeps_nobody_from_the_next_answer():
    def broken():
        raise RuntimeError("it is broken")

    async with running(broken) as endpoint:
        assert await ask(endpoint, get("/readyz")) == (None, "")
        assert await ask(endpoint, get("/livez")) == (200, "ok\n")


def files_open():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_port_that_is_taken_is_named():
    async with running({}) as endpoint:
        with pytest.raises(HealthPortTaken, match=f"127.0.0.1:{endpoint.port}"):
            await HealthEndpoint(dict, SystemClock(), endpoint.port).run()


async def test_figures_are_those_of_the_process_and_of_what_runs_there():
    async def readings():
        return [NODE_READY.of(1, "/a")]

    async with running({"session": "away"}, readings=readings) as endpoint:
        code, body = await ask(endpoint, get("/metrics"))
        assert code == 200
        assert 'leafcast_node_ready{node="/a"} 1.0\n' in body
        assert 'leafcast_check{check="session"} 0.0\n' in body
        assert "process_resident_memory_bytes" in body
        wants = b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n"
        assert (await ask(endpoint, wants))[1].endswith("# EOF\n")


async def test_figures_that_cannot_be_read_are_an_answer_of_none_and_the_next_has_them():
    fails = True

    async def readings():
        if fails:
            raise LookupError("nothing to read")
        return []

    async with running({}, readings=readings) as endpoint:
        assert await ask(endpoint, get("/metrics")) == (None, "")
        fails = False
        assert (await ask(endpoint, get("/metrics")))[0] == 200
