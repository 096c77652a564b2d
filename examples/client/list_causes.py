"""Lists what is wrong in the whole tree, by cause, each with one example and what to do.

python list_causes.py
"""

import asyncio

import leafcast


async def main() -> None:
    async with leafcast.connect() as tree:
        for cause in await tree.causes():
            count = "some" if cause.destinations is None else cause.destinations
            least = "" if cause.exact else "at least "
            print(f"{cause.stage}/{cause.element}/{cause.category} at {least}{count} destinations")
            where = " ".join(filter(None, (cause.path, cause.object))) or cause.placements[0]
            print(f"  for example {where}: {cause.reason}")
            print(f"  do: {cause.remedy}")


asyncio.run(main())
