"""The conformance vectors: our own program makes of each just what its file says."""

import json

import pytest

from tests.conformance.generate import (
    FOLDER,
    SUITES,
    answer_of,
    cases_of,
    path_of,
    text_of,
)

LISTED = [
    pytest.param(suite, case, id=f"{suite}: {case['name']}")
    for suite in SUITES
    for case in json.loads(path_of(suite).read_text())["cases"]
]
STATED = [
    pytest.param(suite, case, id=f"{suite}: {case.name}")
    for suite in SUITES
    for case in cases_of(suite)
]


@pytest.mark.parametrize(("suite", "case"), LISTED)
def test_what_goes_in_comes_out_as_the_file_says(suite, case):
    given = json.loads(path_of(suite).read_text())["given"]
    assert answer_of(suite)({**given, **case["in"]}) == case["out"]


@pytest.mark.parametrize(("suite", "case"), STATED)
def test_what_is_stated_by_hand_is_in_the_file(suite, case):
    out = next(
        each["out"]
        for each in json.loads(path_of(suite).read_text())["cases"]
        if each["name"] == case.name
    )
    assert {name: out[name] for name in case.expected} == case.expected


@pytest.mark.parametrize("suite", SUITES)
def test_the_file_is_what_is_generated(suite):
    remedy = "run: python -m tests.conformance.generate"
    assert path_of(suite).read_text() == text_of(suite), remedy


@pytest.mark.parametrize("suite", SUITES)
def test_each_case_has_a_name_of_its_own(suite):
    names = [case.name for case in cases_of(suite)]
    assert len(names) == len(set(names))


def test_each_file_has_a_generator_and_a_line_in_the_readme():
    files = {path.stem for path in FOLDER.glob("*.json")}
    assert files == set(SUITES)
    readme = (FOLDER / "README.md").read_text()
    assert [suite for suite in SUITES if f"`{suite}.json`" not in readme] == []
