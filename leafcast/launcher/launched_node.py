"""The node that the launcher runs: a child process, and what it says of its health over HTTP."""

from __future__ import annotations

import ctypes
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

LOCK = "child.lock"
STOP_SECONDS = 45.0
"""Less than after which the service manager takes the launcher for dead."""
ASK_SECONDS = 2.0
ANSWER_MAX_BYTES = 16 * 1024
HEALTH_PORT, HEALTH_HOST = "--health-port", "--health-host"
_OF_THE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP")
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""
SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
"""What the launcher waits for; they stay blocked, so that none is missed."""


class LaunchedNode:
    """One run of a node. It holds a lock as long as any of it lives, whatever becomes of us."""

    def __init__(self, version: str, python: Path, words: Sequence[str], lock: int) -> None:
        self.version = version
        words = [part for word in words for part in _parted(word)]
        self._where = _health_address(words)
        own = python != Path(sys.executable)
        gone = (*_OF_THE_MANAGER, *(_OF_PYTHON if own else ()))
        if HEALTH_PORT not in words:
            words = [*words, HEALTH_PORT, str(self._where[1])]
        start = [str(python), "-I" if own else "-P", "-m", "leafcast", *words]
        self._process = subprocess.Popen(  # noqa: S603 - what the publisher signed
            start,
            stdin=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name not in gone},
            pass_fds=(lock,),
            preexec_fn=partial(as_child, signal.SIGTERM),  # noqa: PLW1509 - there is one thread
        )
        os.ftruncate(lock, 0)
        # It is for who ends a node that outlived its launcher: a full disk keeps none from running.
        with suppress(OSError):
            os.pwrite(lock, str(self._process.pid).encode(), 0)

    @property
    def ended(self) -> str:
        """How it ended; "" while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        return f"signal {-code}" if code < 0 else f"code {code}"

    def unready(self) -> str | None:
        """Why it is not ready, "" if it is; None if it does not answer at all."""
        asked = http.client.HTTPConnection(*self._where, timeout=ASK_SECONDS)
        try:
            asked.request("GET", "/readyz")
            answer = asked.getresponse()
            text = answer.read(ANSWER_MAX_BYTES).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return None
        finally:
            asked.close()
        if answer.status == http.HTTPStatus.OK:
            return ""
        failing = [line for line in text.splitlines() if line.startswith("[-]")]
        return "; ".join(failing) or f"it answers {answer.status}"

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """End it in good order, or after a while in any."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def as_child(at_our_end: signal.Signals) -> None:
    """In a child that begins: it hears signals, and is sent this one as the launcher ends."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, at_our_end)


def hold_child_lock(folder: Path, seconds: float = STOP_SECONDS) -> int:
    """A lock that no former child holds any more: one that outlived its launcher is ended."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for step in (signal.SIGTERM, signal.SIGKILL):
        if locked(lock, 0.0):
            break
        pid = os.pread(lock, 32, 0)
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(pid), step)
        if locked(lock, seconds):
            break
    else:
        locked(lock, float("inf"))
    return lock


def locked(lock: int, seconds: float) -> bool:
    """Take it; wait at most so long."""
    waited = 0.0
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waited >= seconds:
                return False
            signal.sigtimedwait((signal.SIGCHLD,), 0.1)
            waited += 0.1
        else:
            return True


def _health_address(words: Sequence[str]) -> tuple[str, int]:
    """Where it answers: as its words say, or at a port that is free now."""
    said = dict(zip(words, [*words[1:], ""], strict=True))
    host = said.get(HEALTH_HOST, "127.0.0.1")
    host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 - it is asked here
    if said.get(HEALTH_PORT, "").isdecimal():
        return host, int(said[HEALTH_PORT])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return "127.0.0.1", int(free.getsockname()[1])


def _parted(word: str) -> list[str]:
    """An option of ours and its value, whichever way they are written."""
    return word.split("=", 1) if word.startswith("--health-") else [word]
