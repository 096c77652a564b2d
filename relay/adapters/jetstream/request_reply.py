"""Questions and answers on subjects of one account: bytes in, bytes out, each within a time.

A question is one message; an answer may be more than one holds, and comes in several then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from relay.adapters.asking import CannotConnect as CannotConnect
from relay.adapters.asking import QuestionUnanswered as QuestionUnanswered
from relay.adapters.jetstream.backpressure_client import PATIENCE_SECONDS, close, patiently
from relay.adapters.jetstream.server_url import connect_options

CONNECT_SECONDS = 5
ANSWERS_AT_ONCE = 64
PIECE_BYTES = 512 * 1024
_PIECES, _STATUS, _NO_RESPONDERS = "Lc-Pieces", "Status", "503"

Replier = Callable[[str, bytes], Awaitable[bytes | None]]
"""From the subject and what was asked to what is answered; None: another one answers."""


@asynccontextmanager
async def brief_connection(url: str, seed: str, name: str) -> AsyncIterator[Client]:
    """A client that gives up at once if the server is not there; raises CannotConnect."""
    client = Client()

    async def note(_error: Exception) -> None:
        """Errors are raised to whoever asks."""

    # Whoever is cancelled while it connects leaves no socket behind, either.
    try:
        try:
            # Left alone, the library knocks for two minutes where nobody listens.
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.connect(
                    **connect_options(url),
                    nkeys_seed_str=seed,
                    name=name,
                    allow_reconnect=False,
                    connect_timeout=CONNECT_SECONDS,
                    error_cb=note,
                )
        except (NatsError, OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            late = isinstance(error, TimeoutError)
            raise CannotConnect(url, "no answer in time" if late else reason) from error
        yield client
    finally:
        await close(client)


async def ask(client: Client, subject: str, question: bytes, seconds: float) -> bytes:
    """Ask and wait for the answer; raises Unanswered.

    That nobody listens is believed only after a while: a server that reloads has none for moments.
    """

    async def whole() -> bytes:
        return b"".join([piece async for piece in _pieces(client, subject, question)])

    try:
        async with asyncio.timeout(seconds):
            return await patiently(whole, min(seconds, PATIENCE_SECONDS))
    except NoRespondersError as error:
        raise QuestionUnanswered(subject, nobody=True, seconds=seconds) from error
    except (NatsError, OSError, TimeoutError) as error:
        raise QuestionUnanswered(subject, nobody=False, seconds=seconds) from error


async def _pieces(client: Client, subject: str, question: bytes) -> AsyncIterator[bytes]:
    """The messages of an answer, in order: one connection sends them to one inbox."""
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox)
    try:
        await client.publish(subject, question, reply=inbox)
        message = await subscription.next_msg(timeout=None)
        headers = message.headers or {}
        if headers.get(_STATUS) == _NO_RESPONDERS:
            raise NoRespondersError
        yield message.data
        for _ in range(int(headers.get(_PIECES, "1")) - 1):
            yield (await subscription.next_msg(timeout=None)).data
    finally:
        with suppress(NatsError):
            await subscription.unsubscribe()


async def serve(client: Client, pattern: str, answer: Replier, answers: str) -> None:
    """Answer what is asked on the subjects, several at once, until cancelled.

    Answers go only to subjects that begin with `answers`: who asks names one, and may have fewer
    rights than who answers.
    """
    limit = asyncio.Semaphore(ANSWERS_AT_ONCE)

    async def respond(message: Msg) -> None:
        try:
            # Who asked over a connection that is lost asks again.
            with suppress(NatsError):
                said = await answer(message.subject, message.data)
                if said is not None:
                    await _respond(client, message, said)
        finally:
            limit.release()

    subscription = await client.subscribe(pattern)
    try:
        async with asyncio.TaskGroup() as group:
            async for message in subscription.messages:
                if not message.reply.startswith(answers):
                    continue
                await limit.acquire()
                group.create_task(respond(message))
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()


async def _respond(client: Client, message: Msg, answer: bytes) -> None:
    starts = range(0, max(len(answer), 1), PIECE_BYTES)
    headers = {_PIECES: str(len(starts))} if len(starts) > 1 else None
    for at in starts:
        await client.publish(message.reply, answer[at : at + PIECE_BYTES], headers=headers)
