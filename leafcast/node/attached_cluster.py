"""An edge's workload execution cluster, real or simulated, and the syncer that works on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from leafcast.node.node_server import NodeServer
from leafcast.space_settings import SIMULATED, SpaceSetting
from leafcast.spaces import open_space
from relay.adapters.spaces.simulated_cluster import Settings, SimulatedCluster
from relay.claims.edge_claim import EdgeClaim
from relay.claims.guarded_space import ClaimedSpace
from relay.claims.leases import SharedSpace
from relay.core.view import NodeView
from relay.ports import Bus, Clock, Dice
from relay.shell.driver import Driver
from relay.space_port import Space
from relay.syncer.applier import ContentMissing
from relay.syncer.syncer import Syncer
from relay.syncer.upsyncer import Upsyncer
from schemas.content.blobs import Reference
from schemas.content.sealing import SealingKey
from schemas.values.identity import TreeId

CLUSTER_BUCKET = "wec"


def attachment(setting: SpaceSetting) -> Settings | SpaceSetting:
    """What a node is attached to by its configuration."""
    return setting if setting.is_kubernetes else Settings()


class AttachedCluster:
    """One run of an edge's cluster and of the syncer on it."""

    def __init__(
        self,
        target: Settings | SpaceSetting,
        clock: Clock,
        dice: Dice,
        tree: TreeId,
        claim: EdgeClaim | None = None,
    ) -> None:
        self.space: Space | None = None
        # Of a cluster that others reach, too.
        self._claim = claim
        self._target = target
        self._clock = clock
        self._dice = dice
        self._tree = tree
        self._syncer: Syncer | None = None

    @property
    def applied(self) -> int:
        """How many objects the syncer has applied."""
        return self._syncer.applied if self._syncer else 0

    @property
    def kept(self) -> int:
        """How many objects it keeps that nothing wants any more."""
        return self._syncer.kept if self._syncer else 0

    @property
    def results(self) -> Mapping[str, int]:
        """How many attempts to change an object ended how."""
        return self._syncer.results if self._syncer else {}

    def want(self, node: NodeView) -> None:
        """Have the cluster become what the node holds."""
        if self._claim is not None:
            self._claim.wake()
        if self._syncer is not None:
            paused = node.in_maintenance
            self._syncer.set_wants(
                node.wanted, may_prune=node.may_prune, paused=paused, rule_of=node.health_rule
            )

    def unready(self) -> dict[str, str]:
        """What keeps it from its work now, by name; "" if nothing does."""
        if self._claim is not None and not self._claim.held:
            return {"cluster": self._claim.trouble}
        return {"cluster": self._syncer.unready if self._syncer else "it is not followed yet"}

    async def start(
        self,
        host: NodeServer,
        driver: Driver,
        bus: Bus,
        stack: AsyncExitStack,
        group: asyncio.TaskGroup,
    ) -> None:
        """Bring a simulated cluster to life, and the syncer that works on whichever it is."""

        async def content(reference: Reference, key: SealingKey | None) -> bytes:
            plain = await driver.load(reference, key)
            if plain is None:
                raise ContentMissing(f"{reference.kind} {reference.address[:12]}")
            return plain

        space = await self._claimed(await self._open(host, stack, group), driver, group)
        syncer = self._syncer = Syncer(
            space, bus, content, self._clock, self._dice, driver.observe, tree=self._tree
        )

        upsyncer = Upsyncer(space, bus, self._clock, driver.observe)

        async def sync() -> None:
            await self._begun(driver)
            await syncer.run()

        async def bring_up() -> None:
            await self._begun(driver)
            await upsyncer.run(lambda: driver.node, driver.progress)

        group.create_task(sync(), name=f"syncer {host.path}")
        group.create_task(bring_up(), name=f"upsync {host.path}")

    async def _claimed(self, space: Space, driver: Driver, group: asyncio.TaskGroup) -> Space:
        """The cluster as long as it is this edge's; one that nobody else reaches always is."""
        claim = self._claim
        if claim is None or not isinstance(space, SharedSpace):
            return space
        group.create_task(claim.run(space, lambda: self._is_destination(driver)), name="claim")
        claimed = ClaimedSpace(space, claim)
        self.space = claimed
        return claimed

    async def _begun(self, driver: Driver) -> None:
        """Wait until the node knows what it held, and the cluster was asked whose it is."""
        await driver.started.wait()
        if isinstance(self.space, ClaimedSpace) and self._claim is not None:
            await self._claim.looked.wait()

    def _is_destination(self, driver: Driver) -> bool | None:
        """Whether the edge is one, or holds objects still; None while that is not known."""
        if not driver.started.is_set() or self._syncer is None:
            return None
        if driver.node.has_profile or self._syncer.applied:
            return True
        return False if driver.node.ready and self._syncer.loaded else None

    async def _open(
        self, host: NodeServer, stack: AsyncExitStack, group: asyncio.TaskGroup
    ) -> Space:
        async def simulated() -> Space:
            assert isinstance(self._target, Settings)
            space = await host.space(CLUSTER_BUCKET, stack)
            cluster = SimulatedCluster(space, self._clock, self._dice, self._target)
            group.create_task(cluster.run(), name=f"cluster {host.path}")
            return cluster

        setting = SIMULATED if isinstance(self._target, Settings) else self._target
        self.space = await open_space(setting, simulated, self._clock, self._dice, stack)
        return self.space
