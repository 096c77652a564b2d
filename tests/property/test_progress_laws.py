"""Laws of watermarks: what is not answered holds them up, and nothing lets them fall."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.link.progress import Answers, Watermark

causes = st.integers(1, 20)


@given(st.lists(st.tuples(causes, st.none() | st.integers(0, 40)), max_size=40))
def test_the_first_open_cause_is_the_lowest_of_all_that_is_not_answered(written):
    answers, expected, through = Answers(), [], 0
    for sequence, (cause, answered) in enumerate(written, 1):
        answers.expect(sequence, cause)
        expected.append((sequence, cause))
        if answered is not None:
            through = max(through, min(answered, sequence))
            answers.answered(through)
        open_now = [cause for sequence, cause in expected if sequence > through]
        assert answers.first_cause() == min(open_now, default=None)


@given(st.lists(st.tuples(st.integers(0, 20), st.lists(causes, max_size=4)), max_size=20))
def test_a_watermark_passes_nothing_open_and_never_falls(steps):
    watermark, before, judged = Watermark(), 0, 0
    for more, open_causes in steps:
        judged += more
        through = watermark.advance("inc", judged, open_causes)
        assert before <= through <= judged
        assert through == before or all(cause > through for cause in open_causes)
        assert open_causes or through == judged
        before = through


@given(st.integers(1, 20), st.integers(0, 20))
def test_a_watermark_begins_anew_with_another_run_of_the_parent(before, after):
    watermark = Watermark()
    watermark.advance("one", before, ())
    assert watermark.advance("two", after, ()) == after
