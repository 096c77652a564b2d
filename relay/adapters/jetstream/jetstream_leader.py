"""In a cluster JetStream, and each stream, answers once its servers have agreed on a leader."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from relay.adapters.jetstream.connection import NO_STREAM, Connection, JetStreamRefused
from relay.ports import BusBroken, Clock

LED_SECONDS, LOOK_SECONDS, SOON_SECONDS = 30.0, 0.1, 0.4
PATIENT_SECONDS, PATIENT_LOOKS = 1.5, 4


def answer_seconds(unanswered: int, soon: float) -> float:
    """How long to wait for a leader's answer after so many looks that had none.

    An election takes 4 to 9 s, and what is asked before it, or of one that ends, is answered never.
    So it is asked again `soon`, but for the last of PATIENT_LOOKS: a busy server may take longer.
    """
    return PATIENT_SECONDS if unanswered % PATIENT_LOOKS == PATIENT_LOOKS - 1 else soon


async def until_led(connection: Connection, clock: Clock, streams: Iterable[str] = ()) -> None:
    """Wait until JetStream answers, or each of these streams that is there.

    Raises BusBroken if not in time.
    """
    until = clock.now().seconds + LED_SECONDS
    for verb in [f"STREAM.INFO.{stream}" for stream in streams] or ["INFO"]:
        for unanswered in count():
            try:
                await connection.api_once(verb, answer_seconds(unanswered, SOON_SECONDS))
            except BusBroken as error:
                if isinstance(error, JetStreamRefused) and error.code == NO_STREAM:
                    break
                if clock.now().seconds > until:
                    raise BusBroken(
                        f"fewer than two members of this node reach each other ({error}): start "
                        "those that are down, and see that their routes are open and that there is "
                        "room on their disks"
                    ) from error
                await clock.sleep(LOOK_SECONDS)
            else:
                break
