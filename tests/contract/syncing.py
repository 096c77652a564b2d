"""A syncer at work on a space, with a record in memory, and all that it said."""

import asyncio
from contextlib import asynccontextmanager

from relay.core.destination.claims import DesiredObject
from relay.objects.unsaid_fields import numbers_of
from relay.ports import first_of
from relay.space_errors import AnotherSpace
from relay.syncer.applier import ContentMissing
from relay.syncer.syncer import Syncer
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.objects.objects import BUILT_IN_KINDS, apply_order
from schemas.objects.order import order_of
from schemas.values import codec
from tests.awaiting import eventually

TREE = "a-tree"


class MemoryDone:
    """DONE in memory; `log` holds each write in order. `hold_up` says which wait for ever."""

    def __init__(self) -> None:
        self.held = {}
        self.log = []
        self.hold_up = lambda done: False
        self.is_partial = False

    async def load_done(self):
        return list(self.held.values())

    async def store_done(self, records):
        if any(map(self.hold_up, records.values())):
            await asyncio.Event().wait()
        for key, done in records.items():
            self.log.append(done)
            if done is None:
                self.held.pop(key, None)
            else:
                self.held[key] = done

    async def done_is_partial(self):
        return self.is_partial

    async def complete_done(self):
        self.is_partial = False

    def of(self, key):
        return next((done for done in self.held.values() if done.key == key), None)


class CountingSpace:
    """A space that counts, can refuse applies by name, delay them, deletions, and their answers.

    `applied` are all that were asked for, `deleted` those that it did not refuse.

    While it is `muted` it tells its follower nothing by itself, and once it is `replaced` it is
    another; what `tell` says, a test says in its place.
    """

    def __init__(self, space) -> None:
        self._space = space
        self.applied = []
        self.deleted = []
        self.refused = {}
        self.gates = {}
        self.answers = {}
        self.looked = []
        self.muted = False
        self.replaced = asyncio.Event()
        self.tell = None

    def __getattr__(self, name):
        return getattr(self._space, name)

    async def apply(self, obj, manager, **how):
        name = obj["metadata"]["name"]
        self.applied.append(name)
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.refused:
            raise self.refused[name]
        made = await self._space.apply(obj, manager, **how)
        if name in self.answers:
            await self.answers[name].wait()
        return made

    async def get(self, key):
        self.looked.append(key.name)
        return await self._space.get(key)

    async def follow(self, interests, tell):
        self.tell = tell

        async def unless_muted(event):
            if not self.muted:
                await tell(event)

        if self.replaced.is_set():
            raise AnotherSpace("AnotherSpace", "another answers")
        try:
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._space.follow(interests, unless_muted))
                await self.replaced.wait()
                following.cancel()
        except BaseExceptionGroup as failed:
            raise first_of(failed) from None
        raise AnotherSpace("AnotherSpace", "another answers")

    async def delete(self, key, uid=""):
        if key.name in self.gates:
            await self.gates[key.name].wait()
        went = await self._space.delete(key, uid)
        self.deleted.append(key.name)
        return went


def rule_kind(rule):
    return (rule.group, rule.resource) if rule is not None else None


class Bench:
    """Space, record, blobs and a syncer that `running` starts; it can be started again."""

    def __init__(self, space, clock, dice, *, tree=TREE) -> None:
        self.space = CountingSpace(space)
        self.done = MemoryDone()
        self.clock = clock
        self.tree = tree
        self.dice = dice
        self.blobs = {}
        self.wanted = {}
        self.said = {}
        self.history = []
        self.syncer: Syncer

    @asynccontextmanager
    async def running(self):
        self.syncer = Syncer(
            self.space, self.done, self._load, self.clock, self.dice, self._observe, tree=self.tree
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.syncer.run())
            try:
                yield self
            finally:
                task.cancel()

    def want(self, *objects, **how):
        self.want_keyed({}, *objects, **how)

    def want_keyed(
        self,
        keyed,
        *objects,
        may_prune=True,
        flags=0,
        lost=(),
        paused=False,
        rule=None,
        source=None,
        unsaid=frozenset(),
        wish=0,
    ):
        """Want these objects, as this object of the source says; `keyed` are of unknown kinds."""
        self.wanted = {}
        for key, obj in {**{BUILT_IN_KINDS.key_of(obj): obj for obj in objects}, **keyed}.items():
            plain = codec.canonical(obj)
            address = codec.address(blobs.OBJECT, plain)
            if obj["metadata"]["name"] not in lost:
                self.blobs[address] = plain
            order = order_of(apply_order(key.group, key.resource), obj)
            reference = Reference(blobs.OBJECT, address, len(plain))
            self.wanted[key] = DesiredObject(
                key,
                reference,
                order,
                flags,
                ("p",),
                source_object=source,
                unsaid=numbers_of(obj, unsaid),
                wish=wish,
            )
        self.syncer.set_wants(
            self.wanted,
            may_prune=lambda _key: may_prune,
            paused=paused,
            rule_of=lambda want: rule if want.key.group_resource == rule_kind(rule) else None,
        )

    def address(self, key):
        """The content that is wanted of an object now."""
        return self.wanted[key].reference.address

    async def settled(self):
        await self.until(lambda: self.syncer.idle)

    async def until(self, holds):
        """Wait until a fact holds; it may change with each step of the loop."""
        await eventually(holds, lambda: f"said last: {self.history[-5:]}", every=0.002)

    async def _load(self, reference, key):
        if reference.address not in self.blobs:
            raise ContentMissing(reference.address[:12])
        return self.blobs[reference.address]

    def _observe(self, observed):
        self.said[observed.key] = observed
        self.history.append(observed)
