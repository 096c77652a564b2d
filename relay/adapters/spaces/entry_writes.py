"""What becomes of a write that nobody answered, and what is said where that cannot be known.

An election of a bucket's leader takes the answers to what is written just then. The same bytes are
sent again, by the same expected revision: whichever lands first, no other lands after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import nats.errors
from nats.js.errors import Error as JetStreamError

from relay.adapters.jetstream.connection import JetStreamRefused
from relay.adapters.jetstream.fence import Deposed, FencedPublisher, Unconfirmed
from relay.adapters.jetstream.publish import REPLACES, WRONG_SEQUENCES, Outgoing, header_lines
from relay.ports import BusBroken
from relay.space_errors import UNAVAILABLE, SpaceError

AGAIN_SECONDS = 20.0
"""For so long what was not answered is sent again: an election takes up to 17 s."""
ANSWER_SECONDS = 4.0
"""What was not answered by then is sent again."""
PAUSE_SECONDS = 0.25
NOTHING = "accepted: nothing"
UNKNOWN = "whether it was written is not known"
_PASSING = frozenset({10008, 10176, 10210})
"""Refused for what an election brings: nobody leads, the former leader had a part of the batch, or
too many batches are under way."""
_FAILURES = (nats.errors.Error, JetStreamError, BusBroken, TimeoutError, OSError)

EntryWrite = Callable[[], Awaitable[int | None]]


async def written_surely(put: EntryWrite, lies_at: EntryWrite) -> int | None:
    """What `put` gives once that is answered; raises as it does, Unconfirmed where nobody knows.

    `put` gives None where something else lies there. After one without an answer that may be the
    very same: `lies_at` gives its revision then, None if it is not, and raises Unconfirmed while
    nothing changed, as it may be on its way.
    """
    now = asyncio.get_running_loop().time
    until, is_unknown = now() + AGAIN_SECONDS, False
    while True:
        try:
            revision = await put()
            if revision is None and is_unknown:
                revision = await lies_at()
        except _FAILURES as error:
            is_unknown = is_unknown or isinstance(error, Unconfirmed)
            if not _passes(error) or now() >= until:
                if is_unknown:
                    raise Unconfirmed(str(error)) from error
                raise
        else:
            return revision
        await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - no decision hangs on it


async def put_fenced(fenced: FencedPublisher, guard: str, entry: Outgoing) -> int | None:
    """Where the entry lies now; None if another lies there.

    A message has one expectation: that of the fence goes with one before the entry.
    """
    before = Outgoing(guard, b"", header_lines(REPLACES))
    try:
        *_, sequence = await fenced.publish([before, entry], ANSWER_SECONDS)
    except JetStreamRefused as error:
        if error.code in WRONG_SEQUENCES:
            return None
        raise
    return sequence


def _passes(error: Exception) -> bool:
    """Whether the same may be taken in a moment."""
    if isinstance(error, JetStreamRefused):
        return error.code in _PASSING
    return not isinstance(error, Deposed)


@contextmanager
def answered_once() -> Iterator[None]:
    """Raise Unconfirmed where a write went out and was not answered: nobody sends it again."""
    try:
        yield
    except (JetStreamError, nats.errors.MaxPayloadError):
        raise  # An answer, that nobody took it, or that it did not go out.
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise Unconfirmed(_why(error)) from error


@contextmanager
def told_of(bucket: str) -> Iterator[None]:
    """Raise what befalls a bucket as SpaceError, which says what became of what was asked."""
    try:
        yield
    except nats.errors.MaxPayloadError as error:
        raise SpaceError("RequestEntityTooLarge", str(error)) from error
    except _FAILURES as error:
        became = UNKNOWN if isinstance(error, Unconfirmed) else NOTHING
        said = f"the space {bucket} is not served now ({_why(error)}); {became}"
        raise SpaceError(UNAVAILABLE, said) from error


def _why(error: Exception) -> str:
    """Why, without names of errors, which say nothing to a person."""
    is_refused = isinstance(error.__cause__, (Deposed, JetStreamRefused))
    if isinstance(error, TimeoutError) or (isinstance(error, Unconfirmed) and not is_refused):
        return "its server gave no answer in time"
    if isinstance(error, BusBroken) or (isinstance(error, OSError) and str(error)):
        return str(error)
    said = getattr(error, "description", None)
    return str(said) if said else "its server takes no requests"
