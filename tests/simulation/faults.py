"""What goes wrong in a simulated tree, how often and for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random


@dataclass(frozen=True, slots=True)
class Faults:
    """Times in virtual seconds; `…_every` is the mean time between two faults, 0 is never.

    `loss` and `duplicate` are chances per message; only what no stream keeps is lost. `slow` is
    what an event costs the one slow node; `liar` makes one relay forge, alter, replay, redirect and
    withhold. `one_way` is the share of partitions that lose only what goes up, or down;
    `skew_seconds` is by how much wall clocks are off, and jump. `report_loss` is the chance that a
    report that the child knows to be stored is not there for its parent. `restore_every` is between
    two looks at some node's disk: it is copied, or put back as it was copied before. `moving` is
    how much of what users do is to move an edge to another parent. `keys_every` is between two
    changes of keys, in which the centre may crash.
    """

    delay_mean: float = 0.02
    loss: float = 0.0
    duplicate: float = 0.0
    partition_every: float = 0.0
    partition_lasts: float = 10.0
    crash_every: float = 0.0
    crash_lasts: float = 5.0
    disk_loss: float = 0.0
    server_stops: float = 0.0
    slow: float = 0.0
    drift_every: float = 0.0
    refusal: float = 0.0
    liar: bool = False
    one_way: float = 0.0
    skew_seconds: float = 0.0
    moving: float = 0.0
    report_loss: float = 0.0
    restore_every: float = 0.0
    keys_every: float = 0.0


NO_FAULTS = Faults()
MOVING = 0.3


def with_keys(faults: Faults, random: Random, *, brief: bool = False) -> Faults:
    """The same, with keys that change in one of eight; drawn apart, so that all else stays.

    In a long life they change seldom: nobody follows through more roots than a message leads to.
    """
    changing = random.random() < 1 / 8
    every = random.choice((0.3, 2.0) if brief else (10.0, 30.0))
    return replace(faults, keys_every=every if changing else 0.0)


def draw(random: Random) -> Faults:
    """A seed's own mixture: each fault is on or off, so that none hides behind another."""

    def some(chance: float, low: float, high: float) -> float:
        on, value = random.random() < chance, random.uniform(low, high)
        return value if on else 0.0

    return Faults(
        delay_mean=random.choice((0.001, 0.02, 0.2, 1.0)),
        loss=some(0.4, 0.05, 0.5),
        duplicate=some(0.4, 0.05, 0.5),
        partition_every=some(0.5, 10, 60),
        partition_lasts=random.choice((1.0, 10.0, 120.0)),
        crash_every=some(0.6, 5, 60),
        crash_lasts=random.choice((0.1, 5.0, 120.0)),
        disk_loss=some(0.4, 0.1, 0.6),
        server_stops=some(0.5, 0.1, 1.0),
        slow=some(0.3, 0.05, 0.5),
        drift_every=some(0.4, 10, 60),
        refusal=some(0.3, 0.1, 0.6),
        liar=random.random() < 0.25,
        report_loss=some(0.15, 0.05, 0.3),
        restore_every=some(0.15, 5, 30),
        moving=MOVING if random.random() < 0.5 else 0.0,
    )


def draw_uneven(random: Random) -> Faults:
    """The same with links that are cut one way only, and with wall clocks that are off."""
    even = draw(random)

    def some(chance: float, low: float, high: float) -> float:
        on, value = random.random() < chance, random.uniform(low, high)
        return value if on else 0.0

    return replace(even, one_way=some(0.5, 0.2, 1.0), skew_seconds=some(0.3, 1.0, 7200.0))


def draw_brief(random: Random) -> Faults:
    """The same for a tree that lives only for seconds: all is shorter."""

    def some(chance: float, low: float, high: float) -> float:
        on, value = random.random() < chance, random.uniform(low, high)
        return value if on else 0.0

    return Faults(
        delay_mean=random.choice((0.005, 0.05, 0.3)),
        loss=some(0.2, 0.1, 0.5),
        duplicate=some(0.2, 0.1, 0.5),
        partition_every=some(0.3, 0.5, 3.0),
        partition_lasts=random.choice((0.1, 1.0)),
        crash_every=some(0.4, 0.5, 3.0),
        crash_lasts=random.choice((0.01, 0.5)),
        disk_loss=some(0.4, 0.1, 0.6),
        server_stops=some(0.3, 0.1, 1.0),
        slow=some(0.15, 0.05, 0.3),
        drift_every=some(0.3, 0.5, 3.0),
        refusal=some(0.15, 0.1, 0.6),
        liar=random.random() < 0.3,
        one_way=some(0.5, 0.2, 1.0),
        skew_seconds=some(0.2, 1.0, 7200.0),
        moving=MOVING if random.random() < 0.4 else 0.0,
        report_loss=some(0.15, 0.05, 0.3),
        restore_every=some(0.15, 0.2, 1.0),
    )


def draw_rolling(random: Random) -> Faults:
    """The same without moves and relays that lie: those have sizes of their own.

    A count that comes through a relay that withholds a profile is of the profile before.
    """
    return replace(draw_brief(random), moving=0.0, liar=False)
