"""Ends what the tests of a process leave running: one that is killed tears down no fixture.

So it is with Ctrl-C where several processes run the tests. All that a test starts has a mark in its
environment; a process beside the tests waits for their end, and looks for the mark then.
"""

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

MARK = "LEAFCAST_TEST_RUN"
PROCESSES = Path("/proc")
STOPPING_SECONDS, LOOK_SECONDS = 10, 0.1


def watch() -> subprocess.Popen[bytes] | None:
    """Mark what is started from now on; `end` it with what this returns, or end in any way."""
    if not (PROCESSES / "self" / "environ").exists():
        return None
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    os.environ[MARK] = uuid.uuid4().hex
    return subprocess.Popen(
        [sys.executable, __file__, os.environ[MARK]],
        stdin=subprocess.PIPE,
        env=unmarked,
        start_new_session=True,
    )


def end(watching: subprocess.Popen[bytes]) -> None:
    """End what is left now."""
    watching.communicate(b"now")


def marked(token: str) -> list[int]:
    """The processes that a run of tests started, and what these started."""
    mark, found = f"{MARK}={token}".encode(), []
    for entry in PROCESSES.iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # It ended, or is another user's.
            continue
    return found


def reap(token: str) -> None:
    """Have them end, in good order if they do it soon."""
    until = time.monotonic() + STOPPING_SECONDS
    told: set[int] = set()
    while pids := marked(token):
        late = time.monotonic() > until
        for pid in pids if late else {*pids} - told:
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except ProcessLookupError:
                continue
        told.update(pids)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    sys.stdin.buffer.read(1)
    reap(sys.argv[1])
