"""Commands as processes of their own, forked from one that has loaded all modules of commands.

Of a short command most of the time goes into loading what a thousand commands before it loaded,
too. Here each still is a process with its own environment, folder and files; only the loading is
done once, by a process that runs no command itself. Who asks what a start loads, says so by a
variable of Python's, and Python is started anew.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

ROOT = Path(__file__).resolve().parents[2]
MESSAGE_BYTES_MAX = 150_000
LOADED = ("leafcast.ask", "leafcast.cli", "leafcast.show")
OURS = {"PYTHONPATH": str(ROOT)}


class Forker:
    """Starts commands of this process's tests; ends with it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                env={**os.environ, **OURS},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._socket = ours

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        said: str | None = None,
        seconds: float | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with its output, for `leafcast` with these words."""
        with ExitStack() as stack:
            given, out, err = (stack.enter_context(TemporaryFile()) for _ in range(3))
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            stack.enter_context(ours)
            given.write((said or "").encode())
            given.seek(0)
            asked = json.dumps([list(words), dict(environment), str(Path.cwd())]).encode()
            with theirs:
                files = [it.fileno() for it in (given, out, err, theirs)]
                socket.send_fds(self._socket, [asked], files)
            code = self._ended(ours, words, seconds)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode().replace("\r\n", "\n"))
        return subprocess.CompletedProcess(["leafcast", *words], code, *texts)

    def _ended(self, ours: socket.socket, words: Sequence[str], seconds: float | None) -> int:
        """Wait for the exit code; who takes too long is killed."""
        ours.settimeout(seconds)
        with ours.makefile("rb") as told:
            pid = int(told.readline())
            try:
                return int(told.readline())
            except TimeoutError as error:
                os.kill(pid, signal.SIGKILL)
                assert seconds is not None
                raise subprocess.TimeoutExpired([*words], seconds) from error


def run_command(
    words: Sequence[str],
    environment: Mapping[str, str],
    said: str | None = None,
    seconds: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `leafcast` with these words to its end, forked where it would be this same program."""
    told = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    own = {name: value for name, value in os.environ.items() if name.startswith("PYTHON")}
    if told == {**own, **OURS}:
        return _forker().run(words, environment, said, seconds)
    return subprocess.run(
        [sys.executable, "-m", "leafcast", *words],
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


_forkers = dict[int, Forker]()
_starting = threading.Lock()


def _forker() -> Forker:
    """That of this process, started when it is first needed."""
    with _starting:
        if os.getpid() not in _forkers:
            _forkers[os.getpid()] = Forker()
        return _forkers[os.getpid()]


def load() -> None:
    """Load what commands load, and leave nothing of it to a search for garbage."""
    for name in LOADED:
        for module in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            import_module(module.name)
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1, "a fork has one thread alone, and the locks of all"


def serve(asked: socket.socket) -> None:
    """Fork for each who asks; returns in the fork, with the command to run, or ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, files, _, _ = socket.recv_fds(asked, MESSAGE_BYTES_MAX, 4)
        if not message:
            sys.exit()
        if os.fork() == 0:
            asked.close()
            _watch(message, files)
            return
        for file in files:
            os.close(file)


def _watch(message: bytes, files: list[int]) -> None:
    """Return in a process that is the command; tell of its end in another one."""
    *given, reply = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, environment, folder = json.loads(message)
    pid = os.fork()
    if pid:
        os.write(reply, b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            os.write(reply, b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    os.close(reply)
    for number, file in enumerate(given):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["leafcast", *words]


def main() -> None:
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
    code: object = 0
    try:
        runpy.run_module("leafcast", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    # As the interpreter ends, but for taking apart what others share with it.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
