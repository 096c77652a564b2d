"""Hypothesis writes lives of its own over the same world, and shrinks those that break a law."""

import re

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tests.simulation import planted
from tests.simulation.laws import CONVERGENCE
from tests.simulation.ports import HONEST
from tests.simulation.scripts import CHANGES, FAULTS, PASSING, Step, live
from tests.simulation.sizes import SMALL, TINY

CALM = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink, Phase.explain],
)
steps = st.one_of(
    st.sampled_from(CHANGES).map(Step),
    st.sampled_from(PASSING).map(Step),
    st.builds(Step, st.sampled_from(FAULTS), st.integers(0, 5)),
)
scripts = st.lists(steps, max_size=10).map(tuple)


def judge(size, shape, script, ports=HONEST):
    life = live(size, shape, script, ports=ports)
    if life.law:
        note("\n".join(live(size, shape, script, story=True, ports=ports).told))
    assert not life.law, life.what


@settings(CALM, max_examples=60)
@given(st.sampled_from((TINY, SMALL)), st.integers(0, 15), scripts)
def test_no_life_breaks_a_law(size, shape, script):
    judge(size, shape, script)


def test_a_planted_fault_is_shrunk_to_few_steps_and_told_in_words():
    # Without looking for the lines at fault, which takes longer than all else.
    @settings(CALM, max_examples=200, phases=[Phase.generate, Phase.shrink])
    @given(st.integers(0, 15), st.lists(steps, min_size=2, max_size=4).map(tuple))
    def holds(shape, script):
        judge(SMALL, shape, script, planted.PruneNever())

    with pytest.raises(AssertionError, match=CONVERGENCE) as broken:
        holds()
    told = "\n".join(broken.value.__notes__)
    print(told)
    assert 1 <= told.count("Step(") <= 3, told
    # What happened, each step with its time, and the end of the story.
    assert re.search(r"^\d+\.\d\d s: \w+", told, re.MULTILINE), told
    assert re.search(r"^ +\d+\.\d+ /", told, re.MULTILINE), told
