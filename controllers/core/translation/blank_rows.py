"""What blank rows of sealed objects are made of: evaluated at the centre, for relays cannot.

That takes time, so it is bounded for each placement, and done in small steps before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from relay.shell.evaluator import CelEvaluator
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Blanks, Program

BLANK_STEPS_MAX = 25_000_000
"""All collectors of one placement share it, over all its objects: about 10 s at the centre."""
PROGRAMS_KNOWN = 256
"""So many are remembered of one object, and all that are asked for."""

Asked = Mapping[ObjectKey, tuple[Program, ...]]
BlanksOf = Callable[[ObjectKey, Program], tuple[Blanks, int]]
"""What blank rows of an object are made of, and how many steps it takes at most to say that."""


class BlankRows:
    """What is known already, by object."""

    def __init__(self) -> None:
        self._evaluator = CelEvaluator()
        self._known: dict[ObjectKey, tuple[Reference, dict[Program, tuple[Blanks, int]]]] = {}

    def of(
        self, key: ObjectKey, reference: Reference, plain: Callable[[], bytes], program: Program
    ) -> tuple[Blanks, int]:
        """What blank rows of an object are made of whose bytes lie there, and in how many steps."""
        at, said = self._known.get(key, (None, dict[Program, tuple[Blanks, int]]()))
        if at != reference:
            said = {}
            self._known[key] = (reference, said)
        found = said.get(program)
        if found is None:
            found = said[program] = self._evaluator.blanks_and_steps(program, plain())
        return found

    def keep_only(self, key: ObjectKey, programs: tuple[Program, ...]) -> None:
        """Forget what is asked of an object no more, if that is much."""
        _, said = self._known.get(key, (None, dict[Program, tuple[Blanks, int]]()))
        if len(said) > len(programs) + PROGRAMS_KNOWN:
            for program in said.keys() - {*programs}:
                del said[program]

    def forget(self, key: ObjectKey) -> None:
        self._known.pop(key, None)


def blanks_within(asked: Asked, blanks_of: BlanksOf) -> Iterator[tuple[ObjectKey, Program, Blanks]]:
    """What is said of each, as long as there is room; always the same of the same.

    Nothing is said of the rest: relays only count its blank rows.
    """
    room = BLANK_STEPS_MAX
    for key in sorted(asked):
        for program in asked[key]:
            said, steps = blanks_of(key, program)
            room -= steps
            if room < 0:
                return
            yield key, program, said
