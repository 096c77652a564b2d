"""The last release, unpacked once for all tests of this folder that run in one process."""

import pytest

from tests.e2e.join_tree import ENVIRONMENT
from tests.releases.last_release import unpacked


@pytest.fixture(scope="session")
def releases(tmp_path_factory) -> dict[bool, dict[str, str]]:
    """The environments of the last release (True), and of what stands here (False)."""
    last = unpacked(tmp_path_factory.mktemp("last"))
    return {True: {**ENVIRONMENT, **last}, False: dict(ENVIRONMENT)}
