"""Whether objects of a space come to life there: a workload description space is to be inert.

A Deployment that lies in a WDS is a wish for other clusters. Where a controller manager runs, it
would start Pods, and kubelets would run them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from relay.space_errors import SpaceError
from relay.space_port import Space
from schemas.objects.objects import ObjectKey
from schemas.values.wording import some_of

LEASE = ObjectKey("coordination.k8s.io", "leases", "kube-system", "kube-controller-manager")
RENEWED_MS_MAX = 120_000
"""A controller manager renews its Lease every few seconds; clocks may differ by a minute or so."""
_WORKLOAD_CONTROLLERS = ("deployment-controller", "job-controller", "replicaset-controller")
ALLOW = "--allow-live-cluster"
REMEDY = (
    f"name an API server without workload controllers, or say {ALLOW} "
    "(allow_live_cluster: true in the file of a centre) if both are meant to be"
)


async def signs_of_life(space: Space, now_ms: int) -> str:
    """What shows that workloads run on the space's cluster; "" if nothing does.

    Raises SpaceError if that cannot be looked at.
    """
    lease = await space.get(LEASE)
    if lease is not None and _renewed(lease, now_ms) and await _starts_pods(space):
        return "kube-controller-manager runs there: it renews its Lease in kube-system"
    nodes = (await space.list("", "nodes")).objects
    if nodes:
        names = sorted(str(node["metadata"]["name"]) for node in nodes)
        return f"it has Nodes: {some_of(names, 1)}"
    return ""


async def _starts_pods(space: Space) -> bool:
    """Whether the controller manager may be one that starts Pods.

    One with a ServiceAccount for each of its controllers tells which they are.
    """
    accounts = (await space.list("", "serviceaccounts", namespace="kube-system")).objects
    names = {str(account["metadata"]["name"]) for account in accounts}
    told = any(name.endswith("-controller") for name in names)
    return not told or not names.isdisjoint(_WORKLOAD_CONTROLLERS)


async def check_inert(space: Space, title: str, now_ms: int) -> None:
    """Raise LiveCluster if objects would come to life there."""
    if sign := await signs_of_life(space, now_ms):
        raise LiveCluster(title, sign)


class LiveCluster(SpaceError):
    """A space that was to hold workload objects, and would run them."""

    def __init__(self, title: str, sign: str) -> None:
        super().__init__(
            "LiveCluster",
            f"{title}: workload objects there would come to life: {sign}; {REMEDY}",
        )
        self.sign = sign


def _renewed(lease: Mapping[str, Any], now_ms: int) -> bool:
    spec = lease.get("spec")
    text = spec.get("renewTime") if isinstance(spec, Mapping) else None
    try:
        renewed = datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return False
    return now_ms - renewed * 1000 < RENEWED_MS_MAX
