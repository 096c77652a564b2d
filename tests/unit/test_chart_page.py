"""The chart's page, its schema, its values and its version say the same."""

import json
import tomllib
from pathlib import Path

import yaml

from tests.chart_page import CHART, chart_page

ROOT = Path(__file__).resolve().parents[2]
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def leaves(form, above=""):
    """Each value with a description, by its whole name."""
    for name, inner in form["properties"].items():
        whole = f"{above}{name}"
        if inner.get("properties") and "description" in next(iter(inner["properties"].values())):
            yield from leaves(inner, f"{whole}.")
        elif whole != "global":
            yield whole


def default(name):
    found = VALUES
    for word in name.split("."):
        found = found[word]
    return found


def test_the_page_of_the_chart_is_what_its_values_say_now():
    assert (CHART / "README.md").read_text() == chart_page(), "run `make docs`"


def test_every_value_has_a_default_and_a_row():
    page = chart_page()
    names = list(leaves(SCHEMA))
    assert len(names) > 40
    for name in names:
        default(name)
        assert f"| `{name}` |" in page


def test_the_chart_has_the_version_of_the_program():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert {chart["version"], chart["appVersion"]} == {project["version"]}
