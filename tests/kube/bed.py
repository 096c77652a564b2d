"""A test bed of real API servers: one etcd for a process of tests, any number of servers on it.

It runs in a thread with an event loop of its own, so that it lives longer than a test's loop. All
verbs wait until they are done; in asynchronous tests, `await asyncio.to_thread(server.start)`.
"""

import asyncio
import base64
import http.client
import itertools
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import (
    ALL,
    KUBECTL,
    BinariesMissing,
    KubeHost,
    find_binaries,
)
from leafcast.local.kube_servers.kubeconfig import ADMIN, User, write_kubeconfig, write_users
from leafcast.local.kube_servers.local_kube import LocalKube, local_kube
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server import logged_process
from relay.adapters.server.guard import ProcessGuard
from tests.awaiting import until
from tests.processes import stands_still

VERB_SECONDS = 180
STOP_SECONDS = 2.0
"""A server that somebody follows waits for the end of that, and is made to end in the end."""
MEMORY_FOR_SPEED = {"GOGC": "off", "GOMEMLIMIT": "500MiB"}
"""What API servers are started with: each takes 1.4 CPU-s less of 4, and 200 MB more."""
OF_ITSELF = ("/masterleases/", "/leases/kube-system/apiserver-", "/events/")
DELETED_AT_ONCE = 100


def need_binaries():
    """What a bed runs. Where it is missing tests fail; without Go they are skipped, and say how."""
    binaries = find_binaries()
    try:
        binaries.need(*ALL)
    except BinariesMissing as missing:
        if shutil.which("go"):
            pytest.fail(f"run `make kube` first, once: {missing}", pytrace=False)
        pytest.skip(f"NOT RUN: {missing}")
    return binaries


