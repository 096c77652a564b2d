"""Watches a placement until it is delivered everywhere, then tells of each destination.

python watch_placement.py shop
"""

import asyncio
import sys
from contextlib import aclosing

import leafcast


async def main(placement: str) -> None:
    async with leafcast.connect() as tree:
        async with aclosing(tree.watch("edgeplacements")) as watching:
            async for news in watching:
                if news.key.name == placement and news.object is not None:
                    listed = news.object.get("status", {}).get("conditions", [])
                    said = {each["type"]: each["status"] for each in listed}
                    print(f"{placement} {news.kind}: Synced is {said.get('Synced', 'not known')}")
                    if said.get("Synced") == "True":
                        break
        async for one in tree.destinations(placement):
            print(f"{one.path}: {one.state}, {one.health}")


asyncio.run(main(*sys.argv[1:]))
