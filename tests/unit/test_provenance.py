"""What is built says of which commit, and who says so: openssl and sha256sum verify it offline."""

import json
import subprocess

import pytest

from tests.provenance import LOCKS, write_provenance

SAID = "leafcast-1.2.3.provenance.json"
FILES = {"leafcast-1.2.3-py3-none-any.whl": b"the program", "leafcast_1.2.3_amd64.deb": b"package"}
VERIFY = "openssl pkeyutl -verify -pubin -inkey ../release.pub -rawin"


def run(*words, cwd, check=True):
    return subprocess.run(words, cwd=cwd, check=check, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path):
    """A checkout without changes, beside it what was built of it, and a pair of keys."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    run("git", "init", "-q", cwd=root)
    run("git", "add", "-A", cwd=root)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    run("git", *who, "commit", "-qm", "a: begin", cwd=root)
    dist = tmp_path / "dist"
    dist.mkdir()
    for name, data in {**FILES, "leafcast-bundle.tar": b"one made before"}.items():
        (dist / name).write_bytes(data)
    key = ("genpkey", "-algorithm", "ed25519", "-out", "release.pem")
    run("openssl", *key, cwd=tmp_path)
    run("openssl", "pkey", "-in", "release.pem", "-pubout", "-out", "release.pub", cwd=tmp_path)
    return root, dist, tmp_path / "release.pem"


def is_signed(dist):
    words = (*VERIFY.split(), "-in", "SHA256SUMS", "-sigfile", "SHA256SUMS.sig")
    return run(*words, cwd=dist, check=False).returncode == 0


def is_whole(dist):
    words = ("sha256sum", "--check", "--ignore-missing", "SHA256SUMS")
    return run(*words, cwd=dist, check=False).returncode == 0


def test_who_signed_it_says_of_which_commit_each_file_was_built(tree):
    root, dist, key = tree
    write_provenance(dist, key, root)
    assert is_signed(dist)
    assert is_whole(dist)
    said = json.loads((dist / SAID).read_text())
    built = said["predicate"]["buildDefinition"]
    source, *locks = built["resolvedDependencies"]
    assert source["digest"]["gitCommit"] == run("git", "rev-parse", "HEAD", cwd=root).stdout.strip()
    assert [it["uri"] for it in locks] == [f"file:{at}" for at in LOCKS]
    subjects = {it["name"]: it["digest"]["sha256"] for it in said["subject"]}
    sums = dict(reversed(it.split("  ")) for it in (dist / "SHA256SUMS").read_text().splitlines())
    assert subjects.keys() == FILES.keys()
    assert sums.keys() == {*FILES, SAID}
    assert subjects.items() <= sums.items()


def test_the_same_files_and_commit_give_the_same_bytes(tree):
    root, dist, key = tree
    write_provenance(dist, key, root)
    first = {at.name: at.read_bytes() for at in dist.iterdir()}
    write_provenance(dist, key, root)
    assert {at.name: at.read_bytes() for at in dist.iterdir()} == first


@pytest.mark.parametrize("name", [*FILES, SAID])
def test_a_file_that_was_changed_is_not_what_was_signed(tree, name):
    root, dist, key = tree
    write_provenance(dist, key, root)
    (dist / name).write_bytes((dist / name).read_bytes() + b" ")
    assert not is_whole(dist)
    # Whoever makes the sums anew lacks the key.
    lines = [it for it in FILES if it != name]
    (dist / "SHA256SUMS").write_text(run("sha256sum", *lines, name, cwd=dist).stdout)
    assert is_whole(dist)
    assert not is_signed(dist)


@pytest.mark.parametrize("changed", ["pyproject.toml", "new.py"])
def test_what_is_in_no_commit_is_not_signed_and_has_no_provenance(tree, changed, capsys):
    root, dist, key = tree
    write_provenance(dist, key, root)
    with (root / changed).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(SystemExit, match=f"nothing is signed: {changed} and the like is in none"):
        write_provenance(dist, key, root)
    assert {at.name for at in dist.iterdir()} == {*FILES, "leafcast-bundle.tar"}
    write_provenance(dist, None, root)
    assert "NO PROVENANCE" in capsys.readouterr().err
    assert is_whole(dist)
    assert not (dist / SAID).exists()
