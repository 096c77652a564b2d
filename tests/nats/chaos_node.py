"""One process of a chaos tree: the program as it is, with other timings and a clock that can jump.

`python -m tests.nats.chaos_node SETTINGS MODULE WORD...` runs MODULE as if it were called itself.
SETTINGS is JSON: names of constants such as `relay.core.link.session.HELLO_SECONDS` to values, each
set before anyone has read it, and names of files for what else is other than it is:

- `clock` holds milliseconds to add to the wall clock, read again at each SIGUSR1;
- `tally` gets a line with the name of each ConfigMap that a cluster is asked to hold, or with its
  name after a minus where it is asked to drop it, also if nothing differs;
- `counts` gets, at each SIGUSR2, what the process holds once all garbage is collected, as JSON;
- `lies`: while it exists, the relay lies to its children in the ways that stand in it
  (tests.nats.chaos_lies).
- `ends`: while it exists, before which step of a command the process ends (tests.nats.chaos_steps).
- `stops`: where the process stops itself (tests.nats.chaos_stops).
- `deaf`: while it exists, the node says hello and reads nothing of its mailbox.

`unsynced` has files of the program's own be written and never synced. `dies_rekeying` kills the
process as it carries over so many batches, of 10 messages each. All ends with the standard input,
so that no test leaves a process behind.
"""

import asyncio
import ctypes
import gc
import json
import os
import runpy
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path

from relay import atomic_file
from relay.adapters import clock as adapter
from relay.adapters.jetstream import stream_copy
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.core.events import Event, MailArrived
from relay.core.instant import Instant
from relay.shell.inbox import Inbox
from schemas.objects.objects import ObjectKey
from tests.awaiting import LOOK_SECONDS
from tests.nats.chaos_lies import lie
from tests.nats.chaos_steps import end_before_a_step
from tests.nats.chaos_stops import stop_at


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
    honest, left = stream_copy.StreamCopy.flush, [batches]
    stream_copy.BATCH_MESSAGES = 10

    async def flush(copy: stream_copy.StreamCopy) -> None:
        left[0] -= bool(copy.batch)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        await honest(copy)

    stream_copy.StreamCopy.flush = flush


def keep_tally(file: Path) -> None:
    """Count what the cluster is asked for before it is done: no write is ever seen uncounted."""
    tally = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    honest_apply, honest_delete = EmbeddedSpace.apply, EmbeddedSpace.delete

    async def apply(space: EmbeddedSpace, obj: dict, *rest: object, **named: object) -> dict:
        if obj["kind"] == "ConfigMap":
            os.write(tally, f"{obj['metadata']['name']}\n".encode())
        return await honest_apply(space, obj, *rest, **named)

    async def delete(space: EmbeddedSpace, key: ObjectKey, *rest: object, **named: object) -> bool:
        if key.resource == "configmaps":
            os.write(tally, f"-{key.name}\n".encode())
        return await honest_delete(space, key, *rest, **named)

    EmbeddedSpace.apply, EmbeddedSpace.delete = apply, delete


MALLINFO2 = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class MallInfo(ctypes.Structure):
    """What glibc says of its heap, by its own names."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in MALLINFO2.split())


def c_heap() -> int:
    """Bytes in use that the C library gave out, also those it mapped apart; 0 if it cannot tell."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        return 0
    tell.restype = MallInfo
    told = tell()
    return told.uordblks + told.hblkhd


def count_what_is_held(file: Path) -> None:
    """Count blocks of memory and tasks; a full collection empties the interpreter's free lists.

    Python takes small objects from blocks of its own, and larger ones from the C library: these
    are `heap`, the bytes in use.
    """

    def count(*_: object) -> None:
        gc.collect()
        tasks = len(asyncio.all_tasks(asyncio.get_running_loop()))
        held = {"blocks": sys.getallocatedblocks(), "heap": c_heap(), "tasks": tasks}
        whole = file.with_suffix(".whole")
        whole.write_text(json.dumps(held))
        whole.replace(file)

    signal.signal(signal.SIGUSR2, count)


def hear_nothing(while_there: Path) -> None:
    """Lose all mail; once the file is gone, read what was lost."""
    honest, lost, reading = Inbox.put, list[MailArrived](), set[asyncio.Task[None]]()

    async def read(inbox: Inbox) -> None:
        while lost:
            if while_there.exists():
                await asyncio.sleep(LOOK_SECONDS)
            else:
                await honest(inbox, lost.pop(0))

    async def put(inbox: Inbox, event: Event) -> None:
        if isinstance(event, MailArrived) and (lost or while_there.exists()):
            lost.append(event)
            if len(lost) == 1:
                reading.add(asyncio.create_task(read(inbox)))
            return
        await honest(inbox, event)

    Inbox.put = put


TOLD = {
    "deaf": hear_nothing,
    "clock": use_clock,
    "tally": keep_tally,
    "counts": count_what_is_held,
    "lies": lie,
    "stops": stop_at,
    "ends": end_before_a_step,
}


def end_with_the_test() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    threading.Thread(target=end_with_the_test, daemon=True).start()
    settings, module, *words = sys.argv[1:]
    for name, value in json.loads(settings).items():
        if name in TOLD:
            TOLD[name](Path(value))
        elif name == "dies_rekeying":
            die_rekeying(value)
        elif name == "unsynced":
            atomic_file._sync = lambda _descriptor: None
        else:
            owner, _, constant = name.rpartition(".")
            assert hasattr(import_module(owner), constant), name
            setattr(import_module(owner), constant, value)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
