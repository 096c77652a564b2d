"""A small tree that is up, one for all tests of a file, and what is applied there."""

import pytest

from tests.e2e.program import SMALL, Program, did


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    program = Program(tmp_path_factory.mktemp("tree"))
    did(program, "up", *SMALL)
    yield program
    program.run("down")


@pytest.fixture
def apply(tree, tmp_path):
    """Applies a text; what came of it."""

    def applied(text, *options, code=0):
        file = tmp_path / "applied.yaml"
        file.write_text(text)
        return did(tree, "apply", "-f", str(file), *options, code=code)

    return applied
