"""A centre for tests: spaces in memory, an honest ledger, and objects to put into them."""

import asyncio
from contextlib import asynccontextmanager

from controllers.centre import Controllers
from controllers.issuing.keys import load_or_make_keys
from relay.adapters.clock import SystemDice
from schemas.objects.objects import ObjectKey
from tests.awaiting import until_object
from tests.doubles.memory_space import MemorySpace
from tests.leaping_time import LoopClock
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_relay import LedgerRelay

USER = "user"


def placement_key(name):
    return ObjectKey("edge.kubestellar.io", "edgeplacements", "", name)


SHOP = placement_key("shop")


class Centre:
    """What outlives a run of the controllers: the spaces, the ledger, the folder of keys."""

    def __init__(self, folder):
        self.folder = folder
        self.clock, self.dice = LoopClock(), SystemDice()
        self.wds = MemorySpace(self.clock, self.dice)
        self.inventory = MemorySpace(self.clock, self.dice)
        self.noted = []
        keys = load_or_make_keys(folder, self.dice)
        self.relay = LedgerRelay(
            keys.tree, lambda: load_or_make_keys(folder, self.dice).sealing.ring
        )

    async def controllers(self):
        """The controllers of a new term; they do not run yet."""
        return await Controllers.open(
            self.relay, self.wds, self.inventory, self.clock, self.dice, self.folder, self.note
        )

    def note(self, *said):
        self.noted.append(said)

    @asynccontextmanager
    async def running(self):
        controllers = await self.controllers()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(controllers.run())
            yield controllers
            task.cancel()

    async def until_status(self, key, predicate, space=None):
        return await until_object(
            space or self.wds, key, lambda obj: obj is not None and predicate(obj)
        )

    async def apply(self, *objects):
        await apply_in_namespaces(self.wds, objects, USER)


def config(name, namespace="shop", value="1", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}}


def config_key(name, namespace="shop"):
    return ObjectKey("", "configmaps", namespace, name)


def deployment(name):
    metadata = {"name": name, "namespace": "shop"}
    spec = {"replicas": 1}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def placement(name="shop", clause=None, selectors=({},), **spec):
    said = {"locationSelectors": list(selectors), "downsync": [clause or {"namespaces": ["shop"]}]}
    return ours("EdgePlacement", name, {**said, **spec})


def ours(kind, name, spec, **metadata):
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def target(name, path=None, **labels):
    annotations = {"leafcast.io/path": path} if path else {}
    return ours("SyncTarget", name, {}, labels=labels, annotations=annotations)


def location(name, selector=None, **labels):
    resource = {"group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": selector or {}}
    return ours("Location", name, spec, labels=labels)


def holds(*names, of="shop"):
    async def predicate(relay):
        head = relay.delta(of)
        if head is None:
            return False
        return set(await relay.entries(head)) == set(names)

    return predicate


def condition(obj, type_):
    listed = obj.get("status", {}).get("conditions", [])
    return next((item for item in listed if item["type"] == type_), None)


async def lists_exactly(relay, head):
    return bool(relay.snapshots) and (await relay.listed()).get(head.source.key) == head.generation


async def lists(relay, key):
    return bool(relay.snapshots) and key in await relay.listed()


async def lists_not(relay, key):
    return bool(relay.snapshots) and key not in await relay.listed()
