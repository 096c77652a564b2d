"""Patterns of expressions: compiled once and small, and matched in steps that are counted."""

import re
import time

import pytest

from relay.core.collectors.ports import CopyView
from relay.objects.expressions import patterns
from relay.objects.expressions.cel import CompiledExpression, ExpressionValues
from relay.objects.expressions.patterns import (
    MATCH_STEPS_MAX,
    PATTERN_MAX_CHARACTERS,
    Matcher,
    PatternRefused,
    pattern_of,
)
from relay.objects.expressions.programs import program_faults
from relay.shell.evaluator import CelEvaluator
from schemas.reports.collectors import Expression, Program
from schemas.values import codec

DEAR = [
    r"(\pL{1,100}){1,40}b",
    r"(?i)\pL{1,1000}",
    r"(\pL|\pN){1,200}",
    r"[\pL\pN]{1,100}-[\pL\pN]{1,100}",
    "(((a{1,100}){1,100}){1,100})",
]


@pytest.mark.parametrize("text", DEAR)
def test_what_is_dear_to_compile_is_refused_and_that_is_remembered(text):
    for _ in range(2):
        with pytest.raises(PatternRefused, match="too large once it is compiled; repeat less"):
            pattern_of(text)
    before = patterns._compiled.cache_info().misses
    with pytest.raises(PatternRefused):
        pattern_of(text)
    assert patterns._compiled.cache_info().misses == before


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("^web-[0-9]+$", "web-12"),
        (r"\d{1,3}(\.\d{1,3}){3}", "at 10.0.0.1"),
        ("(?i)WEB", "web"),
        ("ü", "grün"),
        (".*:(v[0-9]+)(\\.[0-9]+){0,2}", "r.example/a/b:v1.2"),
    ],
)
def test_what_people_write_is_matched(text, found):
    assert pattern_of(text).is_in(found)
    assert not pattern_of(text).is_in("nothing")


def test_a_pattern_has_a_length():
    assert pattern_of("a" * PATTERN_MAX_CHARACTERS)
    with pytest.raises(PatternRefused, match="a pattern of 513 characters, at most 512"):
        pattern_of("a" * (PATTERN_MAX_CHARACTERS + 1))


def test_matches_of_one_object_share_a_budget_of_steps():
    matcher, size = Matcher(), pattern_of("a.c").size
    half = "b" * (MATCH_STEPS_MAX // size // 2)
    assert [matcher.matches(half, "a.c"), matcher.failure] == [False, ""]
    matcher.matches(half + half, "a.c")
    assert "too costly: matches() may take more than 2000000 steps" in matcher.failure
    matcher.begin()
    assert matcher.matches("abc", "a.c")
    assert not matcher.failure


def test_patterns_that_are_new_each_time_share_that_budget_too():
    """Whether one is known already makes no difference: what comes of an object is the same."""
    for _ in range(2):
        matcher = Matcher()
        for at in range(40):
            matcher.matches("", f"a{{1,900}}{at}")
        assert "too costly: matches()" in matcher.failure
    matcher = Matcher()
    matcher.matches("", DEAR[0])
    matcher.matches("", DEAR[1])
    assert "too costly: matches()" in matcher.failure, "one that is dear takes all there is"


def columns(count, definition):
    return tuple(Expression(f"c{at}", definition) for at in range(count))


def test_a_pattern_that_an_object_says_is_bounded_as_well():
    program = Program("p", select=columns(32, "obj.text.matches(obj.pattern)"))
    obj = {"kind": "A", "text": "a" * 200_000, "pattern": DEAR[0]}
    bound = CelEvaluator().bind(program, codec.canonical(obj))
    said = bound.outcome(CopyView("s1"))
    first, second = sorted({why.partition(";")[0] for _, why in said.failed})
    assert first == rf'the pattern "{DEAR[0]}" is too large once it is compiled'
    # What reading takes is off the same budget.
    assert re.fullmatch(r"too costly: matches\(\) may take more than [0-9]{6} steps", second)
    obj["pattern"] = "(a{1,30}){1,30}$"
    bound = CelEvaluator().bind(program, codec.canonical(obj))
    began = time.process_time()
    said = bound.outcome(CopyView("s1"))
    assert "too costly: matches()" in str(said.failed)
    # Without bounds each of the columns takes six seconds.
    assert time.process_time() - began < 2


def test_expressions_of_one_collector_share_their_budget():
    listed = ",".join(["1"] * 15)
    one = f"[{listed}].all(x, [{listed}].all(y, x == y))"
    assert not program_faults(Program("p", select=columns(1, one)))
    [fault] = program_faults(Program("p", select=columns(25, one)))
    assert fault.path == "spec"
    assert "too costly: 2 nested loops over up to 31 items" in fault.message
    assert "25 expressions together" in fault.message


def test_a_match_in_one_branch_fails_all_that_looks_at_it():
    values = ExpressionValues()
    values.put("obj", {"pattern": "("})
    expression = CompiledExpression("'a'.matches(obj.pattern) || true")
    with pytest.raises(ValueError, match="is none: missing"):
        expression.value(values)