class Bed:
    """An etcd, and the servers on it; use it in `with`."""

    def __init__(self, folder: Path) -> None:
        self.binaries = need_binaries()
        self._folder = folder
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kube bed")
        self._stack = AsyncExitStack()
        self.kube: LocalKube | None = None

    def __enter__(self):
        self._thread.start()
        try:
            self.run(self._open())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error) -> None:
        self.run(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        guard = await self._stack.enter_async_context(ProcessGuard())
        # Nothing that tests store needs to survive a loss of power.
        host = KubeHost(self.binaries, guard, SystemClock(), SystemDice())
        self.kube = await self._stack.enter_async_context(
            local_kube(self._folder, host, durable=False)
        )

    def run(self, work):
        """Carry out a coroutine in the bed's own loop; what it returns or raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(VERB_SECONDS)

    @contextmanager
    def server(self, *, workloads: bool | None = None) -> Iterator["Server"]:
        """A fresh, empty server that is ready.

        With `workloads` Deployments get ready Pods; if False, what ends a namespace and collects
        garbage runs, and nothing else; if None, no controller at all.
        """
        name = f"server-{next(self._numbers)}"
        server = Server(self, self.kube.add(name, workloads=workloads))
        try:
            server.start()
            yield server
        finally:
            server.kill()
            del self.kube.servers[name]
            self.kube.controllers.pop(name, None)


class Server:
    """An API server in the hands of a test."""

    def __init__(self, bed: Bed, real: ApiServer) -> None:
        self.bed = bed
        self.real = real
        self._marked: dict[str, str] = {}

    @property
    def name(self) -> str:
        """Also the name of its context."""
        return self.real.name

    @property
    def url(self) -> str:
        return self.real.url

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.real.kubeconfig

    @property
    def controllers(self):
        """The processes beside it, by program."""
        found = self.bed.kube.controllers.get(self.name)
        return found.processes if found else {}

    def start(self) -> None:
        """On the same port and data as before, with what was changed meanwhile."""
        with pytest.MonkeyPatch.context() as environment:
            for name, value in MEMORY_FOR_SPEED.items():
                environment.setenv(name, value)
            self.bed.run(self.bed.kube.start(self.name))

    def stop(self) -> None:
        """In good order, with what runs beside it."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(logged_process, "STOP_SECONDS", STOP_SECONDS)
            self.bed.run(self.bed.kube.stop(self.name))

    def restart(self) -> None:
        self.stop()
        self.start()

    def kill(self) -> None:
        """As a crash would, with what runs beside it."""
        for process in self.controllers.values():
            self.bed.run(process.kill())
        if (process := self.real.process) is not None:
            self.bed.run(process.kill())

    def freeze(self) -> None:
        """It answers nothing, and keeps its connections."""
        self._signal(signal.SIGSTOP)
        pid = self.real.process.pid
        until(lambda: stands_still(pid), f"process {pid} does not stand still")

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.real.process is not None
        self.real.process.signal(number)

    def renew_certificate(self) -> None:
        """Start again with a certificate of another authority, and a new kubeconfig file."""
        self.stop()
        shutil.rmtree(self.real.certificates, ignore_errors=True)
        self.start()

    def add_user(self, name: str, *groups: str) -> Path:
        """Start again with a user more, who has no rights but the groups'; their kubeconfig."""
        self.stop()
        others = [user for user in self.real.users.values() if user.name not in {ADMIN, name}]
        self.real.set_users([*others, User(name, secrets.token_hex(16), groups)])
        self.start()
        file = self.real.folder / f"kubeconfig-{name}"
        write_kubeconfig(file, [self.real.access(name)])
        return file

    def renew_token(self, user: str = ADMIN) -> None:
        """Start again with another token for the user: the old one is refused."""
        self.stop()
        users = self.real.users
        users[user] = replace(users[user], token=secrets.token_hex(16))
        write_users(self.real.tokens, users.values())
        self.start()

    def ask_etcd(self, verb: str, form):
        """Ask the etcd behind it, as `kv/compaction`; the JSON of its answer."""
        folder = os.open(self.bed.kube.etcd.folder, os.O_RDONLY)
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(VERB_SECONDS)
        try:
            # A socket's name has no room for where it lies.
            name = self.bed.kube.etcd.url.removeprefix("unix://")
            link.connect(f"/proc/self/fd/{folder}/{name}")
            asking = http.client.HTTPConnection("etcd")
            asking.sock = link
            asking.request("POST", f"/v3/{verb}", json.dumps(form))
            answer = asking.getresponse()
            said = answer.read()
            assert answer.status == http.client.OK, said
            return json.loads(said)
        finally:
            link.close()
            os.close(folder)

    def wipe(self) -> None:
        """Take all that it stores from under it."""
        assert int(self.ask_etcd("kv/deleterange", self._everything)["deleted"]) > 0

    def mark(self) -> None:
        """Remember what it stores, for `reset`."""
        self._marked = self._stored()

    def reset(self) -> None:
        """Have it store again what it did at `mark`; it hears of that as of every change."""
        now, then = self._stored(), self._marked
        gone = [{"requestDeleteRange": {"key": key}} for key in now.keys() - then.keys()]
        for at in range(0, len(gone), DELETED_AT_ONCE):
            self.ask_etcd("kv/txn", {"success": gone[at : at + DELETED_AT_ONCE]})
        for key, value in then.items():
            if now.get(key) != value:
                self.ask_etcd("kv/put", {"key": key, "value": value})

    @property
    def _everything(self):
        """Its range of keys in etcd."""
        first, after = (base64.b64encode(f"/{self.name}{end}".encode()) for end in "/0")
        return {"key": first.decode(), "range_end": after.decode()}

    def _stored(self) -> dict[str, str]:
        """All values by key, but for what the server says of itself again and again."""
        found = self.ask_etcd("kv/range", self._everything)["kvs"]
        listed = {item["key"]: item["value"] for item in found}
        own = [f"/{self.name}{path}" for path in OF_ITSELF]
        names = {key: base64.b64decode(key).decode() for key in listed}
        return {key: it for key, it in listed.items() if not names[key].startswith(tuple(own))}

    def compact(self) -> None:
        """Have etcd forget all that was before now."""
        key = base64.b64encode(b"none").decode()
        now = self.ask_etcd("kv/range", {"key": key})["header"]["revision"]
        self.ask_etcd("kv/compaction", {"revision": now, "physical": True})

    def request(self, method: str, path: str, body=None):
        """As the admin: the status and the JSON of the answer."""
        return self.bed.run(self.real.request(method, path, body))

    def await_definitions(self) -> None:
        """Wait until all definitions are served, and kubectl finds their kinds.

        kubectl fails on a definition without any condition yet, and goes by the kinds that the
        server names, which it does a moment after it serves one.
        """
        asked = ("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        until(lambda: not self.kubectl(*asked, check=False)[0], "the definitions are not served")
        defined = {*self.kubectl("get", "crd", "-o", "jsonpath={.items[*].metadata.name}").split()}

        def named():
            return {*self.kubectl("api-resources", "-o", "name", check=False)[1].split()}

        until(lambda: defined <= named(), "the server does not name what it serves")

    def kubectl(self, *arguments: str, stdin="", kubeconfig: Path | None = None, check=True):
        """Run kubectl; what it printed. With `check` False: code, output and errors."""
        done = subprocess.run(
            [self.bed.binaries[KUBECTL], "--kubeconfig", kubeconfig or self.kubeconfig, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            # Its cache of what servers serve is told apart by their ports alone.
            env={**os.environ, "KUBECACHEDIR": str(self.real.folder / "kubectl-cache")},
        )
        if not check:
            return done.returncode, done.stdout, done.stderr
        assert not done.returncode, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout


def write_contexts(file: Path, *servers: Server) -> Path:
    """One kubeconfig with a context for each of these servers, the first in use."""
    write_kubeconfig(file, [server.real.access() for server in servers])
    return file


async def kubectl(server: Server, *arguments: str, stdin: str = "") -> str:
    """Run kubectl at a server, and let other work go on."""
    return await asyncio.to_thread(server.kubectl, *arguments, stdin=stdin)
