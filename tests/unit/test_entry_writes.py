"""A write without an answer is sent again, and what became of it is said where that is known."""

import asyncio

import nats.errors
import pytest
from nats.js.errors import NoStreamResponseError, ServiceUnavailableError

from relay.adapters.jetstream.connection import JetStreamRefused
from relay.adapters.jetstream.fence import Deposed, Unconfirmed
from relay.adapters.spaces.entry_writes import (
    AGAIN_SECONDS,
    NOTHING,
    UNKNOWN,
    answered_once,
    told_of,
    written_surely,
)
from relay.ports import BusBroken
from relay.space_errors import SpaceError

pytestmark = pytest.mark.leaps

LOST = Unconfirmed("KV: no stream has confirmed it in time")
NOBODY = BusBroken("KV: no stream takes it")
AMID_ELECTION = JetStreamRefused("KV", 10176, "atomic publish batch is incomplete")
FULL = JetStreamRefused("KV", 10077, "insufficient storage")


def saying(*answers):
    """What gives or raises these in turn, and the last one for ever."""
    left = list(answers)

    async def say():
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return say


@pytest.mark.parametrize("failures", [[NOBODY], [AMID_ELECTION], [LOST], [NOBODY, LOST, NOBODY]])
async def test_what_an_election_took_is_sent_again(failures):
    assert await written_surely(saying(*failures, 7), saying(AssertionError())) == 7


async def test_what_landed_without_an_answer_is_found():
    assert await written_surely(saying(LOST, None), saying(7)) == 7
    assert await written_surely(saying(LOST, None), saying(None)) is None


async def test_what_another_wrote_is_no_failure():
    assert await written_surely(saying(None), saying(AssertionError())) is None


async def test_what_may_be_on_its_way_is_waited_for():
    assert await written_surely(saying(LOST, None, None), saying(LOST, TimeoutError(), 9)) == 9


@pytest.mark.parametrize("error", [Deposed("KV"), FULL])
async def test_what_is_refused_is_certain_unless_something_went_out_before(error):
    with pytest.raises(type(error)):
        await written_surely(saying(error), saying(7))
    with pytest.raises(Unconfirmed, match=str(error)[:12]):
        await written_surely(saying(LOST, error), saying(7))


async def test_a_write_that_was_sent_before_another_member_was_active_names_both():
    with pytest.raises(SpaceError) as failure, told_of("workloads"):
        await written_surely(saying(LOST, Deposed("KV_a")), saying(7))
    assert failure.value.message.endswith(f"KV_a takes nothing more); {UNKNOWN}")


@pytest.mark.parametrize(("error", "raised"), [(NOBODY, BusBroken), (LOST, Unconfirmed)])
async def test_it_is_not_sent_for_ever(error, raised):
    now = asyncio.get_running_loop().time
    began = now()
    with pytest.raises(raised) as failure:
        await written_surely(saying(error), saying(LOST))
    assert type(failure.value) is raised
    assert AGAIN_SECONDS <= now() - began < AGAIN_SECONDS + 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (nats.errors.TimeoutError(), f"its server gave no answer in time); {NOTHING}"),
        (ServiceUnavailableError(), f"its server takes no requests); {NOTHING}"),
        (ServiceUnavailableError(503, description="no leader"), f"no leader); {NOTHING}"),
        (OSError(), f"its server takes no requests); {NOTHING}"),
        (Deposed("KV_a"), f"and KV_a takes nothing more); {NOTHING}"),
        (LOST, f"its server gave no answer in time); {UNKNOWN}"),
    ],
)
def test_no_name_of_an_error_is_told_to_a_person(error, said):
    with pytest.raises(SpaceError) as failure, told_of("workloads"):
        raise error
    assert failure.value.message.startswith("the space workloads is not served now (")
    assert failure.value.message.endswith(said)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (nats.errors.TimeoutError(), Unconfirmed),
        (nats.errors.ConnectionClosedError(), Unconfirmed),
        (ConnectionResetError(), Unconfirmed),
        (NoStreamResponseError(), NoStreamResponseError),
        (ServiceUnavailableError(), ServiceUnavailableError),
        (nats.errors.MaxPayloadError(), nats.errors.MaxPayloadError),
    ],
)
def test_what_nobody_answered_is_not_known(error, raised):
    with pytest.raises(raised), answered_once():
        raise error
