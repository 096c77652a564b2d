"""What acts on an API server's objects: controllers, a scheduler, and kwok in place of kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import CONTROLLER_MANAGER, KWOK, SCHEDULER, KubeHost
from relay.adapters.server.logged_process import LoggedProcess, ServerFailed

READY_SECONDS = 60.0
NODE = "node-1"
LEASE_SECONDS = 40
HOUSEKEEPING = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
)
"""What every API server needs, so that what is deleted ends: namespaces, what an object owns, and
claims and volumes, on which each server sets a finalizer.
"""
_NEEDLESS = ("-node-ipam-controller", "-node-route-controller", "-service-lb-controller")
_SAYS_READY = {
    CONTROLLER_MANAGER: '"Starting"',
    SCHEDULER: "Starting Kubernetes Scheduler",
    KWOK: "INFO",
}


class ClusterControllers:
    """The processes beside an API server. With `workloads` a Deployment there gets ready Pods."""

    def __init__(self, server: ApiServer, host: KubeHost, *, workloads: bool) -> None:
        self.processes: dict[str, LoggedProcess] = {}
        self._server, self._host = server, host
        # Else the server keeps house only: what people write stays as they wrote it.
        self._workloads = workloads

    @property
    def names(self) -> tuple[str, ...]:
        """The programs that run."""
        return (CONTROLLER_MANAGER, SCHEDULER, KWOK) if self._workloads else (CONTROLLER_MANAGER,)

    async def start(self) -> None:
        """Start what does not run; raises BinariesMissing or ServerFailed."""
        self._host.binaries.need(*self.names)
        if self._workloads:
            await self._add_node()
        for name in self.names:
            process = self.processes.get(name)
            if process is None or process.ended.is_set():
                if name == KWOK:
                    await self._free_node()
                self.processes[name] = self._spawn(name)
        for name in self.names:
            process = self.processes[name]
            if not await process.until_ready(READY_SECONDS):
                raise ServerFailed(f"{process.name} ended as it started", process.log)

    async def stop(self) -> None:
        """End them in good order."""
        async with asyncio.TaskGroup() as group:
            for process in self.processes.values():
                group.create_task(process.stop())

    async def _add_node(self) -> None:
        status, said = await self._server.request("POST", "/api/v1/nodes", _node(NODE))
        if status not in {HTTPStatus.CREATED, HTTPStatus.CONFLICT}:
            raise ServerFailed(f"the node of {self._server.name} cannot be made: {said}", [])

    async def _free_node(self) -> None:
        """End what the last kwok holds: the next one would wait for LEASE_SECONDS to have it."""
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
        status, said = await self._server.request("DELETE", lease)
        if status not in {HTTPStatus.OK, HTTPStatus.NOT_FOUND}:
            raise ServerFailed(f"the lease of {self._server.name} cannot be ended: {said}", [])

    def _spawn(self, name: str) -> LoggedProcess:
        return self._host.spawn(
            name,
            self._options(name),
            name=f"the {name} of {self._server.name}",
            cwd=self._server.folder,
            says_ready=_SAYS_READY[name],
        )

    def _options(self, name: str) -> Sequence[str]:
        kubeconfig = f"--kubeconfig={self._server.kubeconfig}"
        if name == KWOK:
            return (
                kubeconfig,
                "--manage-all-nodes",
                f"--node-lease-duration-seconds={LEASE_SECONDS}",
                *(f"--config={stage}" for stage in self._host.binaries.stages),
            )
        own = (kubeconfig, "--leader-elect=false", "--secure-port=0", "--profiling=false")
        if name == SCHEDULER:
            return own
        wanted = ("*", *_NEEDLESS) if self._workloads else HOUSEKEEPING
        return (
            *own,
            f"--controllers={','.join(wanted)}",
            f"--service-account-private-key-file={self._server.service_account_key}",
            f"--root-ca-file={self._server.authority}",
        )


def _node(name: str) -> dict[str, object]:
    """A Node that kwok brings to life, with room for many Pods."""
    room = {"cpu": "64", "memory": "512Gi", "pods": "1000", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "status": {"allocatable": room, "capacity": room},
    }
