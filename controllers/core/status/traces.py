"""What was done at edges, and left there, as a placement's status tells it: nothing is wrong by it.

Both are levels that edges say again and again. While some have not, a lower one is no news.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.objects.stored_object import timestamp
from schemas.api.placement_details import KeptCopies, KeptCopy, RepairedCopies, RepairedCopy
from schemas.reports.reports import Count, ExceptionSample, RepairSample
from schemas.values.wording import namespace_first

_LEFT = "left in place: kept: "


def traces(count: Count, before: Mapping[str, Any]) -> dict[str, Any]:
    """What a status says of kept and of repaired copies; neither if there are none."""
    summary = count.summary
    kept = KeptCopies(count=summary.kept, copies=tuple(map(_kept, summary.kept_copies)))
    repaired = RepairedCopies(count=summary.repaired, last=tuple(map(_repaired, summary.repairs)))
    told = {"kept": kept.to_mapping(), "repairs": repaired.to_mapping()}
    for name, said in told.items():
        former = before.get(name)
        if not count.exact and isinstance(former, Mapping) and _count(former) > said["count"]:
            told[name] = dict(former)
    return {name: said for name, said in told.items() if said["count"]}


def _kept(sample: ExceptionSample) -> KeptCopy:
    return KeptCopy(
        object=namespace_first(sample.object),
        destinations=sample.count,
        path=sample.path,
        reason=sample.reason.removeprefix(_LEFT),
    )


def _repaired(sample: RepairSample) -> RepairedCopy:
    return RepairedCopy(
        time=timestamp(sample.at_ms),
        object=namespace_first(sample.object),
        path=sample.path,
        count=sample.count,
        field=sample.field,
        manager=sample.manager,
    )


def _count(said: Mapping[str, Any]) -> int:
    found = said.get("count")
    return found if isinstance(found, int) else 0
