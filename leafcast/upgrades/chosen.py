"""What the tree wants of a node: the release in force, the wave that admits it, its window."""

from __future__ import annotations

from leafcast.upgrades.release_folder import wanted_by
from leafcast.upgrades.standing import Choice
from relay.core.release_waves import may_begin
from relay.core.view import NodeView
from relay.ports import Clock
from relay.shell.driver import Driver
from schemas.records.release_body import ReleaseWave

LOOK_SELDOM_SECONDS = 60.0

Generations = tuple[int, int]
"""Of the release and of the own profile."""


class ChosenHere:
    """The choice of a node; a relay, which looks at all below it for that, looks seldom."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Which wave admits this node, as it was looked up last, and for what.
        self._wave: ReleaseWave | None = None
        self._looked: Generations = (0, 0)
        self._look_at = 0.0

    def of(self, driver: Driver) -> Choice | None:
        """What the tree wants of it now; None if nothing."""
        node, now = driver.node, self._clock.now()
        record = node.release
        if generations(node) != self._looked or now.seconds >= self._look_at:
            self._looked, self._look_at = generations(node), now.seconds + LOOK_SELDOM_SECONDS
            self._wave = node.release_wave()
        wave = self._wave
        if record is None or wave is None:
            return None
        begins = may_begin(wave, node.profile, now.wall_ms)
        return Choice(wanted_by(record.release), wave.number, may_begin=begins)


def generations(node: NodeView) -> Generations:
    """What changes when the tree may want something else of a node."""
    record, profile = node.release, node.profile
    return (record.generation if record else 0, profile.generation if profile else 0)
