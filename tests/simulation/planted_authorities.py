"""Faults planted in the change of the certificate authority: one for each rule of its decision."""

from __future__ import annotations

from collections.abc import Callable

from leafcast.daemon.nodes.authority_steps import Lacking, Renew, Step, Tell
from leafcast.local.certificate_lists import END
from leafcast.local.credentials.authorities import Authorities
from tests.simulation.authorities import Decide, Steps, honest


def _deaf(heeds: Callable[[Step], bool]) -> Decide:
    """Waits for nobody after some steps."""

    def decide(found: Authorities, force: bool) -> Steps:
        steps = honest(found, force)
        lacking: Lacking | None = None
        while True:
            try:
                step = next(steps) if lacking is None else steps.send(lacking)
            except StopIteration as end:
                doing: tuple[str, Lacking] = end.value
                return doing
            lacking = yield step
            lacking = lacking if heeds(step) else {}

    return decide


def _of_both(step: Step) -> bool:
    return isinstance(step, Tell) and step.authorities.count(END) > 1


def new_one_alone(found: Authorities, force: bool) -> Steps:
    """All are told to believe the new authority alone, while servers show the former one."""
    steps = honest(found, force)
    lacking: Lacking | None = None
    while True:
        try:
            step = next(steps) if lacking is None else steps.send(lacking)
        except StopIteration as end:
            doing: tuple[str, Lacking] = end.value
            return doing
        if _of_both(step):
            step = Tell(found.coming)
        lacking = yield step


PLANTED: dict[str, Decide] = {
    "the new one signs before all believe it": _deaf(lambda step: not _of_both(step)),
    "the former one is left while servers show it": _deaf(lambda it: not isinstance(it, Renew)),
    "it ends while some believe the former one": _deaf(
        lambda step: not isinstance(step, Tell) or _of_both(step)
    ),
    "the new one is believed alone at once": new_one_alone,
}
