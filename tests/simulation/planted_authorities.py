"""Faults planted in the change of the certificate authority: one for each rule of its decision."""

from __future__ import annotations

from collections.abc import Callable

from leafcast.daemon.nodes.authority_steps import (
    AuthorityStep,
    DistributeAuthorities,
    Lacking,
    RenewCertificates,
)
from leafcast.node.certificate_lists import END
from leafcast.node.credentials.authorities import Authorities
from tests.simulation.authorities import Decide, Steps, honest


def _always(_step: AuthorityStep) -> bool:
    return True


def _as_it_is(_found: Authorities, step: AuthorityStep) -> AuthorityStep:
    return step


def _altered(
    heeds: Callable[[AuthorityStep], bool] = _always,
    alter: Callable[[Authorities, AuthorityStep], AuthorityStep] = _as_it_is,
) -> Decide:
    """The steps in another form, and whom some of them lack not waited for."""

    def decide(found: Authorities, force: bool) -> Steps:
        steps = honest(found, force)
        lacking: Lacking | None = None
        while True:
            try:
                step = next(steps) if lacking is None else steps.send(lacking)
            except StopIteration as end:
                doing: tuple[str, Lacking] = end.value
                return doing
            lacking = yield alter(found, step)
            lacking = lacking if heeds(step) else {}

    return decide


def _of_both(step: AuthorityStep) -> bool:
    return isinstance(step, DistributeAuthorities) and step.authorities.count(END) > 1


def _new_one_alone(found: Authorities, step: AuthorityStep) -> AuthorityStep:
    """All are told to believe the new authority alone, while servers show the former one."""
    return DistributeAuthorities(found.coming) if _of_both(step) else step


PLANTED: dict[str, Decide] = {
    "the new one signs before all believe it": _altered(lambda step: not _of_both(step)),
    "the former one is left while servers show it": _altered(
        lambda it: not isinstance(it, RenewCertificates)
    ),
    "it ends while some believe the former one": _altered(
        lambda step: not isinstance(step, DistributeAuthorities) or _of_both(step)
    ),
    "the new one is believed alone at once": _altered(alter=_new_one_alone),
}
