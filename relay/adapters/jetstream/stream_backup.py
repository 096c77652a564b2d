"""A stream as one file: the server's own snapshot of it, with sequences and settings."""

from __future__ import annotations

import asyncio
import json
from typing import IO, Any

from nats.aio.client import Client
from nats.errors import Error as NatsError

from relay.ports import BusBroken

CHUNK_BYTES = 128 * 1024
ANSWER_SECONDS = 30.0
_NO_STREAM = 10059

Form = dict[str, Any]


class BackupFailed(BusBroken):
    """A stream could not be written to a file, or made of one; says which, and why."""

    def __init__(self, stream: str, reason: str) -> None:
        super().__init__(f"stream {stream}: {reason}")


async def backup_stream(client: Client, stream: str, into: IO[bytes]) -> Form | None:
    """Write the stream's snapshot; its `config` and `state`, or None if there is no such stream.

    Raises BackupFailed.
    """
    inbox = client.new_inbox()
    try:
        subscription = await client.subscribe(inbox)
        try:
            asked = {"deliver_subject": inbox, "no_consumers": True, "chunk_size": CHUNK_BYTES}
            answer = await _api(client, stream, "SNAPSHOT", asked)
            if answer is None:
                return None
            while True:
                message = await subscription.next_msg(ANSWER_SECONDS)
                if not message.data:
                    break
                into.write(message.data)
                if message.reply:
                    await client.publish(message.reply)
        finally:
            await subscription.unsubscribe()
    except (NatsError, OSError, TimeoutError) as error:
        raise BackupFailed(stream, str(error) or type(error).__name__) from error
    if (message.headers or {}).get("Status"):
        raise BackupFailed(stream, "the server broke its snapshot off")
    return {"config": answer["config"], "state": answer["state"]}


async def restore_stream(client: Client, stream: str, form: Form, source: IO[bytes]) -> None:
    """Make the stream of its snapshot, in the place of the one that is there; raises BackupFailed.

    `form` is what `backup_stream` returned.
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
    if answer.get("error", {}).get("err_code") == _NO_STREAM:
        return None
    _check(stream, answer)
    return answer


def _check(stream: str, answer: Form) -> None:
    if error := answer.get("error"):
        raise BackupFailed(stream, str(error.get("description", error)))
