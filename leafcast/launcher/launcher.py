"""The launcher, running: it looks, decides, writes that down, and does it.

It has one thread and waits for signals: that the child ended, that it is told to end, or that it
is time to look again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic, time_ns
from typing import TextIO

from leafcast.launcher.dead_releases import DeadReleases
from leafcast.launcher.decisions import (
    ON_TRIAL,
    Install,
    InstallResult,
    LaunchLimits,
    Seen,
    Start,
    Step,
    Stop,
    Tidy,
    decide,
)
from leafcast.launcher.launch_folder import AGAIN_BY_ITSELF, LaunchFolder
from leafcast.launcher.launched_node import SIGNALS, LaunchedNode, as_child, hold_child_lock, locked
from leafcast.service.watchdog import manager
from schemas.releases.release_folder import LAUNCHER_LOCK, LaunchNote, LaunchState, WantedRelease

LOCK_SECONDS = 1.0
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 5.0, 60.0
SILENT_SECONDS = 60.0
"""A child that answered and does so no more is ended after this, and started again."""
INSTALL_SECONDS = 1_800.0
INSTALL_AGAIN_SECONDS, INSTALL_AGAIN_SECONDS_MAX = 60.0, 3_600.0
"""After so long what was refused for a passing reason is tried again, then after twice that."""
IDLE_FACTOR = 5


class LauncherRuns(Exception):
    """Another launcher looks after this folder; says which, and what to do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"{folder}: a launcher runs there already; end it first")


@dataclass(slots=True)
class _Health:
    """What the child said of itself since it was started."""

    since: float
    first_ready: float | None = None
    is_ready: bool = False
    unready_since: float = 0.0
    why: str = ""
    answered: float | None = None


