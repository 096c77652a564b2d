"""A signal ends the work, also where a cancellation gets lost on the way."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, os, signal
from leafcast import signals
signals.STOPPING_SECONDS = signals.INSISTING_SECONDS = 0.05
# What runs the tests may ignore it, and what it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
async def forgetful():
    for _ in range({lost}):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
    await asyncio.Event().wait()
async def work():
    async with asyncio.TaskGroup() as group:
        group.create_task(forgetful())
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGINT)
try:
    signals.run_until_signal(work())
except signals.EndedBySignal as ended:
    raise SystemExit(ended.exit_code + 1)
"""


def ended(lost: int) -> int:
    program = PROGRAM.format(lost=lost)
    return subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode


def test_who_forgot_a_cancellation_is_told_again_and_ends_in_good_order():
    assert ended(lost=3) == 131


def test_who_forgets_them_all_is_left_to_the_guardian():
    assert ended(lost=1000) == 130
