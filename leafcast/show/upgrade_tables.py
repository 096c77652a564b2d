"""Releases of Leafcast as tables: how far each is, and who runs what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from leafcast.show.layout import Group, Table, Text, View
from schemas.releases.release_version import age_of
from schemas.values.wording import many

Form = Mapping[str, Any]
BY_HAND = (
    "Where no launcher runs the centre, a person upgrades it, before all others, or where it goes "
    "last, after them. "
)
MEMBERS = (
    "The members of a node on three machines go one at a time by themselves, where a launcher "
    "runs each; else by hand, before those below it."
)


def upgrades_view(listed: Sequence[Form], _now_ms: int) -> View:
    """Each release with its waves, and what it waits for."""
    if not listed:
        return Text("No release goes out: leafcast upgrade start VERSION", overflow="fold")
    parts: list[View | Text] = []
    for obj in listed:
        status: Form = obj.get("status") or {}
        phase = str(status.get("phase") or "Waiting")
        parts.append(Text(f"{obj['spec']['version']}: {phase}. {status.get('message', '')}"))
        if (waves := status.get("waves")) and phase != "Aborted":
            parts.append(_waves(waves))
        if centre := status.get("centre"):
            parts.append(Text(f"the centre: {centre}", overflow="fold"))
        parts += [Text(f"  {each}", overflow="fold") for each in _failures(status)]
        parts += [Text(f"  {each}", overflow="fold") for each in _newer(obj["spec"], status)]
    return Group(*parts)


def _failures(status: Form) -> list[str]:
    """Who could not take it, and why; what the centre says of itself is told before."""
    named: Sequence[str] = status.get("failures") or ()
    told = [each for each in named if not each.startswith("/: ")]
    failed = sum(wave.get("failed", 0) for wave in status.get("waves") or ())
    more = failed - len(told)
    return [*told, f"and {more} more"] if told and more > 0 else told


def _newer(spec: Form, status: Form) -> list[str]:
    """How many nodes run what is newer than a release that is through: packages brought it."""
    if status.get("phase") != "Complete":
        return []
    version = str(spec["version"])
    return [
        f"{many(each['nodes'], 'node')} with {each['version']}, which is newer and stays: a "
        f"package brought it; let {each['version']} out for all, or install {version} there again"
        for each in status.get("versions") or ()
        if age_of(str(each["version"])) > age_of(version)
    ]


def versions_view(found: Form, _now_ms: int) -> View:
    """A row for each child of the centre and each version that runs at or below it."""
    table = _table("below", "version", "state", "nodes")
    for name, said in sorted(found["children"].items()):
        for (version, state), count in sorted(_by_version(said["counts"]).items()):
            table.add_row(f"/{name}", version, state, str(count))
    for each in (found.get("centre") or {}).get("counts", ()):
        table.add_row("the centre", each["version"], each["state"], str(each["count"]))
    for (version, state), count in sorted(_by_version(found["counts"]).items()):
        table.add_row("whole tree", version, state, str(count))
    return table


def planned_view(found: Form, _now_ms: int) -> View:
    """Whom each wave would admit, and what runs now."""
    table = _table("wave", "relays", "edges")
    for wave in found["waves"]:
        table.add_row(wave["name"], str(wave["relays"]), str(wave["edges"]))
    now = [f"{n} run {v} ({s})" for (v, s), n in sorted(_by_version(found["counts"]).items())]
    ran = Text(f"Now {', '.join(now) or 'nobody has said what it runs'}.")
    order = Text(_order(found), overflow="fold")
    notes = [Text(each, overflow="fold") for each in found.get("notes", ())]
    hands = (BY_HAND if found["path"] == "/" else "") + MEMBERS
    return Group(table, ran, *notes, order, Text(hands, overflow="fold"))


def _order(found: Form) -> str:
    """When the centre takes a release, or why it does not go out."""
    version, order, path = found["version"], found.get("order"), found["path"]
    left = "" if path == "/" else f"The centre is left as it is: the release is for {path}. "
    if not order:
        when = "" if left else "when the centre goes, and "
        unknown = f"No release {version} is known here: --manifest FILE says"
        return f"{left}{unknown} {when}whether it can go out at all."
    if order["refused"]:
        return f"Refused: {order['refused']}."
    edges_first = order["why"] and order["goes"] == "last"
    if left:
        edges = f"Edges go before relays: {order['why']}." if edges_first else ""
        return f"{left}{edges}".strip()
    if not order["why"]:
        return f"The centre goes {order['goes']}; the wire would allow the other order, too."
    nodes = ", and edges before relays" if edges_first else ""
    return f"The centre goes {order['goes']}{nodes}: {order['why']}."


def _waves(waves: Sequence[Form]) -> Table:
    table = _table("wave", "phase", "members", "healthy", "failed", "elsewhere", "unheard")
    for wave in waves:
        counts = ("members", "healthy", "failed", "elsewhere", "unheard")
        table.add_row(wave["name"], wave["phase"], *(str(wave.get(it, 0)) for it in counts))
    return table


def _by_version(counts: Sequence[Form]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for each in counts:
        found[each["version"], each["state"]] += each["count"]
    return found


def _table(*columns: str) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column.upper(), no_wrap=True)
    return table
