"""What a node looks after by the clock alone: a fresh view, old tombstones, unused blobs."""

from __future__ import annotations

from relay.core.events import BlobArrived
from relay.core.freshness import Freshness
from relay.core.state import State
from relay.core.content.sweeping import Sweeper
from relay.core.tombstones import Tombstones


class Upkeep:
    """The regular work of one node; nothing waits for it."""

    def __init__(self, state: State) -> None:
        self.sweeper = Sweeper(state)
        self.freshness = Freshness(state)
        self.tombstones = Tombstones(state)
        self._state = state

    def deadline(self) -> float:
        fresh, old, due = (
            self.freshness.deadline(),
            self.tombstones.deadline(),
            self.sweeper.deadline(),
        )
        regular = min(old, fresh)
        return regular if due is None or due > regular else due

    def tick(self) -> None:
        self._state.bound_tombstones()
        self.freshness.tick()
        self.tombstones.tick()
        self.sweeper.tick()

    def arrived(self, event: BlobArrived) -> None:
        self.sweeper.arrived(event)
