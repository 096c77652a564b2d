"""What `make dist` builds: the same bytes anywhere, and a program that needs nothing else."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bundle_parts import add_wheels
from tests.debian_package import packed
from tests.manual_pages import COMPLETIONS

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(540)]

ROOT = Path(__file__).resolve().parents[2]
COMMITTED_AT = "1700000000"


def run(*words, **options):
    """What a program says; it has to succeed."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{words}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def built(source, out):
    """Build the packages of a source tree, as `make dist` does; the files by name."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": COMMITTED_AT}
    words = ("-m", "build", "--no-isolation", "--outdir", out, source)
    run(sys.executable, *words, env=environment)
    return {file.name: file for file in sorted(out.iterdir())}


def copied(target):
    """The files of this tree elsewhere, written anew, for their owner alone."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, file)
            file.chmod(0o600 | (ROOT / name).stat().st_mode & 0o100)
    return target


def sums(files):
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_packages_of_one_commit_have_the_same_bytes_wherever_they_are_built(packages, tmp_path):
    elsewhere = built(copied(tmp_path / "source"), tmp_path / "dist")
    assert len(packages) == 2
    assert sums(elsewhere) == sums(packages)


def test_a_debian_package_of_the_same_files_has_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", COMMITTED_AT)
    made = {}
    for name, names in (("a", "xyz"), ("b", "zyx")):
        root, out = tmp_path / name / "root", tmp_path / name / "dist"
        out.mkdir(parents=True)
        for one in names:
            file = root / "opt" / "leafcast" / one / "file"
            file.parent.mkdir(parents=True)
            file.write_text(one)
            file.chmod(0o600 if name == "a" else 0o664)
        (root / "opt" / "leafcast" / "link").symlink_to("x/file")
        made[name] = packed("amd64", "1.0", "3.13.5-2", root, out)
    assert made["a"].read_bytes() == made["b"].read_bytes()


def test_an_index_takes_the_packages(packages):
    said = run(sys.executable, "-m", "twine", "check", "--strict", *packages.values())
    assert said.count("PASSED") == 2


def cut_off():
    """How to run a command where nothing but 127.0.0.1 is reached."""
    as_root = () if os.geteuid() == 0 else ("--map-root-user",)
    words = ("unshare", *as_root, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("NOT RUN: no network namespaces here; they need root, unshare and ip")
    return words


def test_a_bundle_delivers_the_demo_where_there_is_no_network(packages, tmp_path):
    alone, dist = cut_off(), tmp_path / "dist"
    dist.mkdir()
    for name, file in packages.items():
        shutil.copyfile(file, dist / name)
    add_wheels(dist, [f"3.{sys.version_info.minor}"])
    bundle = tmp_path / "leafcast.tar"
    program = (sys.executable, "-m", "leafcast", "bundle")
    run(*program, "make", dist, "-o", bundle)
    assert "all whole, not signed" in run(*program, "verify", bundle)
    run("tar", "-xf", bundle, "-C", tmp_path)
    (folder,) = tmp_path.glob("leafcast-*/")
    # Nothing of this tree is to be found by chance.
    program = tmp_path / "venv" / "bin"
    bare = {"PATH": f"{program}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(tmp_path)}
    bare |= {"TMPDIR": str(tmp_path), "PYTHON": sys.executable}
    install = ("sh", folder / "install.sh", "wheels", program.parent)
    said = run(*alone, *install, env=bare, cwd=tmp_path)
    name, version = said.splitlines()[-1].split()
    assert (name, f"leafcast-{version}-py3-none-any.whl") in [("leafcast", one) for one in packages]
    share = tmp_path / "venv" / "share"
    assert (share / "man" / "man1" / "leafcast-join.1").is_file()
    assert all((share / file).is_file() for file in COMPLETIONS.values())
    run(program / "python", "-I", "-m", "pip", "check")
    small = ("--once", "--regions", "1", "--sites", "1", "-o", "json")
    shown = json.loads(run(*alone, "leafcast", "demo", *small, env=bare, cwd=tmp_path))
    assert (shown["destinations"], shown["synced"], shown["healthy"]) == (1, 1, 1)
    checked = json.loads(run(*alone, "leafcast", "check-host", "-o", "json", env=bare))
    assert not [one for one in checked["checks"] if one["state"] == "fail"]
