"""Waiting for an object of a space to be as it should be, told by the space's own watch."""

import asyncio
from contextlib import aclosing

WAIT_SECONDS = 60


async def until_object(space, key, holds, seconds=WAIT_SECONDS):
    """The object, or None where there is none, as soon as `holds` says yes to it."""
    async with asyncio.timeout(seconds):
        listing = await space.list()
        async with aclosing(space.watch(listing.revision)) as changes:
            while not holds(found := await space.get(key)):
                await anext(changes)
    return found


async def until_gone(space, key):
    """Wait until there is no such object."""
    await until_object(space, key, lambda found: found is None)
