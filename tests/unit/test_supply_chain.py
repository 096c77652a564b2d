"""What others made comes by hash: images that are pulled, and packages of our image and of CI."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BASE = r"image:|FROM|ARG BASE=..PYTHON_IMAGE:-"
IMAGE = re.compile(rf"^\s*(?:- )?(?:{BASE})\s*(?:&\w+ )?([^\s}}]+)", re.MULTILINE)
OURS = {"leafcast", "${BASE", "*kubectl"}
FILES = ("compose.yaml", "deploy/Dockerfile", "deploy/centre.yaml", "deploy/edge.yaml")
PINNED = re.compile(r"^(\S+==\S+)(?: ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}", re.MULTILINE)
PACKAGE = re.compile(r"^[a-z0-9]", re.MULTILINE)


@pytest.mark.parametrize("name", FILES)
def test_images_that_are_pulled_are_named_by_digest(name):
    images = set(IMAGE.findall((ROOT / name).read_text()))
    assert images
    for image in images - OURS:
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image), image


def test_a_release_pushes_the_image_and_the_chart_that_names_it():
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    words = {
        name: "\n".join(it.get("run", "") for it in job["steps"]) for name, job in jobs.items()
    }
    assert (
        "LEAFCAST_IMAGE=ghcr.io/${GITHUB_REPOSITORY_OWNER,,}/leafcast make dist" in words["build"]
    )
    assert "skopeo copy --all" in words["registry"]
    assert 'helm push "dist/leafcast-' in words["registry"]
    assert jobs["registry"]["permissions"]["packages"] == "write"
    uses = [it for it in jobs["registry"]["steps"] if "attest" in it.get("uses", "")]
    attested = [it["with"]["subject-name"] for it in uses]
    assert attested == [f"${{{{ steps.pushed.outputs.{what} }}}}" for what in ("image", "chart")]
    # What attests there reads the password where docker keeps it.
    assert "docker login ghcr.io" in words["registry"]
    # What nobody can take back comes last.
    assert "registry" in jobs["publish"]["needs"]


def pinned(name):
    """The packages of a lock file; each has a hash."""
    text = (ROOT / name).read_text()
    found = PINNED.findall(text)
    assert len(found) == len(PACKAGE.findall(text)) > 0
    return set(found)


def test_the_image_has_the_packages_that_are_tested():
    assert pinned("deploy/requirements.txt") <= pinned(".ci/requirements.txt")


def test_the_image_is_built_by_what_is_tested_and_has_none_of_it():
    builders = pinned("deploy/build-requirements.txt")
    assert builders <= pinned(".ci/requirements.txt")
    assert not builders & pinned("deploy/requirements.txt")
