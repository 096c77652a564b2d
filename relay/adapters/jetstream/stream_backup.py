"""A stream made of the server's own snapshot, with sequences and settings.

Releases before kept streams so in their backups; today their messages are kept.
"""

from __future__ import annotations

import asyncio
import json
from typing import IO, Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import NO_STREAM
from relay.ports import BusBroken

CHUNK_BYTES = 128 * 1024
ANSWER_SECONDS = 30.0

Form = dict[str, Any]


class BackupFailed(BusBroken):
    """A stream could not be made of a snapshot; says which, and why."""

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(f"stream {stream}: {reason}")


async def restore_stream(client: Client, stream: str, form: Form, source: IO[bytes]) -> None:
    """Make the stream of its snapshot, in the place of the one that is there; raises BackupFailed.

    `form` has the `config` and the `state` that the server told with the snapshot.
    """
    try:
        await _api(client, stream, "DELETE", {})
        answer = await _api(client, stream, "RESTORE", form)
        if answer is None:
            raise BackupFailed(stream, "the server does not take it")
        subject = answer["deliver_subject"]
        chunk = b"first"
        while chunk:
            # The last one is empty.
            chunk = source.read(CHUNK_BYTES)
            reply = await client.request(subject, chunk, timeout=ANSWER_SECONDS)
            if reply.data:
                _check(stream, json.loads(reply.data))
    except (NatsError, OSError, TimeoutError, ValueError) as error:
        raise BackupFailed(stream, str(error) or type(error).__name__) from error


async def _api(client: Client, stream: str, verb: str, asked: Form) -> Form | None:
    """The server's answer; None if there is no such stream."""
    async with asyncio.timeout(ANSWER_SECONDS):
        reply = await client.request(
            f"$JS.API.STREAM.{verb}.{stream}", json.dumps(asked).encode(), timeout=ANSWER_SECONDS
        )
    answer = json.loads(reply.data)
    if not isinstance(answer, dict):
        raise BackupFailed(stream, "the server's answer is none")
    if answer.get("error", {}).get("err_code") == NO_STREAM:
        return None
    _check(stream, answer)
    return answer


def _check(stream: str, answer: Form) -> None:
    if error := answer.get("error"):
        raise BackupFailed(stream, str(error.get("description", error)))
