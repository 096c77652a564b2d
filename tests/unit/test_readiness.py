"""Ready, Reconciling and Stalled: what tools that wait for a placement are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from controllers.core.conditions import READY, RECONCILING, STALLED
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.status import placement_status
from controllers.core.workloads.missing_references import Lack
from schemas.api.placement_details import Hold
from schemas.api.readiness import Readiness
from schemas.records.hold_reasons import MOVING
from schemas.records.shares import at_most
from schemas.reports.reports import Count, ExceptionSample, Summary
from schemas.reports.states import AT_WORK, NEVER_JOINED, NOT_WORKING
from schemas.values.faults import Fault

NOW_MS = 1_800_000_000_000
REFUSED = ExceptionSample(0, "configmaps/shop/a", "Forbidden: no right to create it", 1, "/r/s-1")
ANSWERS_NOT = ExceptionSample(0, "configmaps/shop/a", "Timeout: no answer within 30 s", 1, "/r/s-1")


def standing(states=None, health=None, *, exact=True, samples=(), **facts):
    """What is said of a placement: Ready's status and reason, what else is true, the message."""
    summary = Summary(states or {}, health or {}, exceptions=samples)
    facts = PlacementFacts(**{"generation": 2, "locations": 1, "selected": 3} | facts)
    said = placement_status(facts, Count(summary, exact), None, NOW_MS)
    conditions = {item["type"]: item for item in said["conditions"]}
    ready = conditions[READY]
    others = [name for name in (RECONCILING, STALLED) if name in conditions]
    assert all(conditions[name]["status"] == "True" for name in others)
    assert all(conditions[name]["reason"] == ready["reason"] for name in others)
    return ready["status"], ready["reason"], *others, ready["message"]


def away(count, of, **facts):
    good = of - count
    states = {"synced": good, "unreachable": count}
    return standing(states, {"healthy": good, "unknown": count}, **facts)


def test_it_is_ready_once_all_have_it_and_it_works_there():
    said = standing({"synced": 2000}, {"healthy": 2000})
    assert said == ("True", "Available", "2000 of 2000 destinations are synced and healthy")


@pytest.mark.parametrize(
    ("count", "of", "limit", "ready"),
    [
        (200, 2000, "10%", True),
        (201, 2000, "10%", False),
        # Rounded down.
        (1, 9, "10%", False),
        (1, 10, "10%", True),
        (1, 9, 1, True),
        (2, 9, 1, False),
        (0, 1, 0, True),
        (1, 1000, "0%", False),
        (1, 1000, "0.1%", True),
    ],
)
def test_as_many_may_be_away_as_its_spec_allows(count, of, limit, ready):
    status, reason, *others, message = away(count, of, readiness=Readiness(max_unavailable=limit))
    assert (status, reason) == (("True", "Available") if ready else ("False", "Unreachable"))
    assert others == ([] if ready else [RECONCILING])
    assert f"{of - count} of {of} destination" in message
    assert (
        not count or f"{count} cannot be reached, and {at_most(limit, of)} may be away" in message
    )


def test_who_is_away_is_named_within_a_bound():
    places = tuple(f"/region-{n} ({n})" for n in range(1, 9))
    *_, message = away(36, 2000, away=places)
    assert message.endswith(
        "may be away: /region-1 (1), /region-2 (2), /region-3 (3), /region-4 (4) and 4 more"
    )


def test_it_is_not_ready_while_nobody_can_be_reached_whatever_may_be_away():
    for limit in ("100%", 5):
        assert away(2, 2, readiness=Readiness(max_unavailable=limit))[:3] == (
            "False",
            "Unreachable",
            RECONCILING,
        )


def test_of_those_that_can_be_reached_none_may_lack_it():
    said = standing({"synced": 1998, "pending": 1, "unreachable": 1}, {"healthy": 1998})
    assert said[:3] == ("False", "Pending", RECONCILING)
    said = standing({"synced": 1999, "unreachable": 1}, {"healthy": 1998, "progressing": 1})
    assert said[:3] == ("False", "Progressing", RECONCILING)


def test_what_does_not_work_may_work_later():
    worst = ExceptionSample(NOT_WORKING, "deployments.apps/shop/web", "CrashLoopBackOff", 1, "/r/s")
    said = standing({"synced": 2}, {"healthy": 1, "degraded": 1}, samples=(worst,))
    assert said[:3] == ("False", "Degraded", RECONCILING)
    assert "CrashLoopBackOff" in said[-1]


def test_what_an_edge_refuses_is_stalled_once_nothing_else_is_on_its_way():
    states = {"synced": 1, "failing": 1}
    assert standing(states, {"healthy": 1}, samples=(REFUSED,))[:3] == ("False", "Failing", STALLED)
    still = {**states, "pending": 1}
    assert standing(still, {"healthy": 1}, samples=(REFUSED,))[2] == RECONCILING


