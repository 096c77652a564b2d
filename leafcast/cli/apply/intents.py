"""What files would write at the centre, with a word for each object: what a plan begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leafcast.ask.session import Session
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import ApplyBatch, Written
from leafcast.cli.apply.warnings import warnings
from schemas.objects.objects import ObjectKey


@dataclass(frozen=True, slots=True)
class ChangeIntent:
    """What would be written at the centre, with a word for each object."""

    written: Written
    named: Sequence[ObjectKey]
    verbs: dict[ObjectKey, str]
    # What the objects themselves are to be warned of.
    warnings: Sequence[str] = ()


async def applied_intent(session: Session, asked: ApplyBatch) -> ChangeIntent:
    """What `apply` would write; raises BadManifests with all that is wrong."""
    async with judged(session, asked) as batch:
        changes = batch.writes
    news = {change.wish.key: change.after for change in changes if change.verb != "unchanged"}
    verbs = {change.wish.key: change.verb for change in changes}
    named = list(dict.fromkeys(change.wish.key for change in changes))
    return ChangeIntent(
        news, named, verbs, await warnings(session, changes, dry=True, placing=asked.placing)
    )
