"""Asks why an object is not at a destination as it is meant, and what to do.

python ask_why.py /region-1/site-1 deployment web shop
"""

import asyncio
import sys

import leafcast


async def main(at: str, resource: str, name: str, namespace: str) -> None:
    async with leafcast.connect() as tree:
        for stop in await tree.why(at, resource=resource, name=name, namespace=namespace):
            print(f"{stop.placement or 'no placement'}: {stop.stage}: {stop.said}")
            if stop.blocks:
                print(f"  do: {stop.remedy}")


asyncio.run(main(*sys.argv[1:]))
