"""Starting, watching and stopping the process that keeps a tree running."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from leafcast.daemon.logs import error_in
from leafcast.data_dir import OTHERS, DataDir, DataDirUnusable, check_owner, make_private
from leafcast.local.views import TreeShape
from leafcast.node.health_endpoint import HealthAddress
from leafcast.node.kept_health import keep_health, kept_health
from relay.ports import Clock

FREE_BYTES_MIN = 200_000_000
LOOK_SECONDS = 0.1
STOP_SECONDS = 30.0
STRANGE_SECONDS = 3.0
LOG_LINES_SHOWN = 8
TAKE_OVER, OF_MEMBERS, HEALTH = "--take-over", "--members", "--health="
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
_OURS = frozenset(
    {
        "listen.json",
        "store.json",
        "health.json",
        "lock",
        "daemon.log",
        "daemon.json",
        "daemon.json.new",
        "tree.json.new",
        "joined",
        # A launcher, and who pins a publisher, may be there before the tree.
        "releases",
    }
)


class DaemonEnded(Exception):
    """The daemon ended though nobody told it to; `lines` are the last it said."""

    def __init__(self, log: Path, lines: list[str], what: str = "the tree did not start") -> None:
        said = lines or ["it said nothing"]
        super().__init__("\n".join([f"{what}:", *said, f"all it said: {log}"]))
        self.lines = lines


class NotUpInTime(Exception):
    """The tree goes on starting, but took longer than the user waits."""

    def __init__(self, seconds: float, doing: str) -> None:
        self.late = f"the tree is not up after {seconds:g} s ({doing})"
        super().__init__(
            f"{self.late}; it goes on in the background: "
            "see `leafcast tree`, or stop it with `leafcast down`"
        )


def prepare_folder(place: DataDir) -> None:
    """Make the folder, and refuse what cannot hold a tree; raises DataDirUnusable."""
    folder = place.folder
    remedy = "name another --data-dir"
    try:
        make_private(folder)
        strangers = [item.name for item in folder.iterdir() if item.name not in _OURS]
    except (FileExistsError, NotADirectoryError) as error:
        raise DataDirUnusable(folder, "it is not a directory", remedy) from error
    except OSError as error:
        raise DataDirUnusable(folder, f"cannot be used: {error.strerror}", remedy) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataDirUnusable(folder, "it is read-only", remedy)
    if place.is_half_restored():
        reason = "a `leafcast restore` into it was cut off"
        raise DataDirUnusable(folder, reason, "say the same once more: it begins anew")
    if strangers and place.tree() is None:
        reason = f"it holds no tree, but {min(strangers)!r} and the like"
        raise DataDirUnusable(folder, reason, "name an empty or a new folder")
    check_room(folder, shutil.disk_usage(folder).free)


def check_room(folder: Path, free: int) -> None:
    """Refuse a disk that is nearly full: JetStream would stop in the middle of things."""
    if free < FREE_BYTES_MIN:
        reason = f"{free // 1_000_000} MB are free, at least {FREE_BYTES_MIN // 1_000_000} needed"
        raise DataDirUnusable(folder, reason, "make room, or name a --data-dir on another disk")


def start_daemon(
    place: DataDir,
    shape: TreeShape,
    kube: str | None = None,
    *,
    take_over: bool = False,
    trios: bool = False,
    health: HealthAddress | None = None,
    outlives: bool = True,
) -> subprocess.Popen[bytes]:
    """Start it in a session of its own, so that it outlives this terminal.

    Without `health` it answers where a start before said. Without `outlives` it is ended with
    whoever starts it, however that ends: a launcher would start another release beside it. Raises
    DataDirUnusable.
    """
    place.forget_ended_daemon()
    if health is not None:
        keep_health(place.folder, health)
    else:
        health = kept_health(place.folder)
    package = str(Path(__file__).resolve().parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    wanted = [str(figure) for figure in (shape.regions, shape.sites, shape.depth)]
    wanted += [kube] if kube else []
    wanted += [TAKE_OVER] if take_over else []
    wanted += [OF_MEMBERS] if trios else []
    wanted += [f"{HEALTH}{health}"] if health is not None else []
    with private_log(place.log) as output:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-P", "-m", "leafcast.daemon", str(place.folder), *wanted],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=place.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
            umask=OTHERS,
            preexec_fn=None if outlives else _end_with_parent,  # noqa: PLW1509 - one thread
        )


def _end_with_parent() -> None:
    """In a child that begins; elsewhere than on Linux nothing runs below a launcher."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def private_log(file: Path) -> IO[bytes]:
    """The file, to write at its end; its owner alone reads it, also one that others could read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


async def until_ready(
    place: DataDir,
    daemon: subprocess.Popen[bytes] | None,
    clock: Clock,
    seconds: float,
    doing: Callable[[str], None],
    *,
    outlives: bool = True,
) -> None:
    """Wait until the tree is up; `daemon` None watches one that someone else started.

    One that does not outlive us is waited for no longer, whatever it does. Raises DaemonEnded,
    NotUpInTime, or DataDirUnusable if a stranger has the directory.
    """
    offset = place.log.stat().st_size if place.log.exists() else 0
    until = clock.now().seconds + seconds
    strange_from = clock.now().seconds + STRANGE_SECONDS
    while True:
        ended = daemon.poll() is not None if daemon else not place.in_use()
        state = place.daemon() or {}
        if daemon is None and not state and clock.now().seconds > strange_from:
            reason = "another process uses it, which is no daemon of Leafcast"
            raise DataDirUnusable(place.folder, reason, "stop that, or name another --data-dir")
        if ended:
            raise DaemonEnded(place.log, _last_lines(place.log, offset))
        if state.get("ready") and (daemon is None or state.get("pid") == daemon.pid):
            return
        doing(str(state.get("doing", "starting")))
        # Who is told to use `leafcast down` is to find something there that can be stopped.
        if clock.now().seconds > until and (place.in_use() or not outlives):
            raise NotUpInTime(seconds, str(state.get("doing", "starting")))
        await clock.sleep(LOOK_SECONDS)


async def until_ended(place: DataDir, clock: Clock) -> NoReturn:
    """Watch a tree that is up; raises DaemonEnded once it is not any more."""
    offset = place.log.stat().st_size if place.log.exists() else 0
    while place.in_use():
        await clock.sleep(LOOK_SECONDS)
    raise DaemonEnded(place.log, _last_lines(place.log, offset), "the tree ended")


async def stop_daemon(place: DataDir, clock: Clock) -> bool:
    """Have the daemon stop its tree, and wait for it; False if none runs.

    One that does not end in time is made to, and its guardian then ends the servers. Raises
    DataDirUnusable.
    """
    # Whose daemon it is that the folder names is for its owner to say: he could name anyone's.
    check_owner(place.folder)
    if not place.in_use():
        return False
    until = clock.now().seconds + STOP_SECONDS
    told = 0
    while place.in_use():
        pid = int((place.daemon() or {}).get("pid", 0))
        late = clock.now().seconds > until
        if pid and (pid != told or late):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            told = pid
        await clock.sleep(LOOK_SECONDS)
    return True


async def stop_started(daemon: subprocess.Popen[bytes], clock: Clock) -> None:
    """Stop a daemon that we started, and that may not use its directory yet; as `stop_daemon`."""
    until = clock.now().seconds + STOP_SECONDS
    daemon.terminate()
    while daemon.poll() is None:
        if clock.now().seconds > until:
            daemon.kill()
        await clock.sleep(LOOK_SECONDS)


def _last_lines(log: Path, offset: int) -> list[str]:
    """What the daemon said since it was started: errors if it named any."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    errors = [*filter(None, map(error_in, lines))]
    return (errors or lines)[-LOG_LINES_SHOWN:]