class Launcher:
    """Runs a node with these words, and the releases that come for it."""

    def __init__(
        self,
        folder: LaunchFolder,
        words: Sequence[str],
        limits: LaunchLimits,
        look_seconds: float,
        log: TextIO = sys.stderr,
    ) -> None:
        self._folder = folder
        self._words = words
        self._limits = limits
        self._look_seconds = look_seconds
        self._log = log
        self._note = folder.note()
        self._node: LaunchedNode | None = None
        self._health = _Health(monotonic(), unready_since=monotonic())
        self._ended, self._again_at, self._again_seconds = "", 0.0, AGAIN_SECONDS
        self._dead = DeadReleases(folder)
        self._worker: subprocess.Popen[str] | None = None
        self._worker_wish: WantedRelease | None = None
        self._worker_since = 0.0
        self._installed: InstallResult | None = None
        # How often something of what was wanted last had been altered here.
        self._asked: WantedRelease | None = None
        self._altered = 0
        # Why a launcher before this one was refused something may have passed, too.
        self._install_again_seconds = INSTALL_AGAIN_SECONDS
        self._install_again_at = monotonic() + INSTALL_AGAIN_SECONDS
        self._child_lock = -1
        # Why the note could not be written last; "" if it was.
        self._unwritten = ""

    def run(self) -> None:
        """Go on until it is told to end; raises LauncherRuns."""
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        lock = os.open(
            self._folder.folder / LAUNCHER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        # A node that looks whether a launcher runs holds it for a moment.
        if not locked(lock, LOCK_SECONDS):
            raise LauncherRuns(self._folder.folder)
        self._child_lock = hold_child_lock(self._folder.folder)
        # Where it lies, the node knows that a launcher looks after it.
        self._note = replace(self._note, since=self._note.since or _now())
        self._write(self._note)
        manager().tell("READY=1")
        try:
            while True:
                self._step()
                manager().tell("WATCHDOG=1")
                told = signal.sigtimedwait(SIGNALS, self._wait_seconds())
                if told is not None and told.si_signo != signal.SIGCHLD:
                    return
        finally:
            manager().tell("STOPPING=1")
            if self._worker is not None:
                self._worker.kill()
                self._worker.wait()
            if self._node is not None:
                self._node.stop()

    def _step(self) -> None:
        self._look_at_worker()
        self._look_at_node()
        note, steps = decide(self._note, self._seen(), self._limits)
        if self._keep(note):
            for step in steps:
                self._perform(step)

    def _wait_seconds(self) -> float:
        """Where nothing is going on it looks less often."""
        idle = self._note.state not in (*ON_TRIAL, LaunchState.INSTALLING) and self._health.is_ready
        return self._look_seconds * (IDLE_FACTOR if idle else 1)

    def _seen(self) -> Seen:
        node, health, wish = self._node, self._health, self._folder.wanted()
        return Seen(
            now=monotonic(),
            startable=self._folder.startable(),
            base=self._folder.base,
            wish=wish,
            turn_waits=self._unwritten or (self._folder.waits(wish) if wish is not None else ""),
            child=node.version if node else "",
            child_since=health.since,
            ended=self._ended,
            dead=self._dead.versions,
            again_at=self._again_at,
            first_ready=health.first_ready,
            is_ready=health.is_ready,
            unready_since=health.unready_since,
            unready_why=health.why,
            installing=self._worker_wish,
            installed=self._installed,
            install_again_at=self._install_again_at,
        )

    def _look_at_node(self) -> None:
        node, health, now = self._node, self._health, monotonic()
        if node is None:
            return
        if not node.ended:
            why = node.unready()
            if why is None:
                if health.answered is not None and now - health.answered >= SILENT_SECONDS:
                    node.kill()
            else:
                health.answered = now
            is_ready = why == ""
            if is_ready and health.first_ready is None:
                health.first_ready = now
                self._dead.forget()
            if health.is_ready and not is_ready:
                health.unready_since = now
            health.is_ready, health.why = is_ready, why or "it does not answer at its health port"
        if node.ended:
            self._node = None
            self._over(node.version, node.ended)

    def _over(self, version: str, ended: str) -> None:
        """One run of a version ended by itself, or did not even begin."""
        now, health = monotonic(), self._health
        self._ended = ended
        self._say(f"{version} ended: {ended}")
        if now - health.since >= AGAIN_SECONDS_MAX:
            self._again_seconds = AGAIN_SECONDS
        self._again_at = now + self._again_seconds
        self._again_seconds = min(2 * self._again_seconds, AGAIN_SECONDS_MAX)
        if health.first_ready is None and self._note.state not in ON_TRIAL:
            self._dead.ended(version, ended, has_answered=health.answered is not None)
        self._health = _Health(now, unready_since=now)

    def _look_at_worker(self) -> None:
        worker, wish = self._worker, self._worker_wish
        if worker is None or wish is None:
            return
        if worker.poll() is None:
            if monotonic() - self._worker_since < INSTALL_SECONDS:
                return
            worker.kill()
        said, trouble = worker.communicate()
        try:
            form = json.loads(said)
            refused, is_passing = str(form["refused"]), bool(form["passing"])
            self._altered = int(form["altered"])
        except (ValueError, KeyError, TypeError):
            last = (trouble.strip() or f"code {worker.returncode}").splitlines()[-1]
            refused = f"installing: it ended before it was done ({last}); {AGAIN_BY_ITSELF}"
            is_passing = True
        if is_passing:
            self._install_again_at = monotonic() + self._install_again_seconds
            self._install_again_seconds = min(
                2 * self._install_again_seconds, INSTALL_AGAIN_SECONDS_MAX
            )
        else:
            self._install_again_seconds = INSTALL_AGAIN_SECONDS
        self._installed = InstallResult(wish, refused, is_passing)
        self._worker = self._worker_wish = None

    def _keep(self, note: LaunchNote) -> bool:
        """Go on by it, and write it down if it is new.

        What cannot be written holds back only a release that would be tried: a node that ended is
        started, and one that does not work is taken back, whatever the disk does.
        """
        before, is_new = self._note, _told(note) != _told(self._note)
        note = replace(note, since=_now() if is_new else before.since)
        is_written = (note == before and not self._unwritten) or self._write(note)
        if not is_written and note.is_on_trial and not before.is_on_trial:
            return False
        if is_new:
            self._say(_in_words(note, self._folder.wanted()))
        self._note = note
        return True

    def _write(self, note: LaunchNote) -> bool:
        """Have the disk say it, and then `current` lead there; whether it does."""
        before, self._unwritten = self._unwritten, ""
        try:
            self._folder.keep(note)
            self._folder.point(note.running)
        except OSError as error:
            self._unwritten = f"{self._folder.folder}: {error.strerror}"
            if self._unwritten != before:
                goes_on = "what runs goes on, and no release is tried before that"
                self._say(f"{self._unwritten}; make room, or mend it: {goes_on}")
        return not self._unwritten

    def _perform(self, step: Step) -> None:
        match step:
            case Install(wish):
                self._install(wish)
            case Stop():
                if self._node is not None:
                    self._node.stop()
                self._node, self._ended, self._again_at = None, "", 0.0
            case Start(version):
                self._start(version)
            case Tidy(keep):
                self._folder.tidy(keep)

    def _install(self, wish: WantedRelease) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.wait()
        if wish != self._asked:
            self._asked, self._altered = wish, 0
        self._worker = subprocess.Popen(  # noqa: S603 - this program
            [
                sys.executable,
                "-P",
                "-m",
                "leafcast.launcher.installation",
                str(self._folder.folder),
                self._folder.base,
                self._note.running,
                str(self._altered),
                wish.text,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=partial(as_child, signal.SIGKILL),  # noqa: PLW1509 - there is one thread
        )
        self._worker_wish, self._worker_since, self._installed = wish, monotonic(), None
        self._install_again_at = inf

    def _start(self, version: str) -> None:
        now = monotonic()
        self._ended, self._health = "", _Health(now, unready_since=now)
        # Where nothing can be written no release is tried, whatever the turn says.
        with suppress(OSError):
            self._folder.forget_turn()
        try:
            self._node = LaunchedNode(
                version, self._folder.python_of(version), self._words, self._child_lock
            )
        except OSError as error:
            self._over(version, f"{error.strerror}")

    def _say(self, text: str) -> None:
        print(f"leafcast-launcher: {text}", file=self._log, flush=True)


def _told(note: LaunchNote) -> tuple[str, LaunchState, str]:
    """What of a note people are told."""
    return note.running, note.state, note.why


def _in_words(note: LaunchNote, wish: WantedRelease | None) -> str:
    """A line for people: which release it is about, if that is another than runs."""
    why = f": {note.why}" if note.why else ""
    waits = note.state in (LaunchState.INSTALLING, LaunchState.REFUSED)
    if not waits or wish is None or wish.version == note.running:
        return f"{note.running}: {note.state}{why}"
    return f"{wish.version}: {note.state}, and {note.running} runs{why}"


def _now() -> str:
    """The time of day, for people."""
    return datetime.fromtimestamp(time_ns() // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
