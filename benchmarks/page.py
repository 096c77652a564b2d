"""What the page costs a browser at 10^5 edges beside 10^2, and its server with 50 viewers.

Facts come from an invented tree in memory, of which all that is on screen changes each second. The
browser is Debian's chromium. Both trees have as many regions, so that both show as many rows.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from statistics import median
from typing import Any, NamedTuple

from playwright.async_api import async_playwright

from benchmarks.report import Report, cpu_seconds
from leafcast.ui.page_place import PagePlace
from leafcast.ui.serving import listening, serve
from leafcast.ui.views import Views
from relay.adapters.clock import SystemClock, SystemDice
from schemas.values.identity import NodePath
from tests.doubles.page_facts import InventedFacts, placement
from tests.page_client import Client

SMALL, LARGE = (100, 1, 1), (100, 100, 10)
VIEWS = ("/tree", "/tree?as=table", "/placements/epl/shop")
ROUNDS, LOOK_SECONDS, WATCH_SECONDS = 3, 4.0, 12.0
VIEWERS = (1, 50)
RATIO, VIEWERS_RATIO = 2.0, 5.0
CHROMIUM = "/usr/bin/chromium"


class ChangingFacts(InventedFacts):
    """Everything on screen is another each time that it is looked at."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        super().__init__(*shape)
        self._ticks = count()

    async def level(self, at: NodePath, skip: int, search: str) -> dict[str, Any]:
        found, tick = await super().level(at, skip, search), next(self._ticks)
        children = [{**child, "lag": tick} for child in found["children"]]
        return {**found, "children": children}

    async def tier(self, name: str, at: NodePath, after: str, *, amiss: bool) -> dict[str, Any]:
        found, tick = await super().tier(name, at, after, amiss=amiss), next(self._ticks)
        rows = [{**row, "states": _states(row["destinations"], tick)} for row in found["rows"]]
        return {**found, "rows": rows}

    async def placement(self, name: str) -> dict[str, Any]:
        regions, sites, edges = self.shape
        whole = regions * sites * edges
        self.listed = [placement("shop", whole, synced=next(self._ticks) // 2 % 2 * whole)]
        return await super().placement(name)


def _states(whole: int, tick: int) -> dict[str, int]:
    """All there by turns, and none; a look takes a tick for the head, and one for the rows."""
    return {"synced": whole} if tick // 2 % 2 else {"pending": whole}


class Looked(NamedTuple):
    """What one view cost the browser."""

    first_paint_ms: float
    bytes_a_second: float
    nodes: float
    memory_kb: float


async def serve_here(shape: tuple[int, int, int]) -> None:
    """Serve the page of such a tree, and print its addresses."""

    def tell(address: str) -> None:
        print(address, flush=True)

    facts, place = ChangingFacts(shape), PagePlace()
    machine = SystemClock(), SystemDice()
    await serve(Views(facts, machine[0]), listening(place), place, tell, machine)


@asynccontextmanager
async def server_of(shape: tuple[int, int, int]) -> AsyncIterator[tuple[int, str]]:
    """Its process, and an address that lets one in."""
    words = [sys.executable, "-m", "benchmarks.page", *map(str, shape)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.pid, (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


async def looked(browser: Any, shape: tuple[int, int, int], view: str) -> Looked:
    """Open a view anew, and look at it for a while."""
    async with server_of(shape) as (_, address):
        context = await browser.new_context(viewport={"width": 1280, "height": 860})
        page = await context.new_page()
        await page.goto(address)
        await page.goto(address.partition("/?")[0] + view)
        await page.wait_for_selector("main[aria-busy='false']")
        session = await context.new_cdp_session(page)
        received = 0

        def note(event: dict[str, Any]) -> None:
            nonlocal received
            received += event["dataLength"]

        session.on("Network.dataReceived", note)
        await session.send("Network.enable")
        await session.send("Performance.enable")
        await asyncio.sleep(LOOK_SECONDS)
        paint = await page.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        )
        nodes = await page.evaluate("document.getElementsByTagName('*').length")
        await session.send("HeapProfiler.collectGarbage")
        figures = (await session.send("Performance.getMetrics"))["metrics"]
        heap = next(it["value"] for it in figures if it["name"] == "JSHeapUsedSize")
        await context.close()
        return Looked(paint, received / LOOK_SECONDS, nodes, heap / 1_000)


async def watched(viewers: int) -> float:
    """Seconds of processor time of the server, of a second, while so many look at one view."""
    async with server_of(LARGE) as (pid, address):
        client = Client()
        client.base = address.partition("/?")[0]
        async with client.asked(address.removeprefix(client.base)):
            pass
        heard = [0] * viewers

        async def view(number: int) -> None:
            async with client.asked("/api/v1/live/tree?path=/") as answer:
                async for _ in answer.events():
                    heard[number] += 1

        async with asyncio.TaskGroup() as group:
            viewing = [group.create_task(view(number)) for number in range(viewers)]
            while not all(heard):
                await asyncio.sleep(0.05)
            before = cpu_seconds(pid)
            await asyncio.sleep(WATCH_SECONDS)
            used = cpu_seconds(pid) - before
            for task in viewing:
                task.cancel()
        assert min(heard) >= WATCH_SECONDS / 2, heard
        return used / WATCH_SECONDS


async def measured(report: Report) -> None:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for view in VIEWS:
            seen: dict[tuple[int, int, int], list[Looked]] = {SMALL: [], LARGE: []}
            for _ in range(ROUNDS):
                for shape, found in seen.items():
                    found.append(await looked(browser, shape, view))
            for at, name in enumerate(Looked._fields):
                small, large = (median(it[at] for it in found) for found in seen.values())
                report.row(f"{view} {name}", round(small, 1), round(large, 1), large / small)
                report.goal(f"{view} {name}", large / small, RATIO)
        await browser.close()
    one, many = [await watched(viewers) for viewers in VIEWERS]
    report.row("server, CPU-s a second, 1 and 50 viewers", one, many, many / one)
    report.goal("server's CPU, 50 viewers over one", many / one, VIEWERS_RATIO)


def main() -> None:
    if shape := [int(word) for word in sys.argv[1:]]:
        asyncio.run(serve_here((shape[0], shape[1], shape[2])))
        return
    report = Report(
        "page",
        "The page at 10^5 edges beside 10^2, all that is on screen changing each second",
        ("figure", "at 10^2", "at 10^5", "ratio"),
    )
    asyncio.run(measured(report))
    report.finish()


if __name__ == "__main__":
    main()
