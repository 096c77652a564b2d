"""Applies manifests, sends them everywhere, and waits until all destinations have them.

python apply_and_wait.py shop.yaml shop
"""

import asyncio
import sys
from pathlib import Path

import leafcast


async def main(file: str, placement: str) -> None:
    async with leafcast.connect() as tree:
        placing = leafcast.Placing(placement)
        for each in await tree.apply(Path(file), placing=placing, create_namespaces=True):
            print(each.key, each.verb)
        for placed in await tree.wait(placement, condition="synced", seconds=120):
            print(f"{placed.name}: {placed.states['synced']} of {placed.destinations} synced")


asyncio.run(main(*sys.argv[1:]))
