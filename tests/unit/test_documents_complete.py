"""The documents name what there is: every module has its place, every decision is listed."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")
GROUPS = {"commands": "`commands/`"}


def test_every_module_has_its_place_in_the_architecture():
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`(?:[\w]+/)*(\w+\.py)`", page))
    missing = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.name.startswith("__")
        and path.name not in named
        and GROUPS.get(path.parent.name, "no group") not in page
    ]
    assert not missing, f"name them in docs/architecture.md: {missing}"


def test_every_module_that_the_architecture_names_is_there():
    page = (ROOT / "docs" / "architecture.md").read_text()
    there = {path.name for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    gone = sorted(set(re.findall(r"`(?:[\w]+/)*(\w+\.py)`", page)) - there)
    assert not gone, f"docs/architecture.md names what is not there: {gone}"


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text()
    missing = [path.name for path in sorted(folder.glob("0*.md")) if path.name not in listed]
    assert not missing, f"list them in docs/decisions/README.md: {missing}"
