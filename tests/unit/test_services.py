"""What `join --service` writes is what systemd takes, and `leave` leaves nothing of it."""

import asyncio
import errno
import os
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from leafcast.cli.main import cli
from leafcast.daemon.process import STOP_SECONDS
from leafcast.join.join_request import JoinRequester
from leafcast.publisher.publisher_files import file_data
from leafcast.publisher.root_making import next_root
from leafcast.service import installed
from leafcast.service.installed import INVITATIONS, STATE, UNITS, Services, ServiceUnusable
from leafcast.service.unit import HARDENING, WATCHDOG_SECONDS, NodeUnit, quoted
from leafcast.service.unit_view import HIDDEN, file_for, own_program, program_for
from leafcast.service.watchdog import ServiceManager, attended
from schemas.enrolment.tokens import Token
from schemas.values.identity import NodePath
from tests.publishing import key, release, root_after, wish

ROOT = Path(__file__).resolve().parents[2]
UNITS_OF_OURS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
TOKEN = Token(b"s" * 16, "a" * 25 + "a", b"p" * 16, NodePath.parse("/emea/store-7"))
NAME = "leafcast-emea.store-7"
EXPOSURE_MAX = 30
"""Tenths of what `systemd-analyze security` counts."""


def need_systemd(program):
    if shutil.which(program) is None:
        pytest.skip(f"NOT RUN: no {program} here; apt install systemd")


@pytest.fixture
def invitation(tmp_path):
    file = tmp_path / "store.join"
    file.write_text(f"tls://centre.example:7422 {TOKEN.text}\n")
    return file


@pytest.fixture
def image(tmp_path):
    """A system with the program where a package lays it."""
    folder = tmp_path / "image"
    for name in ("etc", "opt/leafcast/bin"):
        (folder / name).mkdir(parents=True)
    for name in ("leafcast", "leafcast-launcher"):
        (folder / "opt/leafcast/bin" / name).touch()
    return folder


OWNER = key("owner")
ROOTS = root_after(None, wish([OWNER], lowest="0.1.0"), OWNER)


def publisher(folder, data=ROOTS.data):
    """The root of a publisher in that system."""
    file = folder / "etc" / "root 50%.json"
    file.write_bytes(data)
    return file


def kubeconfig(folder, context="a b", **user):
    """A file of that system, with one context."""
    file = folder / "etc" / "store 7.kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://store-7"}}],
                "users": [{"name": "u", "user": {"token": "t", **user}}],
                "current-context": context,
                "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return file


def leafcast(*words):
    """The exit code, and what it said."""
    ran = CliRunner().invoke(cli, [str(word) for word in words])
    return ran.exit_code, ran.output if ran.exit_code in (0, 2) else str(ran.exception)


def test_a_unit_that_is_written_names_a_home():
    unit = NodeUnit(TOKEN.path, "/opt/leafcast/bin/leafcast", "/etc/leafcast/nodes/x.join")
    assert f"\nEnvironment=HOME=%S/leafcast/{NAME}\n" in unit.text


def test_no_service_joins_with_a_file_that_is_not_there(image):
    code, said = leafcast("join", image / "gone.join", "--service", "--service-root", image)
    assert code == 1
    assert "there is no such file; name the file that `leafcast node add -o` wrote" in said


def unit_of(image):
    return (image / UNITS / f"{NAME}.service").read_text()


def judged(folder, text):
    """What systemd says of a unit with a program that is there: its faults, how exposed it is."""
    file = folder / "judged.service"
    program = shutil.which("true")
    file.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={program}", text))
    verify = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", file],
        capture_output=True,
        text=True,
        check=False,
    )
    security = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", file],
        capture_output=True,
        text=True,
        check=False,
    )
    return verify.returncode, verify.stderr, security.returncode, security.stdout[-200:]


@pytest.mark.parametrize("unit", UNITS_OF_OURS, ids=lambda file: file.name)
def test_systemd_takes_our_units_and_finds_little_exposed(unit, tmp_path):
    need_systemd("systemd-analyze")
    code, said, exposed, how = judged(tmp_path, unit.read_text())
    assert (code, said) == (0, "")
    assert exposed == 0, how


@pytest.mark.parametrize("unit", UNITS_OF_OURS, ids=lambda file: file.name)
def test_our_units_are_hardened_and_watched_as_those_that_are_written(unit):
    text = unit.read_text()
    assert HARDENING in text
    assert f"WatchdogSec={WATCHDOG_SECONDS}\n" in text


