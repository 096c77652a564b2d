"""What a plan has to say beside its waves: what it waits for, whom it bars, and whom it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.releases.release_phases import UNDER_WAY
from schemas.releases.release_version import age_of
from schemas.values.wording import many, some_of

Form = Mapping[str, Any]
NAMED_MAX = 3
_ALL = 100


def plan_notes(
    version: str, upgrades_from: str, waves: Sequence[Form], found: Form, listed: Sequence[Form]
) -> list[str]:
    """Lines for people; `upgrades_from` is "" where no manifest of that version is known."""
    return [*_held(version, listed), *_barred(version, upgrades_from, found), *_left(waves)]


def _held(version: str, listed: Sequence[Form]) -> Iterator[str]:
    for obj in listed:
        other, phase = str(obj["spec"]["version"]), (obj.get("status") or {}).get("phase")
        if other == version or phase not in UNDER_WAY:
            continue
        until = f"{version} waits until it is complete, or: leafcast upgrade abort {other}"
        goes = "failed, and holds others" if phase == "Failed" else f"goes out now ({phase})"
        yield f"{other} {goes}. One release goes out at a time: {until}."


def _barred(version: str, upgrades_from: str, found: Form) -> Iterator[str]:
    if not upgrades_from:
        return
    barred = _below(found, upgrades_from)
    if not barred:
        return
    places = {f"/{name}": _below(said, upgrades_from) for name, said in found["children"].items()}
    if here := _below(found.get("centre") or {}, upgrades_from):
        places["the centre"] = here
    where = [f"{place}: {count.total()}" for place, count in sorted(places.items()) if count]
    run = some_of(sorted(barred, key=age_of), NAMED_MAX)
    nodes = f"{many(barred.total(), 'node')} with {run} will refuse it"
    why = f"{version} follows {upgrades_from} or later"
    at = f" ({some_of(where, NAMED_MAX)})" if where else ""
    yield f"{nodes}{at}: {why}. Let out a release between first."


def _below(said: Form, upgrades_from: str) -> Counter[str]:
    found = Counter[str]()
    for each in said.get("counts", ()):
        if age_of(str(each["version"])) < age_of(upgrades_from):
            found[str(each["version"])] += each["count"]
    return found


def _left(waves: Sequence[Form]) -> Iterator[str]:
    if any(wave.get("percent") == _ALL for wave in waves):
        return
    last = max((wave.get("percent") or 0 for wave in waves), default=0)
    ends = f"end at {last}%" if last else "name no share"
    yield f"The waves {ends}: who is in none of them stays with what it runs. Add 100% for all."
