"""Requests to one API server, by raw JSON; the only importer of `kubernetes` and of its `aiohttp`.

Credentials and certificates are read anew as soon as a file that they come from changes, once they
expire, and once the server refuses them. Requests that run go on with what they began with.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from ssl import SSLCertVerificationError
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSSLError, ClientTimeout, TCPConnector
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from aiohttp.helpers import get_env_proxy_for_url
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from multidict import CIMultiDict
from yarl import URL

from relay.adapters.kubernetes import refusals
from relay.adapters.kubernetes.credentials import (
    ExecCredentials,
    certificates,
    exec_credentials,
    headers,
)
from relay.adapters.kubernetes.kubeconfig import (
    ClusterAccess,
    InCluster,
    InvalidKubeconfig,
    Kubeconfig,
    read_access,
    signature,
)
from relay.adapters.kubernetes.paths import JSON, with_query
from relay.ports import Clock
from relay.space_errors import SpaceError
from schemas.values.codec import from_json, to_json
from schemas.values.refusals import CodecError

REQUEST_SECONDS_MAX = 65.0
"""A server ends its own requests after 60 s; longer than that means that it hangs."""
CONNECT_SECONDS_MAX = 10.0
IDLE_SECONDS_MAX = 150.0
"""A watch brings at least a bookmark a minute: without any the connection is taken for lost."""
ANSWER_BYTES_MAX = 1024 * 1024 * 1024
"""A page of 500 objects, each as large as any, has less."""
LINE_BYTES_MAX = 64 * 1024 * 1024
"""An object of 1.5 MB, all of it escaped, has a sixth of this."""
AT_ONCE_BYTES_MAX = 64 * 1024
TEXT_LETTERS_MAX = 200
BUSY_ATTEMPTS_MAX = 5
BUSY_SECONDS_MAX = 10.0
RENEW_SECONDS_MIN = 10.0
"""How often at most a program is asked for other credentials because a server refused these."""

Pairs = Iterable[tuple[str, str]]

logger = logging.getLogger(__name__)


class _Connections(RESTClientObject):
    """The library's connections; requests are made by hand, for it would warn of large ones.

    A proxy that the environment names is looked up once: else each request would, in a thread, and
    read ~/.netrc in another, which kubectl does not read.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.client_session_kwargs = {"trust_env": False}
        super().__init__(configuration)
        self._to_proxy: dict[str, str] = {}
        if not configuration.proxy:
            with suppress(LookupError):
                proxy, login = get_env_proxy_for_url(URL(configuration.host))
                self.proxy = str(proxy)
                self._to_proxy = {"Proxy-Authorization": login.encode()} if login else {}

    def _create_connector(self) -> TCPConnector:
        """As the library's, but nothing is left of connections that end while a server hangs."""
        return TCPConnector(
            limit=0, ssl=self.ssl_context, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED
        )

    async def ask(
        self,
        method: str,
        url: str,
        headers: CIMultiDict[str],
        body: bytes | BytesIO | None,
        wait: ClientTimeout,
    ) -> ClientResponse:
        """Send a request; its answer's body is still to be read."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        if url.startswith("http:"):
            # Without a tunnel the request itself is what the proxy sees.
            headers.update(self._to_proxy)
        response: ClientResponse = await self.pool_manager.request(
            method,
            url,
            headers=headers,
            data=body,
            timeout=wait,
            proxy=self.proxy,
            proxy_headers=self._to_proxy,
            server_hostname=self.configuration.tls_server_name,
        )
        return response


@dataclass(slots=True)
class _Session:
    """Connections with one set of credentials, until others are read and no request uses them."""

    access: ClusterAccess
    rest: _Connections
    headers: tuple[tuple[str, str], ...]
    made_of: tuple[tuple[int, int, int], ...]
    since: float
    expires_ms: int
    users: int = 0
    refused: bool = False

    @property
    def by_program(self) -> bool:
        return "exec" in self.access.user

    async def close(self) -> None:
        """Give up its connections."""
        # Early Pythons 3.11 cannot abort a TLS connection that the server closed just before.
        with suppress(AttributeError):
            await self.rest.close()


class ApiClient:
    """Raises SpaceError, in the server's words where it has any, for all that goes wrong."""

    def __init__(self, source: Kubeconfig | InCluster, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._session: _Session | None = None
        self._renewing = asyncio.Lock()
        self._warned = ""
        self.doubts = 0
        """How often something came up after which another space may answer."""

    async def request(
        self,
        method: str,
        path: str,
        query: Pairs = (),
        *,
        body: object = None,
        content: str = JSON,
        accept: str = JSON,
    ) -> Any:
        """What the server answers, as JSON; waits and asks again while it is too busy."""
        target = with_query(path, query)
        for attempt in range(BUSY_ATTEMPTS_MAX):
            async with (
                self._used() as session,
                self._asked(session, method, target, body, content, accept) as response,
            ):
                code, after = response.status, response.headers.get("Retry-After", "")
                answer = await response.read()
            if code < 300:
                return _decoded(answer, session.access)
            if code == 401 and self._refuse(session) and attempt == 0:
                continue
            if code == 429 and attempt + 1 < BUSY_ATTEMPTS_MAX:
                seconds = float(after) if after.isdigit() else 1.0
                await self._clock.sleep(min(seconds, BUSY_SECONDS_MAX))
                continue
            raise _refused(code, answer, session)
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Pairs = (), *, accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[Mapping[str, Any]]]:
        """A watch's events as they come."""
        async with self._used() as session:
            wait = ClientTimeout(
                total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=IDLE_SECONDS_MAX
            )
            target = with_query(path, query)
            async with self._asked(session, "GET", target, None, JSON, accept, wait) as response:
                if response.status != 200:
                    if response.status == 401:
                        self._refuse(session)
                    raise _refused(response.status, await response.read(), session)
                yield self._events(session, response)

    def doubt(self) -> None:
        """Another space may answer: a connection broke, another way in was read, things went."""
        self.doubts += 1

    async def read_again(self) -> object:
        """Read what leads to the server if it changed: then this is another, and so is `doubts`."""
        return await self._current()

    async def close(self) -> None:
        """Give up all connections that nobody uses; the others end with their requests."""
        session, self._session = self._session, None
        if session and not session.users:
            await session.close()

    async def _events(
        self, session: _Session, response: ClientResponse
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        pending: list[bytes] = []
        size = 0
        with self._outages(session.access):
            async for chunk in response.content.iter_any():
                pending.append(chunk)
                size += len(chunk)
                if size > LINE_BYTES_MAX:
                    said = f"an event of more than {LINE_BYTES_MAX} bytes"
                    raise SpaceError(refusals.TOO_LARGE, said)
                if b"\n" in chunk:
                    *lines, rest = b"".join(pending).split(b"\n")
                    pending, size = [rest], len(rest)
                    for line in filter(None, lines):
                        yield _decoded(line, session.access)

    @asynccontextmanager
    async def _asked(
        self,
        session: _Session,
        method: str,
        target: str,
        body: object,
        content: str,
        accept: str,
        wait: ClientTimeout | None = None,
    ) -> AsyncIterator[ClientResponse]:
        said = CIMultiDict(session.headers)
        said["Accept"], said["Content-Type"] = accept, content
        wait = wait or ClientTimeout(total=REQUEST_SECONDS_MAX, sock_connect=CONNECT_SECONDS_MAX)
        with self._outages(session.access):
            url = session.access.server + target
            response = await session.rest.ask(method, url, said, _encoded(body), wait)
            try:
                yield response
            finally:
                # What was not read to its end ends its connection, at once: a server that stands
                # still takes no leave.
                if response.connection and response.connection.transport:
                    response.connection.transport.abort()
                response.close()

    @contextmanager
    def _outages(self, access: ClusterAccess) -> Iterator[None]:
        """Say what befell a connection, by address and with a remedy."""
        try:
            yield
        except ClientSSLError as error:
            self.doubt()
            remedy = "check certificate-authority and tls-server-name"
            raise _unavailable(access, _cause(error), remedy) from error
        except TimeoutError as error:
            self.doubt()
            remedy = "it may be overloaded, or the way to it is cut"
            raise _unavailable(access, "it does not answer in time", remedy) from error
        except (ClientError, OSError) as error:
            self.doubt()
            remedy = "check that it runs and its address"
            raise _unavailable(access, _cause(error), remedy) from error

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[_Session]:
        session = await self._current()
        session.users += 1
        try:
            yield session
        finally:
            session.users -= 1
            if session is not self._session and not session.users:
                await session.close()

    async def _current(self) -> _Session:
        """The session, made anew if what it was made of is not what it was."""
        if self._session and not self._outdated(self._session):
            return self._session
        async with self._renewing:
            held = self._session
            if held and not self._outdated(held):
                return held
            try:
                fresh = await self._made()
            except InvalidKubeconfig as error:
                # A file may be half written: what was read last holds until the server refuses it.
                if held is None or held.refused or self._expired(held):
                    raise
                if error.message != self._warned:
                    self._warned = error.message
                    logger.warning("%s", error)
                return held
            self._warned = ""
            self._session = fresh
            self.doubt()
        if held and not held.users:
            await held.close()
        return fresh

    async def _made(self) -> _Session:
        access = read_access(self._source)
        made_of = signature(access)
        by_program = ExecCredentials()
        if "exec" in access.user:
            by_program = await exec_credentials(access)
        return _Session(
            access,
            _rest(access, by_program),
            tuple(headers(access, by_program)),
            made_of,
            self._clock.now().seconds,
            by_program.expires_ms,
        )

    def _outdated(self, session: _Session) -> bool:
        if session.refused or self._expired(session):
            return True
        return signature(session.access) != session.made_of

    def _expired(self, session: _Session) -> bool:
        return 0 < session.expires_ms <= self._clock.now().wall_ms

    def _refuse(self, session: _Session) -> bool:
        """Note that the server does not take its credentials; whether others may be had."""
        age = self._clock.now().seconds - session.since
        if session is not self._session:
            return True
        if session.by_program and age >= RENEW_SECONDS_MIN:
            session.refused = True
        return self._outdated(session)


def _rest(access: ClusterAccess, by_program: ExecCredentials) -> _Connections:
    """The library's client, which reads the certificates as it is made."""
    cluster = access.cluster
    configuration = Configuration(host=access.server, connection_pool_maxsize=0)
    configuration.verify_ssl = not cluster.get("insecure-skip-tls-verify")
    # What kubectl takes is taken: authorities of clusters often lack a key identifier.
    configuration.disable_strict_ssl_verification = True
    configuration.tls_server_name = cluster.get("tls-server-name")
    configuration.proxy = cluster.get("proxy-url")
    with TemporaryDirectory(prefix="leafcast-") as folder:
        found = certificates(access, by_program, Path(folder))
        configuration.ssl_ca_cert = found.authority
        configuration.cert_file, configuration.key_file = found.certificate, found.key
        try:
            return _Connections(configuration)
        except OSError as error:  # ssl.SSLError is one
            said = f"{access.origin}: its certificates cannot be used: {error}"
            raise InvalidKubeconfig(f"{said}: write them in PEM, each with its key") from error


def _cause(error: BaseException) -> str:
    """What befell a connection, in the words of whoever noticed first."""
    for inner in (getattr(error, "certificate_error", None), getattr(error, "os_error", None)):
        if isinstance(inner, SSLCertVerificationError):
            return f"certificate verify failed: {inner.verify_message}"
        if isinstance(inner, OSError):
            known = os.strerror(inner.errno) if inner.errno and inner.errno > 0 else inner.strerror
            return known or "the connection was closed: it may speak no TLS"
    return str(error) or type(error).__name__


def _refused(code: int, answer: bytes, session: _Session) -> SpaceError:
    try:
        status = from_json(answer)
    except CodecError:
        status = None
    said = f"{session.access.server} answered with status {code}{_text(answer)}"
    if code == 404:
        said = "the server could not find the requested resource"
    error = refusals.refusal(code, status, said)
    if error.reason == refusals.UNAUTHORIZED:
        origin = session.access.origin
        said = f"{error.message}: the server does not know the user of {origin}: renew its token"
        return SpaceError(error.reason, said)
    return error


def _text(answer: bytes) -> str:
    """What an answer that is no Status says, if it is said to people."""
    line = answer[:TEXT_LETTERS_MAX].decode(errors="replace").strip().partition("\n")[0]
    return f": {line}" if line.isprintable() and line and line[0] not in "<{[" else ""


def _encoded(body: object) -> bytes | BytesIO | None:
    if body is None:
        return None
    said = to_json(body)
    # The library sends bytes faster, and warns of many.
    return said if len(said) <= AT_ONCE_BYTES_MAX else BytesIO(said)


def _decoded(answer: bytes, access: ClusterAccess) -> Any:
    try:
        return from_json(answer, ANSWER_BYTES_MAX)
    except CodecError as error:
        said = f"{access.server} does not speak JSON: check server: in {access.origin}"
        raise SpaceError("InternalError", said) from error


def _unavailable(access: ClusterAccess, said: str, remedy: str) -> SpaceError:
    message = f"the API server at {access.server} cannot be reached: {said}: {remedy}"
    return SpaceError(refusals.UNAVAILABLE, f"{message} ({access.origin})")