@pytest.mark.parametrize("unit", UNITS_OF_OURS, ids=lambda file: file.name)
def test_our_units_are_started_again_however_often_they_ended(unit):
    assert "\nStartLimitIntervalSec=0\n" in unit.read_text()


@pytest.mark.parametrize("unit", UNITS_OF_OURS, ids=lambda file: file.name)
def test_a_unit_of_ours_keeps_none_that_is_written_from_its_folder(unit):
    """A user that systemd made has to get through `/var/lib/leafcast`, which such a unit owns."""
    text = unit.read_text()
    assert "\nStateDirectory=leafcast\n" in text
    assert "\nStateDirectoryMode=0711\n" in text


def test_a_centre_whose_start_hangs_ends_it_in_order_before_systemd_does():
    text = (ROOT / "deploy/systemd/leafcast-centre.service").read_text()
    own = int(re.search(r"up --foreground --timeout (\d+)", text)[1])
    limit = int(re.search(r"\nTimeoutStartSec=(\d+)", text)[1])
    assert own + STOP_SECONDS < limit
    assert "\nRestart=on-failure\n" in text


def test_a_service_is_written_as_systemd_takes_it_and_enabled(invitation, image, tmp_path):
    need_systemd("systemctl")
    config = kubeconfig(image)
    code, said = leafcast(
        *("join", invitation, "--service", "--service-root", image),
        *("--kubeconfig", config, "--context", "a b", "--durability", "disk"),
        *("--publisher", publisher(image)),
    )
    assert code == 0, said
    text = unit_of(image)
    assert judged(tmp_path, text)[:3] == (0, "", 0)
    line = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    # Who names a publisher has a launcher, which installs what that one signs.
    assert line.startswith("ExecStart=/opt/leafcast/bin/leafcast-launcher --data-dir ")
    assert line.endswith(
        f"{NAME}/node -- join ${{CREDENTIALS_DIRECTORY}}/join --data-dir %S/leafcast/{NAME}/node "
        '--context "a b" --durability disk --kubeconfig ${CREDENTIALS_DIRECTORY}/kubeconfig '
        "--publisher ${CREDENTIALS_DIRECTORY}/publisher"
    )
    assert "LoadCredential=kubeconfig:/etc/store 7.kubeconfig\n" in text
    assert "LoadCredential=publisher:/etc/root 50%%.json\n" in text
    kept = image / INVITATIONS / f"{NAME}.join"
    assert kept.read_text() == invitation.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert TOKEN.text not in text
    wanted = image / UNITS / "multi-user.target.wants" / f"{NAME}.service"
    assert wanted.is_symlink()


def test_a_publisher_without_a_launcher_there_is_refused(invitation, image):
    (image / "opt/leafcast/bin/leafcast-launcher").unlink()
    words = ("join", invitation, "--service", "--service-root", image)
    code, said = leafcast(*words, "--publisher", publisher(image))
    assert code == 1
    assert "there is no /opt/leafcast/bin/leafcast-launcher" in said
    assert "leave it out" in said


def test_a_service_that_leaves_leaves_nothing(invitation, image):
    need_systemd("systemctl")
    before = {*image.rglob("*")}
    assert leafcast("join", invitation, "--service", "--service-root", image)[0] == 0
    assert "ExecStart=/opt/leafcast/bin/leafcast join " in unit_of(image)
    private = image / "var/lib/private/leafcast" / NAME
    (private / "node").mkdir(parents=True)
    state = image / STATE / NAME
    state.parent.mkdir(parents=True)
    state.symlink_to("../private/leafcast/" + NAME)
    code, said = leafcast("leave", "--yes", "--service-root", image)
    assert code == 0, said
    left = {it for it in image.rglob("*") if not it.is_dir() or it.is_symlink()} - before
    assert not left
    assert not private.exists()
    code, said = leafcast("leave", "--yes", "--service-root", image)
    assert code == 1
    assert "there is none, by `leafcast join --service`" in said


def test_a_service_that_leaves_is_found_again_until_all_is_gone(invitation, image, monkeypatch):
    need_systemd("systemctl")
    shared = image / "etc/leafcast"
    shared.mkdir(parents=True)
    shared.chmod(0o755)
    assert leafcast("join", invitation, "--service", "--service-root", image)[0] == 0
    # People keep what their own units read there.
    assert shared.stat().st_mode & 0o777 == 0o755
    (image / STATE / NAME).mkdir(parents=True)

    def busy(folder):
        raise OSError(16, "Device or resource busy", str(folder))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", busy)
        code, said = leafcast("leave", "--yes", "--service-root", image)
        assert code == 1
        assert "run `leafcast leave` again" in said
    assert leafcast("leave", "--yes", "--service-root", image)[0] == 0
    assert not (image / STATE / NAME).exists()
    assert Services(image).names() == []


