"""In a cluster JetStream, and each stream, answers once its servers have agreed on a leader."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from relay.adapters.jetstream.connection import NO_STREAM, Connection, JetStreamRefused
from relay.ports import BusBroken, Clock

LED_SECONDS, LOOK_SECONDS = 30.0, 0.1
SOON_SECONDS, PATIENT_SECONDS, PATIENT_LOOKS = 0.4, 1.5, 4
"""An election takes 4 to 9 s, and what is asked before it is answered never.

So it is asked again soon, but for the last of so many looks, as a busy server may take longer.
"""


async def until_led(connection: Connection, clock: Clock, streams: Iterable[str] = ()) -> None:
    """Wait until JetStream answers, or each of these streams that is there.

    Raises BusBroken if not in time.
    """
    until = clock.now().seconds + LED_SECONDS
    for verb in [f"STREAM.INFO.{stream}" for stream in streams] or ["INFO"]:
        for look in count(1):
            try:
                is_patient = look % PATIENT_LOOKS == 0
                seconds = PATIENT_SECONDS if is_patient else SOON_SECONDS
                await connection.api_once(verb, seconds)
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
