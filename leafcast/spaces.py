"""Opens a space as configuration names it: the one place that knows which implementation it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from leafcast.space_settings import IN_CLUSTER, SpaceSetting
from relay.adapters.kubernetes.kubeconfig import (
    InCluster,
    InvalidKubeconfig,
    Kubeconfig,
    read_access,
)
from relay.ports import Clock, Dice, Space


async def open_space(
    setting: SpaceSetting,
    embedded: Callable[[], Awaitable[Space]],
    clock: Clock,
    dice: Dice,
    stack: AsyncExitStack,
) -> Space:
    """The space, open until the stack is closed; `embedded` opens the one that needs no cluster.

    Raises SpaceError if a kubeconfig leads nowhere; a server is first asked when it is used.
    """
    if not setting.is_kubernetes:
        return await embedded()
    return open_kubernetes(setting, clock, dice, stack)


def open_kubernetes(
    setting: SpaceSetting, clock: Clock, dice: Dice, stack: AsyncExitStack
) -> Space:
    """The space on the API server of a setting; as `open_space`."""
    # Here, as it takes 0.3 s and 23 MB that no one else needs to spend.
    from relay.adapters.kubernetes.space import KubernetesSpace  # noqa: PLC0415

    source = _source_of(setting)
    read_access(source)
    space = KubernetesSpace(source, clock, dice)
    stack.push_async_callback(space.close)
    return space


def access_fault(setting: SpaceSetting) -> str:
    """What is wrong with the way to a space, before it is used; "" if nothing is."""
    if setting.is_kubernetes:
        try:
            read_access(_source_of(setting))
        except InvalidKubeconfig as error:
            return error.message
    return ""


def _source_of(setting: SpaceSetting) -> Kubeconfig | InCluster:
    if setting == IN_CLUSTER:
        return InCluster()
    return Kubeconfig(setting.kubeconfig, setting.context)
