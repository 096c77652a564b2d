"""What goes wrong at the centre alone: blind spaces, a lost ledger, old backups, hasty people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.simulation.spaced_centre import SpacedCentre
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Blindness:
    """Times in virtual seconds; `…_every` is the mean time between two faults, 0 is never.

    `clock_back` is by how much the centre's clock is behind after its disk was lost.
    """

    blind_every: float = 0.0
    blind_lasts: float = 2.0
    restart_every: float = 0.0
    loss_every: float = 0.0
    backup_every: float = 0.0
    haste_every: float = 0.0
    clock_back: float = 0.0


def draw(random: Random) -> Blindness:
    """A seed's own mixture."""

    def some(chance: float, low: float, high: float) -> float:
        on, value = random.random() < chance, random.uniform(low, high)
        return value if on else 0.0

    return Blindness(
        blind_every=some(0.8, 1.0, 5.0),
        blind_lasts=random.choice((0.5, 2.0, 5.0)),
        restart_every=some(0.5, 1.0, 6.0),
        loss_every=some(0.3, 4.0, 10.0),
        backup_every=some(0.3, 2.0, 8.0),
        haste_every=some(0.2, 2.0, 8.0),
        clock_back=some(0.5, 10.0, 7200.0),
    )


class Misfortune:
    """Makes it happen to one centre, until it is stopped."""

    def __init__(self, world: World, centre: SpacedCentre, chosen: Blindness) -> None:
        self._world, self._centre, self._chosen = world, centre, chosen
        self._on = False

    def start(self) -> None:
        self._on = True
        chosen = self._chosen
        for every, fault in (
            (chosen.blind_every, self._blind),
            (chosen.restart_every, self._restart),
            (chosen.loss_every, self._lose),
            (chosen.backup_every, self._backup),
            (chosen.haste_every, self._hurry),
        ):
            if every:
                self._later(every, fault)

    def stop(self) -> None:
        """The spaces show all that they hold again."""
        self._on = False
        self._world.root.skew_ms = 0
        for space in (self._centre.workloads, self._centre.inventory):
            space.behave()

    def _later(self, mean: float, fault: Callable[[], None]) -> None:
        self._world.after(self._world.random.expovariate(1 / mean), self._happen, mean, fault)

    def _happen(self, mean: float, fault: Callable[[], None]) -> None:
        if self._on:
            fault()
            self._later(mean, fault)

    def _blind(self) -> None:
        centre = self._centre
        space = self._world.random.choice((centre.workloads, centre.workloads, centre.inventory))
        space.misbehave()
        self._world.note("space", f"{space.identity} shows {space.view}")
        self._world.after(self._chosen.blind_lasts, self._see, space)

    def _see(self, space: object) -> None:
        if self._on:
            space.behave()  # type: ignore[attr-defined]

    def _restart(self) -> None:
        self._world.note("centre", "controllers end")
        self._centre.end_run()

    def _lose(self) -> None:
        if self._centre.ready:
            self._world.note("centre", "loses its disk")
            self._world.root.skew_ms = -int(self._chosen.clock_back * 1000)
            self._centre.lose_disk()

    def _backup(self) -> None:
        """Copy the disk, or go back to the copy."""
        if not self._centre.ready or not self._centre.desk.sure:
            return
        if self._world.random.random() < 0.5:
            self._centre.back_up()
        else:
            self._world.note("centre", "goes back to a backup")
            self._centre.restore_backup(notes=False)

    def _hurry(self) -> None:
        """Someone lets go what is held without looking."""
        if self._centre.ready and self._centre.desk.here and self._centre.desk.sure:
            self._centre.accept_one()
