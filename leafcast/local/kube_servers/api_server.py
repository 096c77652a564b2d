"""An empty Kubernetes API server: a kube-apiserver with TLS and RBAC, on its own part of an etcd.

The folder holds its port, its certificate, its users and its key for service accounts. A server
that starts on the same folder again is the same one, with the objects it had.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leafcast.local.kube_servers.binaries import API_SERVER, KubeHost, flags
from leafcast.local.kube_servers.etcd import Etcd
from leafcast.local.kube_servers.kubeconfig import (
    ADMIN,
    MASTERS,
    ServerAccess,
    User,
    read_users,
    write_kubeconfig,
    write_users,
)
from relay.adapters.server.logged_process import LoggedProcess, ServerFailed
from relay.adapters.server.port_holder import stranger_on
from relay.adapters.server.ports import free_port
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json, to_json

HOST = "127.0.0.1"
SERVING_SECONDS, READY_SECONDS = 60.0, 120.0
LOOK_SECONDS_MIN, LOOK_SECONDS_MAX = 0.05, 0.5
PORT_ATTEMPTS = 8
PORT_WAIT_SECONDS, PORT_RETRY_SECONDS = 15.0, 0.25
REQUEST_SECONDS = 10.0
_SERVING = "Serving securely on"
_OPTIONS = {
    "bind-address": HOST,
    "advertise-address": HOST,
    "authorization-mode": "RBAC",
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-cluster-ip-range": "10.0.0.0/24",
    "allow-privileged": "true",
    # Nobody reaches it at the address of its own Service, and it has few clients.
    "endpoint-reconciler-type": "none",
    "enable-priority-and-fairness": "false",
    "profiling": "false",
}


class ApiServer:
    """Started, stopped and started again on one folder, whose name is also its context's."""

    def __init__(self, folder: Path, etcd: Etcd, host: KubeHost) -> None:
        self.folder, self.name = folder, folder.name
        self.kubeconfig, self.tokens = folder / "kubeconfig", folder / "tokens.csv"
        self.certificates, self._kept_port = folder / "certificates", folder / "port.json"
        self.process: LoggedProcess | None = None
        self._etcd = etcd
        self._host, self._clock = host, host.clock
        self._port = 0

    @property
    def url(self) -> str:
        """The same for the life of the folder."""
        return f"https://{HOST}:{self._port}"

    @property
    def authority(self) -> Path:
        """What its certificate is signed with, in PEM, beside the certificate itself."""
        return self.certificates / "apiserver.crt"

    @property
    def service_account_key(self) -> Path:
        """What tokens of service accounts are signed with; a new certificate leaves it as it is."""
        return self.folder / "service-accounts.key"

    @property
    def users(self) -> dict[str, User]:
        """Who may get in by a token of the file, by name."""
        return read_users(self.tokens)

    @property
    def running(self) -> bool:
        """Whether its process is there, even if it is frozen."""
        return self.process is not None and not self.process.ended.is_set()

    def access(self, user: str = ADMIN) -> ServerAccess:
        """How a user gets in; of another than the admin the context has the name, too."""
        context = self.name if user == ADMIN else f"{self.name}-{user}"
        token = self.users[user].token
        return ServerAccess(context, self.url, self.authority.read_bytes(), token, user)

    async def start(self) -> None:
        """Return when it is ready; raises BinariesMissing or ServerFailed."""
        if self.running:
            return
        self.certificates.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        if ADMIN not in self.users:
            self.set_users([])
        await self._bind()
        await self._until_ready()
        if not self.service_account_key.exists():
            key = (self.certificates / "apiserver.key").read_text()
            atomic_write(self.service_account_key, key, durable=False)
        write_kubeconfig(self.kubeconfig, [self.access()])

    async def stop(self) -> None:
        """End it in good order, also if it is frozen."""
        if self.process is not None:
            self.process.signal(signal.SIGCONT)
            await self.process.stop()

    def set_users(self, users: Iterable[User]) -> None:
        """Let these in beside the admin from the next start on."""
        admin = self.users.get(ADMIN) or User(ADMIN, self._host.dice.entropy(16).hex(), (MASTERS,))
        write_users(self.tokens, [admin, *users])

    async def request(
        self, method: str, path: str, body: object = None, *, form: str = "application/json"
    ) -> tuple[int, Any]:
        """Ask as the admin: the status, and the JSON or the text of the answer; raises OSError."""
        return await asyncio.to_thread(self._request, method, path, body, form)

    async def _bind(self) -> None:
        """Start the process and wait until it listens, on the port it had if it had one."""
        kept = self._read_port()
        until = self._clock.now().seconds + PORT_WAIT_SECONDS
        attempt = 0
        while True:
            self._port = kept or free_port(self.folder, attempt)
            process = self.process = self._spawn()
            if await process.until_ready(SERVING_SECONDS):
                break
            attempt += 1
            if not process.port_taken or (not kept and attempt == PORT_ATTEMPTS):
                raise ServerFailed(f"{process.name} ended as it started", process.log)
            if kept:
                await self._refuse_stranger(late=self._clock.now().seconds > until)
                await self._clock.sleep(PORT_RETRY_SECONDS)
        atomic_write(self._kept_port, json.dumps({"port": self._port}), durable=False)

    async def _refuse_stranger(self, *, late: bool) -> None:
        """Raise ServerFailed, unless our own last run still has the port, and is to end soon."""
        holder = await stranger_on(self._port, self.certificates, API_SERVER)
        if holder is not None or late:
            who = holder or "another program"
            raise ServerFailed(
                f"the port {self._port} of the API server {self.name} is in use by {who}: stop "
                f"that, or remove {self._kept_port} for a new port and new kubeconfigs",
                [],
            )

    def _spawn(self) -> LoggedProcess:
        signing = self.service_account_key
        if not signing.exists():
            signing = self.certificates / "apiserver.key"  # It makes this one before it reads it.
        options = {
            **_OPTIONS,
            "secure-port": str(self._port),
            "etcd-servers": self._etcd.url,
            "etcd-prefix": f"/{self.name}",
            "token-auth-file": str(self.tokens),
            "service-account-signing-key-file": str(signing),
            "service-account-key-file": str(signing),
        }
        return self._host.spawn(
            API_SERVER,
            # Two words: this is how its own last run is known.
            ("--cert-dir", str(self.certificates), *flags(options)),
            name=f"the kube-apiserver {self.name}",
            cwd=self._etcd.folder,
            says_ready=_SERVING,
        )

    async def _until_ready(self) -> None:
        assert self.process is not None
        until = self._clock.now().seconds + READY_SECONDS
        pause = LOOK_SECONDS_MIN
        while not await self._is_ready():
            if not self.running:
                raise ServerFailed(f"{self.process.name} ended as it started", self.process.log)
            if self._clock.now().seconds > until:
                raise ServerFailed(f"{self.process.name} does not become ready", self.process.log)
            await self._clock.sleep(pause)
            pause = min(1.5 * pause, LOOK_SECONDS_MAX)

    async def _is_ready(self) -> bool:
        try:
            status, _ = await self.request("GET", "/readyz")
        except OSError:
            return False
        return status == http.client.OK

    def _request(self, method: str, path: str, body: object, form: str) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=str(self.authority))
        token = self.users[ADMIN].token
        headers = {"Authorization": f"Bearer {token}", "Content-Type": form}
        connection = http.client.HTTPSConnection(
            HOST, self._port, context=context, timeout=REQUEST_SECONDS
        )
        try:
            data = None if body is None else to_json(body)
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            said = answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.url}{path}: {error}") from error
        finally:
            connection.close()
        try:
            return answer.status, from_json(said)
        except ValueError:
            return answer.status, said.decode(errors="replace")

    def _read_port(self) -> int:
        try:
            return _port_in(from_json(self._kept_port.read_bytes()))
        except FileNotFoundError:
            return 0
        except (ValueError, TypeError, KeyError) as error:
            raise ServerFailed(
                f"{self._kept_port} is damaged: it should hold a port; restore it, or remove it "
                "for a new port and new kubeconfigs",
                [],
            ) from error


def _port_in(form: Any) -> int:
    port = form["port"]
    if type(port) is not int or not 0 < port < 2**16:
        raise TypeError(port)
    return port
