"""One run of the demo: a tree is started, a workload applied and watched, and all stopped again."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from leafcast.demo.progress import DemoProgress
from leafcast.local.tree import LocalTree
from leafcast.local.views import TreeView
from relay.ports import Clock

TICK_SECONDS = 0.25
"""A picture at least this often: spinners turn and seconds count while nothing happens."""


Show = Callable[[TreeView, DemoProgress, float], None]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the tree's state, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="leafcast-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def run_demo(
    tree: LocalTree,
    progress: DemoProgress,
    clock: Clock,
    show: Show,
    *,
    timeout_seconds: float,
    keep_running: bool,
) -> TreeView:
    """Start the tree, apply the workload, and watch until all is healthy or time is up.

    With `keep_running` it goes on after that until cancelled. Returns the last view, once all is
    stopped again. Raises what the tree's run raises, in groups.
    """
    until = progress.began + timeout_seconds
    async with asyncio.TaskGroup() as group:
        running = group.create_task(tree.run(), name="tree")
        applying = group.create_task(_apply(tree, progress, clock), name="apply")
        while True:
            view, now = tree.view(), clock.now().seconds
            progress.observe(view, now)
            show(view, progress, now)
            done = progress.healthy is not None
            if (done and not keep_running) or (not done and now >= until):
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await tree.centre.changed()
        applying.cancel()
        running.cancel()
    return view


async def _apply(tree: LocalTree, progress: DemoProgress, clock: Clock) -> None:
    await tree.up.wait()
    progress.up = progress.applied = clock.now().seconds
    await tree.centre.apply(progress.workload.objects)
