"""What is installed is compared with what was brought: each file that differs is named."""

import hashlib
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from leafcast.bundles.installed_files import NoFileList, compare_installed

ROOT = Path(__file__).resolve().parents[2]


def put(folder, name, files):
    """A package as pip leaves it there."""
    about = f"{name}-1.0.dist-info"
    files = {**files, f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
    lines = [f"{about}/RECORD,,"]
    for at, text in files.items():
        file = folder / at
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{at},sha256={digest},{len(text)}")
    (folder / about / "RECORD").write_text("\n".join(lines) + "\n")


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "lib" / "site-packages"
    put(folder, "leafcast", {"leafcast/__init__.py": "", "leafcast/a.py": "a = 1\n"})
    put(folder, "needed", {"needed/b.py": "b = 1\n", "../../bin/needed": "#!/bin/sh\n"})
    return folder


def differences(site):
    found = compare_installed(site / "leafcast").differences
    return [(str(one.file.relative_to(site.parents[1])), one.what) for one in found]


def test_what_was_installed_and_compiled_since_does_not_differ(site):
    subprocess.run([sys.executable, "-m", "compileall", "-q", site], check=True)
    found = compare_installed(site / "leafcast")
    assert (found.files, found.packages, found.differences) == (6, 2, ())


def test_each_file_that_was_changed_or_taken_away_is_named_with_its_package(site):
    (site / "leafcast" / "a.py").write_text("a = 2\n")
    (site / "needed" / "b.py").unlink()
    (site.parents[1] / "bin" / "needed").write_text("#!/bin/false\n")
    assert differences(site) == [
        ("bin/needed", "it was changed (needed 1.0)"),
        ("lib/site-packages/leafcast/a.py", "it was changed (leafcast 1.0)"),
        ("lib/site-packages/needed/b.py", "it is missing (needed 1.0)"),
    ]


@pytest.mark.parametrize(
    "added",
    [
        "leafcast/more.py",
        "start.pth",
        "click.py",
        "__pycache__/a.cpython-313.pyc",
        "leafcast/a.pyc",
    ],
)
def test_what_no_package_brought_is_named(site, added):
    (site / added).parent.mkdir(exist_ok=True)
    (site / added).write_text("")
    assert differences(site) == [(f"lib/site-packages/{added}", "no package brought it")]


def test_a_line_of_a_list_that_is_cut_names_a_file_without_a_sum(site):
    lines = site / "needed-1.0.dist-info" / "RECORD"
    lines.write_text(lines.read_text() + "\nneeded/cut.py")
    (site / "needed" / "cut.py").touch()
    assert differences(site) == []


def test_a_package_without_a_list_is_named(site):
    (site / "needed-1.0.dist-info" / "RECORD").unlink()
    assert ("lib/site-packages", "needed 1.0 has no list of its files (RECORD)") in differences(
        site
    )


def test_a_checkout_has_no_list(site, tmp_path):
    with pytest.raises(NoFileList, match="git status"):
        compare_installed(ROOT / "leafcast")
    (site / "leafcast-1.0.dist-info" / "RECORD").unlink()
    with pytest.raises(NoFileList, match="not installed from a package"):
        compare_installed(site / "leafcast")
    with pytest.raises(NoFileList, match="not installed from a package"):
        compare_installed(tmp_path / "leafcast")
