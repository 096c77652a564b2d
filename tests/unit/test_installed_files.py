"""What is installed is compared with what was brought: each file that differs is named."""

import hashlib
import importlib.util
import os
import py_compile
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from leafcast.bundles import installed_files
from leafcast.bundles.installed_files import NoFileList, compare_installed

ROOT = Path(__file__).resolve().parents[2]
TAG = sys.implementation.cache_tag
CHECKER = installed_files.__file__
ASKING = """
import runpy, sys
print(runpy.run_path(sys.argv[1])["say_compared"](sys.argv[2]), flush=True)
"""


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
def site(tmp_path, monkeypatch):
    # What is compiled goes beside its source, wherever these tests put their own.
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
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


def test_a_link_in_place_of_a_file_is_named_though_it_leads_to_the_same(site, tmp_path):
    file, elsewhere = site / "leafcast" / "a.py", tmp_path / "a.py"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert differences(site) == [
        ("lib/site-packages/leafcast/a.py", "a link lies in its place (leafcast 1.0)")
    ]


def test_a_program_that_no_package_brought_is_named_in_an_environment_of_its_own(site):
    programs = {"../../bin/leafcast": "#!/bin/sh\n"}
    put(site, "leafcast", {"leafcast/__init__.py": "", "leafcast/a.py": "a = 1\n", **programs})
    place = site.parents[1] / "bin"
    for name in ("kubectl", "python3.13", "python", "pip3", "activate.fish", "deactivate.bat"):
        (place / name).touch()
    (place / "pip-tool").symlink_to("nowhere")
    # All that the machine has may lie there.
    assert differences(site) == []
    (site.parents[1] / "pyvenv.cfg").touch()
    said = "no package brought it"
    assert differences(site) == [("bin/kubectl", said), ("bin/pip-tool", said)]


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "compiled"])
def test_what_makes_an_environment_brings_nothing_strange(tmp_path, monkeypatch, prefix):
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    if prefix:
        monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / prefix))
    tmp_path /= "environment"
    subprocess.run([sys.executable, "-m", "venv", tmp_path], check=True, capture_output=True)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    put(site, "leafcast", {"leafcast/__init__.py": "", "../../../bin/leafcast": "#!/bin/sh\n"})
    assert compare_installed(site / "leafcast").differences == ()


def test_a_program_that_pipx_lets_read_no_variables_is_what_was_brought(site):
    program = site.parents[1] / "bin" / "needed"
    text = program.read_text()
    program.write_text(text.replace("\n", " -E\n", 1))
    assert differences(site) == []
    for other in (
        text.replace("\n", " -x\n", 1),
        text + " -E\n",
        text.replace("\n", " -E -E\n", 1),
    ):
        program.write_text(other)
        assert differences(site) == [("bin/needed", "it was changed (needed 1.0)")]


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


def test_a_line_of_a_list_without_a_sum_is_named(site):
    lines = site / "needed-1.0.dist-info" / "RECORD"
    lines.write_text(lines.read_text() + "needed/more.py,,\nneeded/cut.py")
    for name in ("more", "cut"):
        (site / "needed" / f"{name}.py").touch()
    assert differences(site) == [
        (f"lib/site-packages/needed/{name}.py", "the list has no sum of it (needed 1.0)")
        for name in ("cut", "more")
    ]


MODES = py_compile.PycInvalidationMode


def compiled(source, text, *, level=-1, mode=MODES.TIMESTAMP):
    """What Python loads for a source, made of another text that has its size and its time."""
    at, kept = source.stat(), source.read_text()
    source.write_text(text)
    os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    made = Path(py_compile.compile(source, optimize=level, invalidation_mode=mode, doraise=True))
    source.write_text(kept)
    os.utime(source, ns=(at.st_atime_ns, at.st_mtime_ns))
    return made


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_what_was_compiled_of_another_text_is_named(site, level, mode, listed):
    source = site / "leafcast" / "a.py"
    assert compiled(source, "a = 1\n", level=level, mode=mode).exists()
    assert differences(site) == []
    for text in ("a = 3\n", "b = 1\n", "a = 1."):
        made = compiled(source, text, level=level, mode=mode)
        if listed:
            lines = site / "leafcast-1.0.dist-info" / "RECORD"
            lines.write_text(f"{lines.read_text()}{made.relative_to(site)},,\n")
        at = str(made.relative_to(site.parents[1]))
        assert differences(site) == [(at, "it is not what a.py compiles to")]
    # Its lines in tracebacks are not what it does.
    compiled(source, "a=1;1\n", level=level, mode=mode)
    assert differences(site) == []


def test_code_inside_of_code_is_compared_and_so_are_kinds_of_constants(site):
    source = site / "leafcast" / "a.py"
    text = "def a():\n    return (0, {1.5: x in {1, 2}}, lambda: -0.0)\n"
    put(site, "leafcast", {"leafcast/__init__.py": "", "leafcast/a.py": text})
    compiled(source, text)
    assert differences(site) == []
    for other in (text.replace("-0.0", "0.0"), text.replace("{1, 2}", "{1, 3}")):
        made = compiled(source, other)
        at = str(made.relative_to(site.parents[1]))
        assert differences(site) == [(at, "it is not what a.py compiles to")]


@pytest.mark.parametrize("data", [b"", b"junk", importlib.util.MAGIC_NUMBER + bytes(12) + b"\xff"])
@pytest.mark.parametrize(
    "name", ["a.cpython-31.pyc", "a.pyc", f"a.{TAG}.opt-3.pyc", f"a.{TAG}.pyc"]
)
def test_what_this_python_did_not_compile_is_named(site, name, data):
    cache = site / "leafcast" / "__pycache__"
    cache.mkdir()
    (cache / name).write_bytes(data)
    ((at, _),) = differences(site)
    assert at.endswith(name)


def test_a_folder_that_lies_elsewhere_is_named(site, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (site / "click").symlink_to(tmp_path / "elsewhere")
    assert differences(site) == [("lib/site-packages/click", "no package brought it")]


def test_nothing_that_is_compared_runs_as_it_is_compared(site, tmp_path):
    ran = tmp_path / "ran"
    text = f"open({str(ran)!r}, 'w')\n"
    for name in ("leafcast/a.py", "usercustomize.py", "sitecustomize.py", "csv.py"):
        (site / name).write_text(text)
    (site / "start.pth").write_text(f"import sys; {text}")
    done = subprocess.run(
        [sys.executable, "-IS", "-c", ASKING, CHECKER, site / "leafcast"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(site), "PYTHONHOME": ""},
    )
    assert done.stdout == "1\n"
    assert f"error: {site}/start.pth: no package brought it\n" in done.stderr
    assert f"error: {site}/leafcast/a.py: it was changed (leafcast 1.0)\n" in done.stderr
    assert done.stderr.endswith("error: install the release anew, from what you verified\n")
    assert not ran.exists()


def test_a_half_removed_installation_is_named_and_no_traceback(tmp_path):
    """It is what is left where `click` was moved away."""

    def asked(*words):
        return subprocess.run(
            [sys.executable, "-S", "-m", "leafcast", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )

    done = asked("status")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: leafcast is not whole: No module named 'click'",
        "error: `leafcast version --verify` names what differs; or install it anew",
    ]
    done = asked("version", "--verify")
    assert done.returncode == 1
    assert "No module named 'click'" in done.stderr
    assert "git status" in done.stderr


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