def test_of_several_services_one_is_named(invitation, image, tmp_path):
    need_systemd("systemctl")
    assert leafcast("join", invitation, "--service", "--service-root", image)[0] == 0
    other = tmp_path / "other.join"
    more = Token(TOKEN.secret, TOKEN.tree, TOKEN.pin, NodePath.parse("/emea"))
    other.write_text(f"tls://centre.example:7422 {more.text}")
    assert leafcast("join", other, "--service", "--service-root", image)[0] == 0
    code, said = leafcast("leave", "--yes", "--service-root", image)
    assert code == 1
    assert f"there are leafcast-emea, {NAME}" in said
    assert leafcast("leave", "/emea", "--yes", "--service-root", image)[0] == 0
    assert Services(image).names() == [NAME]


def test_a_unit_of_someone_else_stays(invitation, image):
    file = image / UNITS / f"{NAME}.service"
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/bin/true\n")
    code, said = leafcast("join", invitation, "--service", "--service-root", image)
    assert code == 1
    assert "was written by someone else" in said
    assert file.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert Services(image).names() == []


ACCOUNT, TAKEN = "name one with the token", "kubectl --kubeconfig C -n leafcast-system delete lease"


@pytest.mark.parametrize(
    ("user", "more", "said"),
    [
        ({}, ("--data-dir", "x"), "a service has its own"),
        ({}, ("--proxy", "http://a:b@proxy:3128"), "every user of this machine reads"),
        ({"client-key": "store 7.kubeconfig"}, ("-C",), "its field client-key names a file"),
        ({"exec": {"command": "login"}}, ("-C",), ACCOUNT),
        ({"auth-provider": {"name": "oidc"}}, ("-C",), ACCOUNT),
        ({}, ("-C", "--take-over"), TAKEN),
        ({}, ("-C", "--context", "b"), 'context "b" does not exist'),
        ({}, ("--context", "a b"), "name that file with --kubeconfig"),
        ({}, ("-C", "--simulated"), "name one of them"),
        ({}, ("--kubeconfig", "here"), "so that system does not have it"),
        ({}, ("--proxy", "proxy:3128"), "as in http://proxy.example:3128"),
        ({}, ("--member-host", "a.example"), "goes with the token of a member"),
    ],
)
def test_what_no_service_can_have_is_refused_before_anything_is_written(
    image, tmp_path, monkeypatch, user, more, said
):
    file = tmp_path / "web.join"
    file.write_text(f"wss://centre.example/leaf {TOKEN.text}")
    config = kubeconfig(image, "a b", **user)
    words = [word for one in more for word in (("--kubeconfig", config) if one == "-C" else (one,))]
    monkeypatch.chdir(tmp_path)
    shutil.copy(config, "here")
    before = {*image.rglob("*")}
    code, told = leafcast("join", file, "--service", "--service-root", image, *words)
    assert code in (1, 2)
    assert said in told.replace(str(config), "C")
    assert {*image.rglob("*")} == before


def member_token(path):
    return replace(TOKEN, member=True, path=NodePath.parse(path)).text


@pytest.mark.parametrize("path", ["/", "/emea"])
def test_a_member_whose_unit_names_a_publisher_has_a_launcher(image, tmp_path, path):
    file, root = tmp_path / "member.join", publisher(image)
    file.write_text(f"tls://centre.example:7422 {member_token(path)}")
    before = {*image.rglob("*")}
    words = ("join", file, "--service", "--service-root", image, "--publisher", root)
    code, told = leafcast(*words)
    assert code == 0, told
    (unit,) = {it for it in image.rglob("*.service") if not it.is_symlink()} - before
    assert "bin/leafcast-launcher" in unit.read_text()


UNSIGNED = file_data(next_root(None, wish([OWNER], lowest="0.1.0")))
NO_PUBLISHERS = [
    (b"\x7fELF", "publisher: it is no JSON", "`leafcast release root`"),
    (b"{}", "publisher: it lacks a signed part", "`leafcast release root`"),
    (release(ROOTS, OWNER), "publisher: it is of the role 'targets'", "`leafcast release root`"),
    (UNSIGNED, "0 of the 1 signatures", "have the holders of its keys sign it"),
    (None, "No such file or directory", "name another file"),
]


