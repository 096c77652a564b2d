"""A trio under changes without a pause, and what has to be so at the end of them."""

import asyncio
from collections.abc import Mapping
from contextlib import asynccontextmanager

from tests.nats.trio_tree import TrioTree

EDGE = "/edge"


class Applies:
    """Puts object after object, and knows which of them were acknowledged."""

    def __init__(self, tree: TrioTree) -> None:
        self._tree = tree
        self._put = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.acknowledged: list[str] = []
        self.attempted: list[str] = []

    async def run(self) -> None:
        while True:
            name = f"o{len(self.attempted)}"
            self.attempted.append(name)
            await self._tree.put("web", **{name: name})
            self.acknowledged.append(name)
            put, self._put = self._put, asyncio.Event()
            put.set()

    async def more(self, count: int) -> None:
        """Wait for so many more to be acknowledged."""
        for _ in range(count):
            waiting = asyncio.create_task(self._put.wait())
            tasks = [waiting, self.task] if self.task is not None else [waiting]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                self.task.result()


@asynccontextmanager
async def changing_tree(
    folder,
    edges=(EDGE,),
    *,
    region=False,
    settings: Mapping[str, object] = {},
    groups: Mapping[str, int] = {},
):
    """A tree with edges, under changes without a pause; at the end all of it has to be exact."""
    tree = TrioTree(folder, settings, groups=groups)
    try:
        await tree.start(region=region)
        for edge in edges:
            await tree.join(edge)
        await tree.place("web")
        applies = Applies(tree)
        changing = applies.task = asyncio.create_task(applies.run())
        try:
            await applies.more(5)
            began = await tree.look(edges)
            yield tree, applies
            await applies.more(5)
        finally:
            changing.cancel()
            await asyncio.wait([changing])
        await nothing_is_lost(tree, applies, began)
    finally:
        await tree.close()


async def nothing_is_lost(tree, applies, began):
    """Each edge holds what the centre does, which has all that was acknowledged; none went."""
    values = await tree.centre_values()
    assert set(applies.acknowledged) <= values.keys() <= set(applies.attempted)
    tree.wanted["web"] = values
    for edge, space in (await tree.exact(began)).items():
        before = {name: stored.uid for name, stored in began[edge].objects.items()}
        assert {name: space.objects[name].uid for name in before} == before
        assert not [name for name in space.asked if name.startswith("-")]
