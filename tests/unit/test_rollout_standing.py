"""Ready, Reconciling and Stalled of a Rollout: what tools that wait for it are told."""

from typing import get_args

import pytest

from controllers.core.rollout.messages import conditions
from schemas.api.rollout_status import Phase, RolloutStatus

STANDS = {
    "Waiting": ("Reconciling", "Waiting"),
    "Progressing": ("Reconciling", "Progressing"),
    "Soaking": ("Reconciling", "Soaking"),
    "AwaitingApproval": ("Stalled", "AwaitingApproval"),
    "Paused": ("Stalled", "WaveFailed"),
    "Held": ("Stalled", "Held"),
    "Aborted": ("Stalled", "Aborted"),
    "Complete": ("", "Complete"),
    "Partial": ("", "Partial"),
}


@pytest.mark.parametrize("phase", get_args(Phase))
def test_in_each_phase_it_is_through_or_goes_on_or_waits_for_a_person(phase):
    state = RolloutStatus(revision=2, phase=phase, message="said", next="leafcast rollout x")
    said = {item.type: item for item in conditions(state)}
    other, reason = STANDS[phase]
    assert (said["Ready"].status, said["Ready"].reason) == ("False" if other else "True", reason)
    assert said["Ready"].message == "said; leafcast rollout x"
    assert {"Reconciling", "Stalled"} & said.keys() == ({other} if other else set())


def test_one_that_a_person_paused_did_not_fail():
    said = {item.type: item for item in conditions(RolloutStatus(phase="Paused", paused=True))}
    assert said["Stalled"].reason == "Paused"