@pytest.mark.parametrize(("data", "why", "remedy"), NO_PUBLISHERS)
@pytest.mark.parametrize("service", [False, True])
def test_what_is_no_root_of_a_publisher_is_refused_before_a_token_is_spent(
    invitation, image, data, why, remedy, service, monkeypatch
):
    monkeypatch.setattr(JoinRequester, "run", lambda _: pytest.fail("it asks with its token"))
    monkeypatch.setattr(os, "umask", lambda _: 0)
    root = publisher(image, data or b"")
    if data is None:
        root.unlink()
    before = {*image.rglob("*")}
    more = ("--service", "--service-root", image) if service else ("--data-dir", image / "node")
    code, said = leafcast("join", invitation, *more, "--publisher", root)
    assert code == 1
    assert why in said
    assert remedy in said
    assert {*image.rglob("*")} == before


def test_a_service_that_is_written_again_keeps_its_publisher(invitation, image):
    need_systemd("systemctl")
    root = publisher(image)
    words = ("join", invitation, "--service", "--service-root", image)
    assert leafcast(*words, "--publisher", root)[0] == 0
    first = unit_of(image)
    code, said = leafcast(*words, "--durability", "disk")
    assert code == 0, said
    assert "Its publisher stays the one in /etc/root 50%.json" in said
    assert unit_of(image) == first.replace(" --publisher ", " --durability disk --publisher ")
    root.unlink()
    code, said = leafcast(*words)
    assert code == 1
    assert "root 50%.json: No such file or directory" in said
    assert leafcast("leave", "--yes", "--service-root", image)[0] == 0
    assert leafcast(*words)[0] == 0
    assert "publisher" not in unit_of(image)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "run it as root"),
        (errno.EROFS, "have that file system mounted to be written"),
        (errno.ENOSPC, "make room there"),
    ],
)
def test_a_unit_that_cannot_be_written_is_refused_with_what_helps(
    invitation, image, monkeypatch, number, remedy
):
    def fails(file, _):
        raise OSError(number, os.strerror(number), str(file))

    monkeypatch.setattr(installed, "atomic_write", fails)
    code, said = leafcast("join", invitation, "--service", "--service-root", image)
    assert code == 1
    assert os.strerror(number) in said
    assert said.endswith(remedy)


def test_a_service_starts_no_program_that_it_does_not_see(image):
    package = Path("/opt/leafcast/lib/leafcast")
    assert program_for(Path("/"), (Path("/opt/x/leafcast"), package)) == "/opt/x/leafcast"
    for hidden in HIDDEN:
        with pytest.raises(ServiceUnusable, match="install it elsewhere: python3 -m venv"):
            program_for(Path("/"), (Path("/usr/local/bin/leafcast"), hidden / "you" / "python3"))
    (image / "opt/leafcast/bin/leafcast").unlink()
    (image / "usr/bin").mkdir(parents=True)
    (image / "usr/bin/leafcast").symlink_to("/opt/leafcast/bin/leafcast")
    assert program_for(image, own_program()) == "/usr/bin/leafcast"
    (image / "usr/bin/leafcast").unlink()
    with pytest.raises(ServiceUnusable, match="install Leafcast in that image first"):
        program_for(image, own_program())


def test_a_service_names_no_file_that_is_gone_at_the_next_start():
    assert file_for(Path("/"), "--tls-key", Path("/home/you/key.pem")) == "/home/you/key.pem"
    with pytest.raises(ServiceUnusable, match="keep it elsewhere, as in /etc/leafcast"):
        file_for(Path("/"), "--tls-key", Path("/run/key.pem"))


def test_a_service_that_does_not_start_is_disabled_again(tmp_path, monkeypatch):
    asked, program = tmp_path / "asked", tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {asked}\ntest "$1" != restart\n')
    program.chmod(0o755)
    monkeypatch.setattr(installed, "SYSTEMCTL", str(program))
    monkeypatch.setattr(Services, "is_live", True)
    monkeypatch.setattr(installed, "BOOTED", tmp_path)
    unit = NodeUnit(TOKEN.path, "/opt/leafcast/bin/leafcast", "/etc/leafcast/nodes/x.join")
    with pytest.raises(ServiceUnusable, match=f"journalctl -u {NAME}.*it is disabled until this"):
        Services(tmp_path).install(unit, "tls://a b")
    last, before = asked.read_text().splitlines()[:-3:-1]
    assert (before, last) == (f"restart {NAME}.service", f"disable --now {NAME}.service")


