"""Requests that nobody took are made again for a while: a server that reloads takes none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.js import JetStreamContext

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.1


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

    Asking again is safe: that there are no responders says that nobody took the request.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def request(self, *arguments: Any, **named: Any) -> Msg:
        return await patiently(lambda: self._client.request(*arguments, **named))


def patient_jetstream(client: Client, domain: str = "") -> JetStreamContext:
    """JetStream on a connection, for one who would rather wait than be told to come again."""
    patient = cast("Client", _PatientClient(client))
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
