"""Each test that the threat model names is there, and what is not given away is tried."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "threat-model.md"
ROW = re.compile(r"^\| (?!---|it \||they \|)(.+?) \| ?(.*?) ?\|$", re.MULTILINE)


def rows():
    return ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_every_test_that_it_names_is_there():
    named = [(said, *test.strip("`").split("::")) for said, test in rows() if test]
    assert len(named) > 20
    missing = [
        f"{file}::{name}"
        for _, file, name in named
        if not re.search(rf"^(async )?def {name}\(", (TESTS / file).read_text(), re.MULTILINE)
    ]
    assert not missing


def test_what_is_not_given_away_is_tried():
    """A line without a test says in bold what can be done."""
    untried = [said for said, test in rows() if not test and not said.startswith("**")]
    assert not untried
