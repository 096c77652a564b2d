"""A follower that remembers what it was told, for tests of spaces."""

import asyncio
from contextlib import asynccontextmanager

from relay.space_port import (
    Bookmark,
    Interests,
    KindsServed,
    ObjectChange,
    ObjectsListed,
    Synced,
    Unserved,
)


class Told:
    """What a space told: the objects by key, and each event in order."""

    def __init__(self):
        self.events = []
        self.objects = {}
        self._more = asyncio.Event()

    async def __call__(self, event):
        self.events.append(event)
        match event:
            case ObjectsListed(interest, objects):
                gone = {key for key in self.objects if _is_of(interest, key)} - objects.keys()
                for key in gone:
                    del self.objects[key]
                self.objects |= objects
            case ObjectChange("deleted", key):
                self.objects.pop(key, None)
            case ObjectChange(_, key, obj):
                self.objects[key] = obj
            case _:
                pass
        self._more.set()

    @property
    def changes(self):
        return [event for event in self.events if isinstance(event, ObjectChange)]

    @property
    def kinds(self):
        return [event.kinds for event in self.events if isinstance(event, KindsServed)][-1]

    async def until(self, met, seconds=60):
        """Wait until the condition on this holds; what it gave."""
        async with asyncio.timeout(seconds):
            while not (found := met(self)):
                self._more.clear()
                await self._more.wait()
        return found

    async def synced(self, wanted=None):
        await self.until(lambda told: Synced(wanted) in told.events)

    async def reached(self, revision):
        """Wait until it was told all that had happened at a revision."""
        await self.until(lambda told: any(_at(event) >= _number(revision) for event in told.events))


@asynccontextmanager
async def following(space, *interests):
    """What a follower of these interests (of everything, if none is given) is told meanwhile."""
    wanted = Interests(interests or None)
    told = Told()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(space.follow(wanted, told))
        await told.synced(wanted.wanted)
        yield told, wanted
        task.cancel()


def unserved(told, reason):
    """What was told of interests that are not served for this reason."""
    return [
        event for event in told.events if isinstance(event, Unserved) and event.reason == reason
    ]


def _is_of(interest, key):
    return interest is None or interest.group_resource == key.group_resource


def _at(event):
    return (
        _number(event.revision)
        if isinstance(event, (ObjectChange, ObjectsListed, Bookmark))
        else -1
    )


def _number(revision):
    return int(revision.partition(".")[0] or 0)
