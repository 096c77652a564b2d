"""Two of a centre's three members are lost for good: the third's store makes a centre alone.

One of three decides nothing, and an empty one beside it is not asked who leads. So two servers run
on copies of its store, on this machine and for a moment, and what they agree on is read as a backup
that waits to be restored.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from leafcast.backups.centre_streams import STREAMS, account
from leafcast.backups.restoring import PENDING
from leafcast.backups.whole_file import Backup, opened, read_backup, write_backup
from leafcast.centre.copying import (
    FILE,
    STORE,
    bring_over,
    end_copying,
    end_membership,
    is_moving_in,
    kept_copying,
    streams_at,
)
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.members.layout import PortPool
from leafcast.members.settings import FILE as MEMBER_FILE
from leafcast.members.settings import MemberSettings, kept_member
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.kept_store import kept_store
from relay.adapters.jetstream.jetstream_leader import until_led
from relay.adapters.jetstream.stream_contents import stream_form
from relay.adapters.jetstream.streams import last_message
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.leaf_address import LOOPBACK
from relay.adapters.server.nats_config import Neighbours
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.store_key import check_key
from relay.adapters.server.store_mark import kept_mark, mark_store
from relay.ports import BusBroken, Clock, Dice
from schemas.values.identity import NodePath

T = TypeVar("T")

LEDGER = "OWN"
READABLE_SECONDS, LOOK_SECONDS = 60.0, 0.5


def lone_survivor(place: DataDir) -> MemberSettings:
    """The member of a centre whose data directory it is; raises DataDirUnusable.

    One of which another one copies, or runs alone, has not what the centre has.
    """
    settings = kept_member(place.folder)
    if settings is None or not settings.path.is_root:
        reason = f"it has no {MEMBER_FILE} of a member of a centre"
        remedy = "name the data directory of the member that is left, with --data-dir"
        raise DataDirUnusable(place.folder, reason, remedy)
    if place.in_use():
        reason, remedy = "its member runs", "end it first (`leafcast down`, or Ctrl-C)"
        raise DataDirUnusable(place.folder, reason, remedy)
    copying = kept_copying(place.folder)
    if copying is not None and (why := copying.why_not(settings.name)):
        remedy = f"without a backup, move {place.folder / FILE} away to take what is stored here"
        raise DataDirUnusable(place.folder, why, remedy)
    return settings


async def recover(place: DataDir, settings: MemberSettings, clock: Clock, dice: Dice) -> Backup:
    """Have a member's data directory be that of a centre alone; what its store had.

    Copies of its store are read, and nothing of it changes before all is there. Its next start
    makes the streams anew, and takes each space for one that lost some. Raises BusBroken,
    BackupUnusable, StoreKeyRefused, OSError, and what a server raises that cannot start.
    """
    if is_moving_in(place.folder, settings.name):
        # The others were lost before all of it was theirs, and nothing was written since.
        await bring_over(place, clock, dice)
    folder, store = place.node(NodePath()), kept_store(place.folder).settings()
    check_key(folder, store.key)
    if (place.folder / PENDING).exists():
        with opened(place.folder / PENDING, store.key) as tar:
            waiting = read_backup(place.folder / PENDING, tar)
        end_copying(place.folder)
        end_membership(place)
        return waiting
    seeds, kept = account_seeds(folder, dice), kept_mark(folder)
    assert kept is not None, "a member's server ran here"
    with tempfile.TemporaryDirectory(prefix="recovering-", dir=place.folder) as scratch:
        clusters = _on_this_machine(settings, Path(scratch))
        async with ProcessGuard() as guard, AsyncExitStack() as stack:
            servers = []
            for name in (settings.name, min(clusters.keys() - {settings.name})):
                at, neighbours = Path(scratch) / name, Neighbours(cluster=clusters[name])
                shutil.copytree(folder / STORE, at / STORE)
                mark_store(at, replace(kept, member=name))
                server = EmbeddedServer(
                    at, NodePath(), seeds, neighbours, guard=guard, clock=clock, store=store
                )
                servers.append(await stack.enter_async_context(server))
            streams = streams_at(servers[0], seeds)
            for holder, stream in STREAMS:
                async with account(streams, holder, "recovering") as connection:
                    form = partial(stream_form, connection, stream)
                    if stream == LEDGER or await _in_time(form, clock) is not None:
                        await until_led(connection, clock, [stream])
                        await _in_time(partial(last_message, connection, stream, ">"), clock)
            pending = place.folder / PENDING
            found = await write_backup(pending, place, streams, clock, store.key)
    end_copying(place.folder)
    end_membership(place)
    return found


async def _in_time(ask: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """The answer, once a leader gives it; raises BusBroken if none does in time."""
    until = clock.now().seconds + READABLE_SECONDS
    while True:
        try:
            return await ask()
        except BusBroken:
            if clock.now().seconds > until:
                raise
            await clock.sleep(LOOK_SECONDS)


def _on_this_machine(settings: MemberSettings, scratch: Path) -> dict[str, ClusterSettings]:
    """The cluster of these members, with routes that lead to this machine alone."""
    pool = PortPool()
    ports = {name: pool.take(scratch / name)[1] for name in settings.keys}
    return {
        name: replace(
            settings.cluster,
            member=name,
            host=LOOPBACK,
            port=port,
            routes=tuple(f"{LOOPBACK}:{it}" for other, it in ports.items() if other != name),
        )
        for name, port in ports.items()
    }
