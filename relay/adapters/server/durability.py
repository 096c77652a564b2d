"""When a nats-server has on its disk what it acknowledged: at once, or every two minutes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from relay.adapters.server.store_key import StoreKey
from schemas.values.alike import most_alike
from schemas.values.faults import Fault, Faulty

SYNC_SECONDS = 120
"""How often a nats-server that is told nothing else has its disk write out what it was given."""


class Durability(StrEnum):
    """What a loss of power costs a node.

    PERIODIC: up to two minutes of what it acknowledged, which its parent has still. DISK: nothing.
    A centre has no parent, and is always as with DISK.
    """

    PERIODIC = "periodic"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How servers of ours keep what they store: encrypted with `key` if there is one."""

    key: StoreKey | None = None
    durability: Durability = Durability.PERIODIC


DEFAULT_STORE = StoreSettings()


def read_durability(text: object) -> Durability:
    """The durability that a text names; raises Faulty, which says what may be written."""
    words = [word.value for word in Durability]
    if isinstance(text, str) and text in words:
        return Durability(text)
    close = most_alike(str(text).lower(), words)
    remedy = f'did you mean "{close}"?' if close else f"write {' or '.join(words)}"
    raise Faulty(Fault("", f"{text!r} is no durability", remedy))
