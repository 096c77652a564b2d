"""Opens a space as configuration names it: the one place that knows which implementation it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from leafcast.space_settings import IN_CLUSTER, SpaceSetting
from relay.ports import Clock, Dice
from relay.space_errors import SpaceError
from relay.space_port import Space

if TYPE_CHECKING:
    from relay.adapters.kubernetes.kubeconfig import InCluster, Kubeconfig
    from relay.adapters.kubernetes.space import KubernetesSpace
    from relay.claims.centre_lease import Confirm


async def open_space(
    setting: SpaceSetting,
    embedded: Callable[[], Awaitable[Space]],
    clock: Clock,
    dice: Dice,
    stack: AsyncExitStack,
    confirm: Confirm | None = None,
) -> Space:
    """The space, open until the stack is closed; `embedded` opens the one that needs no cluster.

    With `confirm` a node has several members, and the active one alone writes to an API server.
    Raises SpaceError if a kubeconfig leads nowhere; a server is first asked when it is used.
    """
    if not setting.is_kubernetes:
        return await embedded()
    space = open_kubernetes(setting, clock, dice, stack)
    if confirm is None:
        return space
    # Here, as only a node on several machines has it.
    from relay.claims.tenured_space import TenuredSpace  # noqa: PLC0415

    return TenuredSpace(space, confirm)


def open_kubernetes(
    setting: SpaceSetting, clock: Clock, dice: Dice, stack: AsyncExitStack
) -> KubernetesSpace:
    """The space on the API server of a setting; as `open_space`."""
    source = _source_of(setting)
    # Here, as it takes 0.3 s and 23 MB that no one else needs to spend.
    from relay.adapters.kubernetes import space as kubernetes  # noqa: PLC0415

    space = kubernetes.KubernetesSpace(source, clock, dice)
    stack.push_async_callback(space.close)
    return space


def access_fault(setting: SpaceSetting) -> str:
    """What is wrong with the way to a space, before it is used; "" if nothing is."""
    try:
        if setting.is_kubernetes:
            _source_of(setting)
    except SpaceError as error:
        return error.message
    return ""


def _source_of(setting: SpaceSetting) -> Kubeconfig | InCluster:
    """How to get in, once it was read and found good; raises SpaceError."""
    from relay.adapters.kubernetes.kubeconfig import (  # noqa: PLC0415
        InCluster,
        Kubeconfig,
        read_access,
    )

    in_cluster = setting == IN_CLUSTER
    source = InCluster() if in_cluster else Kubeconfig(setting.kubeconfig, setting.context)
    read_access(source)
    return source
