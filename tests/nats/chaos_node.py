"""One process of a chaos tree: the program as it is, with other timings and a clock that can jump.

`python -m tests.nats.chaos_node SETTINGS MODULE WORD...` runs MODULE as if it were called itself.
SETTINGS is JSON: names of constants such as `relay.core.children.HEARTBEAT_SECONDS` to values, each
set before anyone has read it. `clock` names a file with milliseconds to add to the wall clock, read
again at each SIGUSR1. `dies_rekeying` kills the process as it carries over so many batches, of 10
messages each. It ends with the standard input, so that no test leaves one behind.
"""

import json
import os
import runpy
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

from relay.adapters import clock as adapter
from relay.adapters import jetstream_rekeying as rekeying
from relay.core.events import Instant


def use_clock(file: Path) -> None:
    """Put a clock in the place of the machine's that is ahead by what the file says."""
    ahead = {"ms": 0}

    def read(*_: object) -> None:
        ahead["ms"] = int(file.read_text()) if file.exists() else 0

    class JumpingClock(adapter.SystemClock):
        def now(self) -> Instant:
            true = super().now()
            return Instant(true.seconds, true.wall_ms + ahead["ms"])

    read()
    signal.signal(signal.SIGUSR1, read)
    adapter.SystemClock = JumpingClock


def die_rekeying(batches: int) -> None:
    """Be killed before so manieth batch is carried over."""
    honest, left = rekeying._Copy.flush, [batches]
    rekeying.BATCH_MESSAGES = 10

    async def flush(copy: rekeying._Copy) -> None:
        left[0] -= bool(copy.batch)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        await honest(copy)

    rekeying._Copy.flush = flush


def end_with_the_test() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    threading.Thread(target=end_with_the_test, daemon=True).start()
    settings, module, *words = sys.argv[1:]
    for name, value in json.loads(settings).items():
        if name == "clock":
            use_clock(Path(value))
        elif name == "dies_rekeying":
            die_rekeying(value)
        else:
            owner, _, constant = name.rpartition(".")
            assert hasattr(import_module(owner), constant), name
            setattr(import_module(owner), constant, value)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
