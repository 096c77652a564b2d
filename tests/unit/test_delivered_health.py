"""Only what is delivered in its present form makes a placement healthy at a destination."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.destination.claims import DesiredObject
from relay.core.destination.object_outcome import judge
from relay.core.events import ObjectObserved
from schemas.content.blobs import Reference
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey
from tests.unit.test_destination import NOW, Bench, X, Y, mail_key

KEY = ObjectKey("", "configmaps", "shop", "x")
WANTED, FORMER = "a" * 64, "b" * 64
HEALTH = ("healthy", "progressing", "degraded", "unknown")


def wanted(flags=0):
    return DesiredObject(KEY, Reference("object", WANTED, 10), 1, flags, ())


observed = st.builds(
    ObjectObserved,
    st.just(KEY),
    present=st.booleans(),
    address=st.sampled_from(["", WANTED, FORMER]),
    error=st.sampled_from(["", "Forbidden: no", "Conflict: another's"]),
    health=st.sampled_from(HEALTH),
    status=st.none(),
    waits=st.sampled_from(["", "another"]),
)


@given(
    st.none() | observed,
    st.none() | st.sampled_from([wanted(), wanted(CREATE_ONLY)]),
    st.sampled_from(["", "another"]),
)
def test_no_object_is_healthy_that_is_not_delivered_in_its_present_form(seen, want, winner):
    state, health, _ = judge(KEY, seen, want, winner, "/emea")
    assert health != "healthy" or state == "synced"


@pytest.mark.parametrize(
    ("address", "health", "error", "said"),
    [
        ("", "healthy", "Forbidden: no", ("failing", "unknown")),
        ("", "degraded", "Conflict: another's", ("failing", "unknown")),
        (FORMER, "healthy", "Invalid: no", ("failing", "unknown")),
        (FORMER, "degraded", "Invalid: no", ("failing", "degraded")),
        (FORMER, "healthy", "", ("pending", "progressing")),
        ("", "healthy", "", ("pending", "progressing")),
        (WANTED, "healthy", "Timeout: no answer", ("failing", "unknown")),
        (WANTED, "healthy", "", ("synced", "healthy")),
    ],
)
def test_what_lies_there_under_its_name_is_judged_only_if_it_is_ours(address, health, error, said):
    seen = ObjectObserved(KEY, True, address, error, health, None)
    assert judge(KEY, seen, wanted(), "", "/emea")[:2] == said


def health(bench, number=0):
    (said,) = bench.edge.summary(mail_key(number + 1), NOW).health
    return said


def test_a_foreign_object_makes_no_placement_healthy_and_one_to_create_only_does_once_made():
    bench = Bench()
    bench.put(0, names="xy")
    bench.see(X)
    bench.edge.observe(ObjectObserved(Y.key, True, "", "Conflict: not ours", "healthy", None))
    assert (bench.state(0), health(bench)) == ("failing", "unknown")
    bench.see(Y)
    assert (bench.state(0), health(bench)) == ("synced", "healthy")


def test_an_object_that_another_placement_won_is_not_healthy_for_the_one_that_lost():
    bench = Bench()
    bench.put(0, names="x")
    bench.see(X)
    assert health(bench) == "healthy"
    bench.put(1, names="x")
    healths = {bench.state(number): health(bench, number) for number in (0, 1)}
    assert healths.get("synced", "healthy") == "healthy"
    assert healths.get("failing", "unknown") == "unknown"


def test_a_former_form_is_not_healthy_while_the_present_one_is_still_to_come():
    bench = Bench()
    bench.put(0)
    (first,) = bench.edge.wanted.values()
    bench.edge.observe(ObjectObserved(first.key, True, first.address, "", "healthy", None))
    assert health(bench) == "healthy"
    bench.put(0, revision=2)
    assert (bench.state(0), health(bench)) == ("pending", "progressing")
