"""Whether others have something to do: told by what a round of them costs."""

from relay.waiting import IDLE_MAX_SECONDS, IDLE_SECONDS, SpareTime


class Rounds:
    """A processor of which each round takes the next of these times."""

    def __init__(self, *took) -> None:
        self.used, self.took = [], list(took)
        for began in range(len(took)):
            self.used += [float(began), began + took[began]]

    async def idle(self):
        spare_time = SpareTime(lambda: self.used.pop(0))
        return [await spare_time.round_of_others() for _ in self.took]


async def test_an_empty_round_is_told_from_one_in_which_others_worked():
    empty, busy = IDLE_SECONDS / 3, IDLE_SECONDS * 2
    assert await Rounds(empty, busy, empty, busy).idle() == [True, False, True, False]


async def test_on_a_slow_machine_too():
    empty, busy = IDLE_SECONDS * 2, IDLE_SECONDS * 5
    assert await Rounds(empty, busy, empty, busy).idle() == [True, False, True, False]


async def test_who_works_in_every_round_does_not_seem_idle():
    assert not any(await Rounds(*[IDLE_MAX_SECONDS * 2] * 5).idle())


async def test_who_waits_for_spare_time_waits_for_so_many_rounds_at_most():
    calls = iter([float(at) for at in range(100)])
    await SpareTime(lambda: next(calls)).wait(3)
    assert next(calls) == 6.0
