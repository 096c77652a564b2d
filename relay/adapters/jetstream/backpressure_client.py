"""Requests that nobody took are made again for a while: a server that reloads takes none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from nats.aio.client import Client, ServerVersion
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js import JetStreamContext

from relay.adapters.jetstream.server_floor import floor_text

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.1
READ_SECONDS = (2.0, 4.0)
"""For so long a read in a cluster is waited for before it is asked again, and then its own time.

Nobody answers what was asked before the servers agreed on a leader, nor for a consumer that was to
be at a server that is frozen.
"""
_READS = (".API.STREAM.INFO.", ".API.STREAM.MSG.GET.", ".API.CONSUMER.CREATE.")
"""What leaves nothing; a consumer that nobody heard of goes by itself."""


async def patiently(ask: Callable[[], Awaitable[T]], seconds: float = PATIENCE_SECONDS) -> T:
    """Ask until someone takes the request; raises NoRespondersError if no one does in time."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            return await ask()
        except NoRespondersError:
            if asyncio.get_running_loop().time() >= until:
                raise
        await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - no decision hangs on it


class _PatientClient:
    """A client whose requests wait out the moments in which no one listens.

    Asking again is safe: that there are no responders says that nobody took the request; and what
    reads `in_cluster` is asked again where it is not answered, too.
    """

    def __init__(self, client: Client, *, in_cluster: bool) -> None:
        self._client, self._in_cluster = client, in_cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @property
    def connected_server_version(self) -> ServerVersion:
        """What the library compares before it makes a consumer.

        Of a server built by hand it would end with ValueError: that is taken for a new one.
        """
        version = self._client.connected_server_version
        try:
            version.parse_version()
        except ValueError:
            return ServerVersion(floor_text())
        return version

    async def request(self, subject: str, *arguments: Any, **named: Any) -> Msg:
        async def ask(**more: Any) -> Msg:
            request = partial(self._client.request, subject, *arguments, **{**named, **more})
            return await patiently(request)

        is_read = self._in_cluster and any(word in subject for word in _READS)
        for seconds in READ_SECONDS if is_read else ():
            with suppress(TimeoutError):
                return await ask(timeout=seconds)
        return await ask()


def patient_jetstream(
    client: Client, domain: str = "", *, in_cluster: bool = False
) -> JetStreamContext:
    """JetStream on a connection, for one who would rather wait than be told to come again."""
    patient = cast("Client", _PatientClient(client, in_cluster=in_cluster))
    if domain:
        return JetStreamContext(patient, domain=domain)
    return JetStreamContext(patient)


async def close(client: Client) -> None:
    """Close a connection; raises nothing if its server is lost just now.

    nats-py would still send what it held back, fail at that, and leave the rest undone; so it does
    if it is cancelled as it closes.
    """
    try:
        await client.close()
    except OSError:
        client._pending, client._pending_data_size = [], 0  # noqa: SLF001
        client._status = Client.DISCONNECTED  # noqa: SLF001
        await client.close()
    finally:
        if client._transport is not None:  # noqa: SLF001
            client._transport.close()  # type: ignore[no-untyped-call] # noqa: SLF001
