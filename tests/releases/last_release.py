"""The last release, taken from git, to run beside what stands here."""

import os
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
NAMED = Path(__file__).parent / "last_release.txt"
PACKAGES = ("schemas", "relay", "controllers", "leafcast", "nats", "pyproject.toml")


def commit() -> str:
    """The commit that is named."""
    lines = NAMED.read_text().splitlines()
    (named,) = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return named


def unpacked(folder: Path) -> dict[str, str]:
    """The environment in which `python -m leafcast` is the last release.

    It runs in this very interpreter, with the packages installed here. What it requires and is not
    installed in a version that it takes, is installed beside it, for it alone.
    """
    archive = _git("archive", commit(), *PACKAGES)
    if archive is None:
        pytest.skip(f"git does not have {commit()[:12]}: git fetch --depth 1 origin {commit()}")
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    missing = [it for it in project["dependencies"] if not _is_met(Requirement(it))]
    beside = folder / "required"
    if missing:
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(beside), *missing]
        subprocess.run(install, check=True, timeout=280)
    # Without the last one Python would prefer what lies in the working directory.
    environment = {
        "PYTHONPATH": os.pathsep.join((str(folder), str(beside))),
        "PYTHONSAFEPATH": "1",
    }
    assert _place(environment) == folder / "leafcast", "another release would run"
    return environment


def _place(environment: dict[str, str]) -> Path:
    """Where the program lies that runs in this environment."""
    command = [sys.executable, "-c", "import leafcast; print(leafcast.__file__)"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip()).parent


def _is_met(requirement: Requirement) -> bool:
    if requirement.marker is not None and not requirement.marker.evaluate():
        return True
    try:
        return requirement.specifier.contains(version(requirement.name), prereleases=True)
    except PackageNotFoundError:
        return False


def _git(*arguments: str) -> bytes | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
