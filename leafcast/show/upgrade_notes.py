"""What a plan has to say beside its waves: what it waits for, whom it bars, and whom it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from schemas.releases.release_phases import UNDER_WAY
from schemas.releases.release_version import age_of
from schemas.reports.running import UNMANAGED
from schemas.values.identity import NodePath
from schemas.values.wording import many, some_of

Form = Mapping[str, Any]
NAMED_MAX = 3
_ALL = 100


def plan_notes(
    upgrades_from: str, waves: Sequence[Form], found: Form, listed: Sequence[Form]
) -> list[str]:
    """Lines for people; `upgrades_from` is "" where no manifest of that version is known.

    `found` is what the centre says of it, with its `version` and `path`.
    """
    version = str(found["version"])
    return [
        *_held(version, listed),
        *_barred(version, upgrades_from, found),
        *_empty(waves, found),
        *_left(waves),
    ]


def _held(version: str, listed: Sequence[Form]) -> Iterator[str]:
    for obj in listed:
        other, phase = str(obj["spec"]["version"]), (obj.get("status") or {}).get("phase")
        if other == version or phase not in UNDER_WAY:
            continue
        until = f"{version} waits until it is complete, or: leafcast upgrade abort {other}"
        goes = "failed, and holds others" if phase == "Failed" else f"goes out now ({phase})"
        yield f"{other} {goes}. One release goes out at a time: {until}."


def _barred(version: str, upgrades_from: str, found: Form) -> Iterator[str]:
    """Whom the release would be too new for, of those that it goes to through the tree."""
    if not upgrades_from:
        return
    path = NodePath.parse(found["path"])
    places = {
        f"/{name}": _below(said, upgrades_from)
        for name, said in sorted(found["children"].items())
        if path.is_root or name == path.names[0]
    }
    most = sum(wave["relays"] + wave["edges"] for wave in found["waves"])
    if path.is_root:
        places["the centre"] = _below(found.get("centre") or {}, upgrades_from)
        most += 1
    barred = sum(places.values(), Counter[str]())
    where = [f"{place}: {count.total()}" for place, count in places.items() if count]
    run = some_of(sorted(barred, key=age_of), NAMED_MAX)
    who = f"{many(barred.total(), 'node')} with {run}"
    if barred.total() > most:
        # What is said below a child is told apart by neither place nor wave.
        who = f"at most {many(most, 'node')}, of {barred.total()} with {run},"
    if barred and most:
        why = f"{version} follows {upgrades_from} or later"
        told = f"{who} will refuse it ({some_of(where, NAMED_MAX)}): {why}"
        yield f"{told}. Let out a release between first."


def _below(said: Form, upgrades_from: str) -> Counter[str]:
    found = Counter[str]()
    for each in said.get("counts", ()):
        is_older = age_of(str(each["version"])) < age_of(upgrades_from)
        if is_older and each["state"] not in UNMANAGED:
            found[str(each["version"])] += each["count"]
    return found


def _empty(waves: Sequence[Form], found: Form) -> Iterator[str]:
    """The waves at which the release would wait for a person; and that nobody would get it."""
    counted = {wave["name"]: wave["relays"] + wave["edges"] for wave in found["waves"]}
    for wave in waves:
        if counted.get(wave["name"]) == 0 and not wave.get("allowEmpty"):
            said = f'Wave "{wave["name"]}" admits nobody: the release would wait there'
            remedy = "Label SyncTargets for it, leave it out, or start with --allow-empty"
            yield f"{said}. {remedy}."
    if not any(counted.values()):
        yield f"No wave admits anybody at or below {found['path']}."


def _left(waves: Sequence[Form]) -> Iterator[str]:
    if any(wave.get("percent") == _ALL for wave in waves):
        return
    last = max((wave.get("percent") or 0 for wave in waves), default=0)
    ends = f"end at {last}%" if last else "name no share"
    yield f"The waves {ends}: who is in none of them stays with what it runs. Add 100% for all."
