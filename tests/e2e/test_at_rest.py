"""What a tree stores is encrypted with the user's key, and does not open without it."""

import pytest

from tests.e2e.test_up import SMALL, Program

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(120)]

KNOWN, NAME = "known-plain-text-at-rest", "a-known-name-at-rest"
OBJECT = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: {NAME}, namespace: default}}
data: {{word: {KNOWN}}}
"""


def holders(folder, text):
    """The files below a folder in which the text stands."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file for file in files if text.encode() in file.read_bytes()]


def test_a_store_is_encrypted_from_the_start_with_its_key_on_and_refused_without(tmp_path):
    program, key, objects = Program(tmp_path / "tree"), tmp_path / "key", tmp_path / "objects.yaml"
    objects.write_text(OBJECT)
    try:
        assert program.run("up", *SMALL).returncode == 0
        assert program.run("apply", "-f", str(objects)).returncode == 0
        program.run("down")
        # The embedded space keeps each object under its name: this is what the key is for.
        assert holders(program.place.folder, NAME)

        key.write_text("a-key-of-the-user-of-this-tree-00000001\n")
        begun = program.run("up", "--store-key-file", str(key))
        assert begun.returncode == 0, begun.stderr
        assert KNOWN in program.run("get", "configmap", NAME, "-o", "yaml").stdout
        assert holders(program.place.folder, KNOWN) == []
        assert holders(program.place.folder, key.read_text().strip()) == []
        program.run("down")
        assert holders(program.place.folder, NAME) == []

        other = tmp_path / "other"
        other.write_text("another-key-of-the-user-of-this-tree-02\n")
        refused = program.run("up", "--store-key-file", str(other))
        assert refused.returncode == 1
        assert "its store is encrypted with another key" in refused.stderr

        key.rename(tmp_path / "away")
        refused = program.run("up")
        assert refused.returncode == 1
        assert f"{key}: No such file" in refused.stderr
        (tmp_path / "away").rename(key)

        again = program.run("up")
        assert again.returncode == 0, again.stderr
        assert KNOWN in program.run("get", "configmap", NAME, "-o", "yaml").stdout
        joins_with_its_key_alone(program, tmp_path, key)
    finally:
        program.run("down")


def joins_with_its_key_alone(program, folder, key):
    """A node elsewhere encrypts its store, too, and does not start without the key."""
    token, place = folder / "late.join", folder / "late"
    added = program.run("node", "add", "/region-1/late", "--approved", "-o", str(token))
    assert added.returncode == 0, added.stderr
    join = ("join", str(token), "--data-dir", str(place))
    node = program.start(*join, "--store-key-file", str(key))
    try:
        assert node.stdout is not None
        assert any("is in session" in line for line in node.stdout)
    finally:
        node.terminate()
        node.communicate(timeout=60)
    refused = program.run(*join)
    assert refused.returncode == 1
    assert "its store is encrypted, and there is no key; name the file" in refused.stderr
