"""Whether anyone is matched is told in passing, and as by who counts them all."""

from hypothesis import given
from hypothesis import strategies as st

from controllers.core.rollout.estimates import matched, takes_any
from schemas.api.rollout_spec import Wave
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    LocationRecord,
    Profile,
    Source,
)
from schemas.values.identity import DestinationId, NodePath

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
REQUIREMENTS = st.builds(
    lambda key, values: Requirement(key, "In", tuple(sorted(values))),
    st.sampled_from("ab"),
    st.sets(st.sampled_from("xyz"), min_size=1, max_size=2),
) | st.builds(lambda key: Requirement(key, "DoesNotExist"), st.sampled_from("ab"))
SELECTORS = st.lists(REQUIREMENTS, max_size=2).map(lambda listed: LabelSelector(tuple(listed)))
SPACES = st.sampled_from(("one", "two"))
ALTERNATIVES = st.builds(
    Alternative,
    st.sampled_from((OVER_LOCATION, OVER_SYNC_TARGET)),
    SELECTORS,
    st.sampled_from(("", "one", "two")),
)


def profile(at, space, labels):
    source = Source("SyncTarget", space, "", f"t{at}")
    path = NodePath.parse(f"/r{at % 2}/s{at}")
    return Profile(source, 1, "", "", DestinationId(f"{at:032x}"), path, labels, {}, {})


def location(at, space, labels, selector):
    return LocationRecord(Source("Location", space, "", f"l{at}"), 1, "", "", labels, {}, selector)


@given(
    st.lists(st.tuples(SPACES, LABELS), max_size=5),
    st.lists(st.tuples(SPACES, LABELS, st.none() | SELECTORS), max_size=3),
    st.lists(ALTERNATIVES, max_size=3).map(tuple),
    st.none() | SELECTORS,
    st.booleans(),
)
def test_someone_is_matched_if_and_only_if_there_are_some(
    targets, locations, meant, selector, by_location
):
    records = [profile(at, *said) for at, said in enumerate(targets)]
    records += [location(at, *said) for at, said in enumerate(locations)]
    field = "location_selector" if by_location and selector is not None else "selector"
    wave = Wave(name="w", percent=100).model_copy(update={field: selector})
    known = {record.source.key: record for record in records}
    assert takes_any(records, meant, wave) == (matched(known, meant, wave) > 0)
