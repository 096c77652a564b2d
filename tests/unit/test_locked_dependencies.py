"""What CI installs is what is written down, file by file, and is what pyproject.toml asks for."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKED = re.compile(r"(?P<pinned>[^\s\\]+==[^\s\\]+)(?P<marker> ;[^\\]*)?(?P<hashes>.*)", re.DOTALL)


def locked():
    """By name, the version and how many files are let in."""
    text = (ROOT / ".ci" / "requirements.txt").read_text()
    found = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        parts = LOCKED.fullmatch(entry)
        assert parts, entry[:80]
        name, _, version = parts["pinned"].partition("==")
        found[canonicalize_name(name)] = version, parts["hashes"].count("--hash=sha256:")
    return found


def test_each_dependency_is_locked_to_files_of_a_version_that_will_do():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
        *project["build-system"]["requires"],
    ]
    found = locked()
    for requirement in map(Requirement, asked):
        version, _ = found[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version, prereleases=True), requirement
    assert all(hashes for _, hashes in found.values())


def test_ci_installs_nothing_else():
    assert "make setup LOCK=.ci/requirements.txt\n" in (ROOT / ".ci" / "run").read_text()
