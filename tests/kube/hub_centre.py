"""A centre in this process whose workload description space is a real API server."""

import asyncio
import json
from contextlib import asynccontextmanager

from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from tests.unit.centre_world import Centre


class HubCentre(Centre):
    """A centre whose workload description space is an API server."""

    def __init__(self, folder, server):
        super().__init__(folder)
        self.server = server

    @asynccontextmanager
    async def running(self):
        # One run after another, each with connections of its own.
        self.wds = KubernetesSpace(Kubeconfig(str(self.server.kubeconfig)), self.clock, self.dice)
        try:
            async with super().running() as controllers:
                yield controllers
        finally:
            await self.wds.close()

    async def kubectl(self, *words, **given):
        return await asyncio.to_thread(self.server.kubectl, *words, **given)

    async def apply_all(self, *objects):
        form = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.kubectl("apply", "-f", "-", stdin=json.dumps(form))