def test_a_service_that_does_not_come_up_says_what_it_may_wait_for(tmp_path, monkeypatch):
    program = tmp_path / "systemctl"
    program.write_text('#!/bin/sh\ntest "$1" != restart || exec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setattr(installed, "SYSTEMCTL", str(program))
    monkeypatch.setattr(installed, "_ASKED_SECONDS", 1)
    monkeypatch.setattr(Services, "is_live", True)
    monkeypatch.setattr(installed, "BOOTED", tmp_path)
    unit = NodeUnit(TOKEN.path, "/opt/leafcast/bin/leafcast", "/etc/leafcast/nodes/x.join")
    with pytest.raises(ServiceUnusable, match=r"not done after 1 s.*network-online.*journalctl"):
        Services(tmp_path).install(unit, "tls://a b")


def test_where_systemd_does_not_run_no_service_is_written(image, invitation, monkeypatch):
    monkeypatch.setattr(Services, "is_live", True)
    monkeypatch.setattr(installed, "BOOTED", image / "run/systemd/system")
    before = {*image.rglob("*")}
    code, said = leafcast("join", invitation, "--service", "--service-root", image)
    assert code == 1
    assert "systemd does not run here; start `leafcast join` there" in said
    assert "--service-root DIR" in said
    assert {*image.rglob("*")} == before


@pytest.mark.parametrize("program", ["systemctl", "/nowhere/systemctl"])
def test_where_systemd_does_not_run_a_service_that_was_written_leaves(
    image, invitation, monkeypatch, program
):
    """It is of an image that runs as a container, which perhaps has no systemd."""
    need_systemd("systemctl")
    before = {*image.rglob("*")}
    assert leafcast("join", invitation, "--service", "--service-root", image)[0] == 0
    (image / STATE / NAME / "node").mkdir(parents=True)
    monkeypatch.setattr(Services, "is_live", True)
    monkeypatch.setattr(installed, "BOOTED", image / "run/systemd/system")
    monkeypatch.setattr(installed, "SYSTEMCTL", program)
    code, said = leafcast("leave", "--yes", "--service-root", image)
    assert code == 0, said
    assert not {it for it in image.rglob("*") if not it.is_dir() or it.is_symlink()} - before
    assert not (image / STATE / NAME).exists()


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20))
def test_a_word_of_a_unit_is_one_word_again(word):
    """By the rules of systemd.service(5) and systemd.syntax(7)."""
    text = quoted(word)
    inner = text[1:-1] if text.startswith('"') else text
    plain = re.sub(r"\\(.)", r"\1", inner) if text.startswith('"') else inner
    assert plain.replace("$$", "$").replace("%%", "%") == word
    if not text.startswith('"'):
        assert not set(text) & set(" \t\"'\\;")
        assert text


def test_names_of_units_are_told_apart():
    paths = ("/", "/a", "/a-b", "/a/b", "/centre")
    names = [NodeUnit(NodePath.parse(path), "/leafcast", "/join").name for path in paths]
    assert len({*names}) == len(paths)


def heard(own, count):
    """What the manager heard, when it has heard so much."""
    return [own.recv(100).decode() for _ in range(count)]


@pytest.mark.parametrize("abstract", [False, True])
async def test_the_manager_hears_that_the_loop_turns_and_nothing_of_one_that_hangs(
    tmp_path, monkeypatch, abstract
):
    address = f"@leafcast-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.bind("\0" + address[1:] if abstract else address)
        own.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "30000")
        said = []

        async def work():
            said.extend(await asyncio.to_thread(heard, own, 5))

        await attended(work())
        assert said == ["READY=1", *["WATCHDOG=1"] * 4]
        own.settimeout(0)
        while True:
            try:
                own.recv(100)
            except BlockingIOError:
                break
        # The loop does something else, and the time in which it was to be heard of passes.
        monkeypatch.setenv("WATCHDOG_USEC", "3000")
        own.settimeout(0.3)
        with pytest.raises(TimeoutError):
            own.recv(100)


def test_without_a_manager_nobody_is_told():
    ServiceManager.of({}).tell("READY=1")
    ServiceManager.of({"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "soon"}).tell("READY=1")
    assert ServiceManager.of({"WATCHDOG_USEC": "-5"}).watchdog_seconds == 0
