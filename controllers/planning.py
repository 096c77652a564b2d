"""What a change would do, from what the centre knows now; nothing is issued, nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from controllers.centre import Controllers
from controllers.core.ledger.weighing import Loss
from controllers.core.planning.dry_run import CentreState, DryRun, Written, dry_run
from controllers.core.planning.losses import losses
from controllers.core.planning.plan import Plan, plan
from controllers.core.translation.reading import read_issued
from controllers.core.translation.translate import IssuedDelta
from controllers.issuing.issuer import load_all, read_all
from schemas.content.blobs import Reference, open_value, parts_of
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead, Record
from schemas.values.identity import ContentHash, MailKey

CONTENT_BYTES_MAX = 128 * 1024 * 1024
"""So much content is looked into; of more it is told that it differs, and not in what."""


async def make_plan(
    controllers: Controllers, workloads: Written, inventory: Written, named: Iterable[ObjectKey]
) -> tuple[DryRun, Plan]:
    """Rehearse what is written and deleted, beside the centre's work; raises SpaceError, BusBroken.

    `workloads` and `inventory` go to the first spaces of either kind.
    """
    stage = await _stage(controllers, workloads, inventory)
    told = frozenset(named)
    trial = await asyncio.to_thread(dry_run, stage, workloads, inventory, told)
    contents = _opened(controllers, trial, await _contents(controllers, trial))
    now_ms = controllers.now_ms
    made = await asyncio.to_thread(plan, trial.before, trial.after, contents, told, now_ms=now_ms)
    return trial, made


async def weigh_change(
    controllers: Controllers, workloads: Written, inventory: Written
) -> Mapping[str, Loss]:
    """What a change would take of each placement, by its name; raises SpaceError, BusBroken."""
    stage = await _stage(controllers, workloads, inventory)

    def weighed() -> Mapping[str, Loss]:
        trial = dry_run(stage, workloads, inventory)
        return losses(trial.before, trial.after)

    return await asyncio.to_thread(weighed)


async def _stage(controllers: Controllers, workloads: Written, inventory: Written) -> CentreState:
    ledger = dict(controllers.issuer.records)
    written = [dict(obj) for obj in workloads.values() if obj is not None]
    return CentreState(
        controllers.translator.placements,
        controllers.mailboxes.registry,
        ledger,
        await controllers.translator.listing(written),
        await controllers.mailboxes.listing() if inventory else {},
        await _others(controllers, ledger),
        controllers.now_ms,
    )


async def _others(
    controllers: Controllers, ledger: Mapping[MailKey, Record]
) -> dict[MailKey, IssuedDelta]:
    """What placements of other spaces have delivered, those that nobody follows any more, too."""
    first, *others = (one.translator.placements for one in controllers.workload_spaces)
    found = {issued.head.source.key: issued for one in others for issued in one.standing().values()}
    ours = {issued.head.source.key for issued in first.standing().values()}
    for key, record in ledger.items():
        if isinstance(record, DeltaHead) and key not in found and key not in ours:
            body = controllers.issuer.ledger.bodies[key].value
            keys = controllers.keys.sealing.ring.keys(key)
            found[key] = await read_all(controllers.relay, read_issued(record, body, keys))
    return found


async def _contents(controllers: Controllers, trial: DryRun) -> dict[ContentHash, bytes]:
    """The content by which differences are told: what matters most, as long as there is room."""
    found: dict[ContentHash, bytes] = {}
    kept: list[Reference] = []
    room = CONTENT_BYTES_MAX
    for reference in trial.wanted:
        room -= reference.size
        if room < 0:
            break
        value = trial.stored.get(reference.address)
        if value is None:
            kept.append(reference)
            continue
        parts = {it.address: trial.stored[it.address] for it in parts_of(reference, value)}
        found[reference.address] = open_value(reference, value, parts)
    return {**found, **await load_all(controllers.relay, kept)}


def _opened(
    controllers: Controllers, trial: DryRun, stored: Mapping[ContentHash, bytes]
) -> dict[ContentHash, bytes]:
    """The same with what is sealed opened, as far as there are keys."""
    opened, ring = dict(stored), controllers.keys.sealing.ring
    for state in (trial.before, trial.after):
        for key, delivery in state.placements.items():
            for reference in delivery.sealed():
                value = stored.get(reference.address)
                if value is not None and opened[reference.address] is value:
                    plain = ring.keys(key).open(reference.kind, value)
                    if plain is not None:
                        opened[reference.address] = plain
    return opened
