"""The documents name what there is: packages, decisions, and what rooms of a node import."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("schemas", "relay", "controllers", "leafcast")
CORE_ROW = re.compile(r"^\| `relay/core/(\w+)/` \|.*\| ([\w, -]+) \|$", re.MULTILINE)
IMPORTED = re.compile(r"^from relay\.core\.(\w+)", re.MULTILINE)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def packages() -> set[str]:
    return {
        f"{path.parent.relative_to(ROOT).as_posix()}/"
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }


def rooms() -> list[str]:
    page = (ROOT / "docs" / "architecture.md").read_text()
    return re.findall(r"^\| `([\w/]+/)` \|", page, re.MULTILINE)


def test_every_package_has_its_row_in_the_architecture():
    missing = sorted(packages() - set(rooms()))
    assert not missing, f"give each a row in docs/architecture.md: {missing}"


def test_every_room_of_the_architecture_is_there_once():
    assert len(rooms()) == len(set(rooms()))
    gone = sorted(set(rooms()) - packages())
    assert not gone, f"docs/architecture.md names what is not there: {gone}"


def imported(room: str) -> set[str]:
    """The other rooms of `relay.core` that a room imports."""
    files = (ROOT / "relay" / "core" / room).rglob("*.py")
    named = {name for file in files for name in IMPORTED.findall(file.read_text())}
    return {name for name in named if (ROOT / "relay" / "core" / name).is_dir()} - {room}


def test_a_room_of_a_node_imports_only_what_its_row_allows():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = CORE_ROW.findall(page)
    assert len(rows) > 5
    wrong = {room: imported(room) - set(allowed.split(", ")) for room, allowed in rows}
    assert {room: more for room, more in wrong.items() if more} == {}


def test_every_decision_is_listed():
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text()
    missing = [path.name for path in sorted(folder.glob("0*.md")) if path.name not in listed]
    assert not missing, f"list them in docs/decisions/README.md: {missing}"


def test_every_python_example_is_a_whole_program():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [(page.name, text) for page in pages for text in PROGRAM.findall(page.read_text())]
    assert found
    for page, text in found:
        compile(text, page, "exec")
