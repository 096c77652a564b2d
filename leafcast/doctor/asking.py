"""The facts that the doctor judges, asked of a running tree."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from leafcast.data_dir import DataDir
from leafcast.doctor.findings import DoctorFacts
from schemas.values.wire import convert

ASK_SECONDS = 30.0


async def asked_facts(call: Callable[..., Awaitable[Any]], place: DataDir) -> DoctorFacts:
    """What the tree of a data directory says, and how its disk is; raises what the call raises."""
    answer = await call("doctor", seconds=ASK_SECONDS)
    facts = convert(DoctorFacts, answer, "what the tree answers")
    return replace(facts, folder=str(place.folder), free_bytes=free_bytes(place))


def free_bytes(place: DataDir) -> int:
    """How much is free where a data directory is, or would be made."""
    above = (place.folder, *place.folder.parents)
    return shutil.disk_usage(next(folder for folder in above if folder.exists())).free
