"""Hypothesis writes lives of its own over the same world, and shrinks those that break a law."""

from hypothesis import HealthCheck, Phase, Verbosity, find, given, settings
from hypothesis import strategies as st

from tests.simulation import planted
from tests.simulation.mutants import Mutant, in_force
from tests.simulation.oracle import NO_IGNORANCE
from tests.simulation.scripts import CHANGES, FAULTS, PASSING, Step, live
from tests.simulation.sizes import SMALL, TINY

CALM = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)
steps = st.one_of(
    st.sampled_from(CHANGES).map(Step),
    st.sampled_from(PASSING).map(Step),
    st.builds(Step, st.sampled_from(FAULTS), st.integers(0, 5)),
)
scripts = st.lists(steps, max_size=10).map(tuple)


@settings(CALM, max_examples=60)
@given(st.sampled_from((TINY, SMALL)), st.integers(0, 15), scripts)
def test_no_life_breaks_a_law(size, shape, script):
    law, what = live(size, shape, script)
    assert not law, what


def test_a_planted_fault_is_explained_by_the_few_steps_that_it_takes():
    with in_force(Mutant(planted.prune_before_read, NO_IGNORANCE)):
        script = find(
            st.lists(steps, max_size=4).map(tuple),
            lambda script: live(SMALL, 1, script)[0] != "",
            settings=settings(CALM, max_examples=200, verbosity=Verbosity.quiet),
        )
    assert 1 <= len(script) <= 3, script
