"""What the program starts does not outlive it, however it ends, kill -9 included.

A small shell process, the guardian, reads a pipe that only this program (and, for a moment, what it
starts) holds open. When the pipe ends, the program is gone: the guardian ends what is still
registered, removes the folders it was told of, and exits. It needs no feature of one system.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

# Lines: `+ pid`, `- pid`, `d folder`. It asks processes to end, and after five seconds makes them.
# On a busy machine one of them may still make a file where folders are being removed.
_GUARDIAN = """
trap '' INT TERM HUP
pids=' '
set --
while IFS= read -r line; do
  rest=${line#? }
  case $line in
    '+ '*) pids="$pids$rest " ;;
    '- '*) case $pids in *" $rest "*) pids="${pids%% "$rest" *} ${pids#* "$rest" }" ;; esac ;;
    'd '*) set -- "$@" "$rest" ;;
  esac
done
alive() { for pid in $pids; do kill -0 "$pid" 2>/dev/null && return 0; done; return 1; }
for pid in $pids; do kill -TERM "$pid" 2>/dev/null; done
rounds=0
while [ $rounds -lt 50 ] && alive; do rounds=$((rounds + 1)); sleep 0.1 || sleep 1; done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
[ $# -eq 0 ] && exit
rounds=0
until rm -rf -- "$@" || [ $rounds -eq 10 ]; do rounds=$((rounds + 1)); sleep 0.5 || sleep 1; done
"""
# A process registers itself before it becomes what was asked for: no moment without a guardian.
_REGISTER = 'echo "+ $$" >&0 && exec "$@" </dev/null'
_SHELL = "/bin/sh"


class GuardLost(RuntimeError):
    """The guardian process is gone, so nothing can be started safely; restart the program."""


class ProcessGuard:
    """The guardian, from `async with` on; at its end all that is still registered is ended."""

    def __init__(self) -> None:
        self._guardian: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    async def __aenter__(self) -> Self:
        # The guardian keeps none of our streams, so whoever reads our output sees its end.
        self._guardian = subprocess.Popen(  # noqa: ASYNC220, S603 - fixed command, a few milliseconds
            [_SHELL, "-c", _GUARDIAN],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        assert self._guardian.stdin is not None
        self._pipe = self._guardian.stdin.fileno()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        guardian = self._guardian
        assert guardian is not None
        assert guardian.stdin is not None
        self._pipe = -1
        guardian.stdin.close()
        await asyncio.to_thread(guardian.wait)

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stderr: int | IO[bytes],
        env: Mapping[str, str] | None = None,
        keeps: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a process that the guardian knows of, in its own session, its output discarded.

        Its environment is `env`, or this program's; it has the open files `keeps`, too. `release`
        it once it has ended. Raises GuardLost.
        """
        self._check()
        return subprocess.Popen(  # noqa: S603 - the caller's command, never a shell's text
            [_SHELL, "-c", _REGISTER, _SHELL, *command],
            stdin=self._pipe,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=keeps,
        )

    def release(self, pid: int) -> None:
        """Forget a process that has ended: its number may soon be another's."""
        self._tell(f"- {pid}")

    def remove_at_end(self, folder: Path) -> None:
        """Have the folder removed, with all in it, when the program has ended. Raises GuardLost."""
        if "\n" in str(folder):
            raise ValueError("a folder whose name has a line break cannot be guarded")
        self._tell(f"d {folder.resolve()}")

    def _tell(self, line: str) -> None:
        self._check()
        try:
            os.write(self._pipe, f"{line}\n".encode())
        except BrokenPipeError as error:
            raise GuardLost("the guardian process has ended") from error

    def _check(self) -> None:
        if self._pipe < 0:
            raise GuardLost("the guard is not open: use it in `async with`")