def test_an_api_server_that_does_not_answer_may_do_so_later():
    said = standing({"synced": 1, "failing": 1}, {"healthy": 1}, samples=(ANSWERS_NOT,))
    assert said[:3] == ("False", "Failing", RECONCILING)
    both = standing({"failing": 2}, samples=(ANSWERS_NOT, REFUSED))
    assert both[2] == STALLED


def test_counts_that_are_not_exact_say_nothing_of_readiness():
    said = standing({"synced": 2}, {"healthy": 2}, exact=False)
    assert said[:3] == ("Unknown", "Incomplete", RECONCILING)


def test_nothing_selected_is_not_ready_unless_that_is_allowed():
    assert standing()[:3] == ("False", "NoDestinations", RECONCILING)
    lack = Lack("NothingSelected", "no object is selected")
    assert standing({"synced": 2}, {"healthy": 2}, lack=lack, selected=0)[:3] == (
        "False",
        "NothingSelected",
        RECONCILING,
    )
    allowed = Readiness(allow_empty=True)
    assert standing(readiness=allowed)[:2] == ("True", "Empty")
    assert standing(readiness=allowed, lack=lack, selected=0)[:2] == ("True", "Empty")
    assert standing(readiness=allowed, exact=False)[0] == "Unknown"


def test_what_is_named_and_not_there_is_no_emptiness_that_may_be_allowed():
    lack = Lack("NamespaceNotFound", 'namespaces "shop" not found')
    said = standing(readiness=Readiness(allow_empty=True), lack=lack, selected=0)
    assert said[:3] == ("False", "NamespaceNotFound", RECONCILING)


def test_those_that_never_joined_are_named_and_not_waited_for():
    states = {"synced": 2, NEVER_JOINED: 3}
    said = standing(states, {"healthy": 2, NEVER_JOINED: 3})
    assert said[:2] == ("True", "Available")
    assert "3 never joined" in said[-1]
    alone = standing({NEVER_JOINED: 3}, {NEVER_JOINED: 3}, readiness=Readiness(allow_empty=True))
    assert alone[:3] == ("False", "NeverJoined", RECONCILING)


def test_what_is_invalid_is_stalled_and_a_policy_says_it_as_kubestellar_does():
    for is_policy, reason in ((False, "Invalid"), (True, "Unavailable")):
        facts = {"invalid": "spec.downsync: no", "is_policy": is_policy}
        said = standing({"synced": 2}, {"healthy": 2}, **facts)
        assert said == ("False", reason, STALLED, "spec.downsync: no")


def test_what_is_held_is_stalled_with_its_reason_and_the_next_command():
    hold = Hold(reason="RolloutPaused", message="paused by a person", remedy="leafcast rollout x")
    said = standing({"synced": 2}, {"healthy": 2}, holds=(hold,))
    assert said == (
        "False",
        "RolloutPaused",
        STALLED,
        "paused by a person; leafcast rollout x",
    )
    refused = Fault("apps/deployments/shop/web", "is too large", "make it smaller")
    assert standing({"synced": 2}, {"healthy": 2}, faults=(refused,))[:3] == (
        "False",
        "ObjectsRefused",
        STALLED,
    )


def test_what_ends_by_itself_is_not_stalled():
    said = standing({"synced": 2}, {"healthy": 2}, keeping=1)
    assert said[:3] == ("False", MOVING, RECONCILING)


@given(
    st.dictionaries(
        st.sampled_from(["synced", "pending", "waiting", "failing", "frozen", "leaving"]),
        st.integers(1, 3),
    ),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([(), (REFUSED,), (ANSWERS_NOT,)]),
)
def test_it_is_ready_or_goes_on_or_is_stalled_and_never_two_of_these(states, gone, exact, samples):
    states = {**states, "unreachable": gone} if gone else states
    health = {"healthy": states.get("synced", 0)}
    status, _, *others, _ = standing(states, health, exact=exact, samples=samples)
    assert len(others) == (status != "True")
    whole = states.keys() <= {"synced", "unreachable"} and "synced" in states
    assert (status == "True") == (exact and whole and 10 * gone <= sum(states.values()))


@pytest.mark.parametrize("wrong", ["101%", "-1%", "ten", "10", -1, 1.5, True, None, "1/3"])
def test_an_amount_that_is_none_is_refused(wrong):
    with pytest.raises(ValidationError):
        Readiness.model_validate({"maxUnavailable": wrong})


def test_a_sample_of_what_is_at_work_is_no_refusal():
    waits = ExceptionSample(AT_WORK, "deployments.apps/shop/web", "Waiting: for x", 1, "/r/s-1")
    assert standing({"failing": 1}, samples=(waits,))[2] == RECONCILING
