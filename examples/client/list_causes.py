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
            print(f"  for example {cause.path} {cause.object}: {cause.reason}")
            print(f"  do: {cause.remedy}")


asyncio.run(main())
