"""Reads an object as an edge has it, and in which fields that differs from the centre's.

python read_copy.py /region-1/site-1 configmap settings shop
"""

import asyncio
import sys

import leafcast


async def main(at: str, resource: str, name: str, namespace: str) -> None:
    async with leafcast.connect() as tree:
        meant = await tree.get(resource, name, namespace=namespace)
        try:
            there = await tree.get(resource, name, namespace=namespace, at=at)
        except leafcast.NotFound as error:
            sys.exit(str(error))
        for field in sorted({*meant, *there} - {"metadata", "status"}):
            same = meant.get(field) == there.get(field)
            print(f"{field}: {'the same' if same else there.get(field)}")


asyncio.run(main(*sys.argv[1:]))
