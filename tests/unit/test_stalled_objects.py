"""What keeps an object's Pods is looked for again and again, and not forgotten in between."""

import asyncio
from types import SimpleNamespace

from relay.adapters.clock import SystemClock, SystemDice
from relay.space_errors import SpaceError
from relay.syncer import stalled
from relay.syncer.stalled import StalledObjects
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import deployment
from tests.doubles.memory_space import MemorySpace

WEB = ObjectKey("apps", "deployments", "shop", "web")
AT_WORK = SimpleNamespace(health="progressing", reason="0 of 2 available")


class Silent(MemorySpace):
    """A space that does not answer any more at some moment."""

    asked_in_vain = 0
    answers = True

    async def get(self, key):
        if not self.answers:
            self.asked_in_vain += 1
            raise SpaceError("Timeout", "no answer")
        return await super().get(key)


async def test_a_cluster_that_does_not_answer_takes_back_nothing_of_what_it_said(monkeypatch):
    monkeypatch.setattr(stalled, "STALLED_SECONDS", 0.01)
    clock = SystemClock()
    space = Silent(clock, SystemDice())
    image = {"reason": "ImagePullBackOff", "message": "no such image"}
    waiting = {"containerStatuses": [{"name": "main", "state": {"waiting": image}}]}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    web = deployment()
    labels = web["spec"]["template"]["metadata"]["labels"]
    metadata = {"name": "web-1", "namespace": "shop", "labels": labels}
    spec = {"containers": [{"name": "main", "image": "web:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    for obj in (namespace, web, pod):
        await space.apply(obj, "they")
    await space.set_status(ObjectKey("", "pods", "shop", "web-1"), waiting)

    async def tell(_key):
        return None

    stalls = StalledObjects(space, clock, tell)
    stalls.see(WEB, AT_WORK)
    said = "0 of 2 available: ImagePullBackOff: no such image"
    looking = asyncio.create_task(stalls.run())
    async with asyncio.timeout(60):
        while stalls.reason(WEB, AT_WORK) != said:
            await clock.sleep(0.01)
        space.answers = False
        while space.asked_in_vain < 2:
            await clock.sleep(0.01)
    looking.cancel()
    assert stalls.reason(WEB, AT_WORK) == said
