"""What an edge's cluster holds, and the real syncer that works on it over a slow door.

The cluster is the space of the contract tests, and outlives every process. A process reaches it by
requests that take their time; what it asks once it has ended is not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from relay.core.view import NodeView
from relay.objects.customization import EXPAND_TEMPLATES
from relay.space_errors import SpaceError
from relay.space_port import Object
from relay.syncer.applier import ContentMissing
from relay.syncer.object_marks import MANAGER
from relay.syncer.syncer import Syncer
from relay.wrapped_space import WrappedSpace
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.identity import ContentHash
from tests.doubles.memory_space import MemorySpace
from tests.simulation.clocks import HostClock
from tests.simulation.collectors import status_of
from tests.simulation.customizing import (
    FORM,
    RAW,
    WITHOUT,
    customized_here,
    form_of,
    is_template,
    kind_of,
)

if TYPE_CHECKING:
    from tests.simulation.host import Host
    from tests.simulation.world import World

DRIFTED = "drift"
T = TypeVar("T")
ASKED_MAX = 64
"""So many contents of an object are known with who asks for them."""


def written(name: str, number: int) -> Object:
    """An object as users write it, in its so-manieth version."""
    metadata: Object = {"name": name, "namespace": "default"}
    said = {"apiVersion": "v1", "kind": "ConfigMap", "text": name, "n": number}
    if not is_template(name):
        return {**said, "metadata": metadata}
    metadata["annotations"] = {EXPAND_TEMPLATES: "true"}
    return {**said, "metadata": metadata, "tier": "{{ .tier }}"}


@lru_cache(maxsize=4096)
def address_of(name: str, number: int, form: str | None) -> ContentHash:
    """What an object is known by that says this; `form` is of which tier, if it is customized."""
    plain, kind = codec.canonical(written(name, number)), kind_of(name)
    clear = Reference(kind, codec.address(kind, plain), len(plain))
    if kind == blobs.TEMPLATE and form == RAW:
        return clear.address
    return form_of(clear, None if form == WITHOUT else form)


class EdgeSpace:
    """A cluster, as its host and the world have it.

    `refusing` are keys that the cluster will not take now.
    """

    def __init__(self, world: World, host: Host) -> None:
        self.refusing: dict[ObjectKey, None] = {}
        self.refused_for_good: dict[ObjectKey, None] = {}
        self.cluster = MemorySpace(HostClock(host), world.dice)
        # What was asked for of each content of an object, as the process on the host knows it.
        self.asked: dict[tuple[ObjectKey, str], tuple[str, ...]] = {}
        self._world, self._host = world, host
        self._syncer: Syncer | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def objects(self) -> dict[ObjectKey, tuple[str, str]]:
        """By key the content's address, and the uid."""
        found = {}
        for key, obj in self.cluster.present().items():
            metadata = obj["metadata"]
            found[key] = (_address(obj), metadata["uid"])
        return found

    def wipe(self) -> None:
        """Another cluster is in its place, and it is empty."""
        for key in self.cluster.present():
            now(self.cluster.delete(key))

    def drift(self, key: ObjectKey, *, delete: bool) -> None:
        """Someone else changes or deletes an object, in the syncer's name.

        Whoever did it in a name of his own would own what he wrote, and an edge without memory
        would leave that to him.
        """
        self._world.watcher.drifted(self._host)
        if delete:
            now(self.cluster.delete(key))
            return
        held = self.cluster.present()[key]
        now(self.cluster.apply({**held, "text": DRIFTED}, MANAGER))
        now(self.cluster.set_status(key, codec.unpack(status_of(DRIFTED), 1024)))

    # The process.

    def begun(self) -> None:
        """A process begins, that may be told soon what is wanted."""
        host = self._host
        if host.attached:
            self._syncer = Syncer(
                ClusterDoor(self._world, host),
                host.bus,
                self._load,
                HostClock(host),
                self._world.dice,
                host.tell,
                tree=self._world.tree,
                customize=customized_here,
            )

    def started(self) -> None:
        """The process runs."""
        if self._syncer is not None:
            self._running = self._world.begin(self._syncer.run(), f"syncer of {self._host.path}")

    def stop(self) -> None:
        """The process has ended."""
        if self._running is not None:
            self._running.cancel()
        self._syncer = self._running = None

    def told(self, node: NodeView) -> None:
        """The node says what is wanted."""
        host, ports, syncer = self._host, self._world.ports, self._syncer
        if syncer is None or host.node is not node:
            return

        def may_prune(key: ObjectKey) -> bool:
            return ports.may_prune(host, key, honest=node.may_prune(key))

        wanted = ports.wanted(host, node.wanted)
        for want in wanted.values():
            self.asked.pop((want.key, want.address), None)
            self.asked[want.key, want.address] = want.placements
        while len(self.asked) > ASKED_MAX:
            del self.asked[next(iter(self.asked))]
        paused = ports.pauses(host, honest=node.in_maintenance)
        syncer.set_wants(wanted, may_prune=may_prune, paused=paused, rule_of=node.health_rule)

    async def _load(self, reference: Reference, key: SealingKey | None) -> bytes:
        plain = await self._host.driver.load(reference, key)
        if plain is None:
            raise ContentMissing(reference.address)
        return plain


class ClusterDoor(WrappedSpace[MemorySpace]):
    """The cluster as one process reaches it: each request takes a while, and ends with the run."""

    def __init__(self, world: World, host: Host) -> None:
        super().__init__(host.space.cluster)
        self._world, self._host, self._run = world, host, host.run
        self._edge = host.space

    async def _request(self) -> None:
        await asyncio.sleep(self._world.delay())
        if self._host.run != self._run:
            raise asyncio.CancelledError

    async def _reading(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            await self._request()
        except asyncio.CancelledError:
            call.close()
            raise
        return await call

    _writing = _reading

    async def revision(self) -> str:
        return await self._space.revision()

    async def apply(self, obj: Object, manager: str, **how: Any) -> Object:
        await self._request()
        metadata, host, world = obj["metadata"], self._host, self._world
        key = ObjectKey("", "configmaps", metadata["namespace"], metadata["name"])
        if "text" in obj:
            space, faults = self._edge, world.faults
            refused = key in space.refusing or key in space.refused_for_good
            if refused or world.random.random() < faults.refusal:
                raise SpaceError("Refused", "the cluster does not take it")
            address = _address(obj)
            world.watcher.applying(host, key, address, space.asked.get((key, address), ()))
            world.note(host.path, f"apply {key.name} {address[:8]}")
            await self._space.apply(obj, manager, **how)
            status = codec.unpack(status_of(address), 1024)
            return await self._space.set_status(key, status)
        if manager == MANAGER:
            self._about_to_prune(key, made=False)
        return await self._space.apply(obj, manager, **how)

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        await self._request()
        self._about_to_prune(key, made=True)
        return await self._space.delete(key, uid)

    def _about_to_prune(self, key: ObjectKey, *, made: bool) -> None:
        self._world.watcher.pruning(self._host, key, made=made)
        self._world.note(self._host.path, f"prune {key.name}")


def now(coro: Any) -> Any:
    """What a coroutine gives that waits for nothing."""
    try:
        coro.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError(f"{coro} waits")


def _address(obj: Object) -> str:
    text, number = obj.get("text"), obj.get("n")
    if text is None or text == DRIFTED:
        return str(text)
    assert isinstance(number, int)
    return address_of(text, number, obj.get(FORM))
