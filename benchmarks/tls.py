"""What TLS costs a link: the same messages in clear and with TLS, by turns, in one run."""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.report import Report, cpu_seconds
from relay.adapters.server.leaf_address import LeafAddress
from tests.awaiting import eventually
from tests.nats.conftest import Grove, Node, in_force
from tests.nats.test_tls import Certified

ROUNDS = 12
ONE_BY_ONE = 500
BURST = 20_000
SIZE = 300
SUBJECT = "lc._d.ea.m"
P50_MOST, THROUGHPUT_LEAST = 1.3, 0.8


@dataclass
class Way:
    """One link from a parent to a child, and what was measured over it."""

    name: str
    parent: Node
    child: Node
    above: Client
    got: int = 0
    wanted: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)
    p50_ms: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    async def arrived(self, _message: Msg) -> None:
        self.got += 1
        if self.got >= self.wanted:
            self.came.set()

    async def deliver(self, count: int) -> float:
        """Seconds until so many messages have come, all sent at once."""
        self.got, self.wanted = 0, count
        self.came.clear()
        began = time.perf_counter()
        for number in range(count):
            await self.above.publish(SUBJECT, bytes(SIZE))
            if number % 1000 == 999:
                await self.above.flush()
        await self.above.flush()
        await self.came.wait()
        return time.perf_counter() - began

    async def round(self) -> None:
        singles = [await self.deliver(1) for _ in range(ONE_BY_ONE)]
        self.p50_ms.append(median(singles) * 1000)
        self.per_second.append(BURST / await self.deliver(BURST))

    def cpu(self) -> float:
        return sum(cpu_seconds(node.server.pid) for node in (self.parent, self.child))


async def way(grove: Grove, name: str, reach: LeafAddress | None, certified: Certified) -> Way:
    """A link that is open, its child listening."""
    parent = await grove.plant(leaf_address=reach)
    child = await grove.plant("/ea", parent, certified.link if reach is not None else None)
    made = Way(name, parent, child, await grove.connect(parent, parent.seeds.relay))
    below = await grove.connect(child, child.seeds.uplink)
    await below.subscribe(SUBJECT, cb=made.arrived)
    await in_force(below)

    async def linked() -> bool:
        await made.above.publish(SUBJECT, b"")
        await made.above.flush()
        return made.got > 0

    await eventually(linked)  # type: ignore[no-untyped-call]
    return made


async def measure() -> Report:
    report = Report(
        "tls",
        f"One link: {SIZE} bytes from a parent to a child",
        ("link", "p50 ms", "messages/s", "servers' CPU-s"),
    )
    with tempfile.TemporaryDirectory() as folder:
        certified = Certified(Path(folder) / "tls")
        clear, secured = Grove(Path(folder) / "clear"), Grove(Path(folder) / "secured")
        async with clear, secured:
            ways = [
                await way(clear, "in clear", None, certified),
                await way(secured, "TLS", certified.leaf_address, certified),
            ]
            used = {one.name: one.cpu() for one in ways}
            for number in range(ROUNDS):
                for one in ways if number % 2 else reversed(ways):
                    await one.round()
            for one in ways:
                spent = one.cpu() - used[one.name]
                report.row(one.name, median(one.p50_ms), median(one.per_second), spent)
            plain, tls = ways
            p50s = zip(tls.p50_ms, plain.p50_ms, strict=True)
            rates = zip(tls.per_second, plain.per_second, strict=True)
            report.goal("p50, TLS to clear", median(a / b for a, b in p50s), P50_MOST)
            rate = median(a / b for a, b in rates)
            report.goal("throughput, TLS to clear", rate, THROUGHPUT_LEAST, least=True)
    report.note(f"{ROUNDS} rounds by turns; ratios are medians of rounds next to each other")
    return report


if __name__ == "__main__":
    asyncio.run(measure()).finish()
