"""A plan as people read it: how far it reaches, then what becomes of each object where, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leafcast.show.object_tables import laid_out, widths_of
from leafcast.show.rendering import shortened
from schemas.values.wording import some_of

FIELDS_MAX = 3
HEADERS = ("DESTINATION", "OBJECT", "ACTION", "WHY")
LIVE_HEADER = "LIVE"
_WORDS = {
    "delete": ("deletion", "deletions"),
    "held": ("held", "held"),
    "keep": ("kept", "kept"),
    "orphan": ("orphaned", "orphaned"),
    "create": ("creation", "creations"),
    "update": ("update", "updates"),
    "frozen": ("frozen", "frozen"),
}

Form = Mapping[str, Any]


def blast_radius(summary: Form, *, centre: bool = False) -> str:
    """`1 placement, 1,204 destinations: 12 deletions, 1,201 updates, 3 frozen`.

    Where something changes at the `centre`, it says of what nothing does.
    """
    placements = _counted(summary["placements"], ("placement", "placements"))
    destinations = _counted(summary["destinations"], ("destination", "destinations"))
    counts = summary["counts"]
    told = [_counted(counts[word], forms) for word, forms in _WORDS.items() if counts.get(word)]
    nothing = "nothing changes at destinations" if centre else "nothing changes"
    return f"{placements}, {destinations}: {', '.join(told) or nothing}"


def at_the_centre(verbs: Iterable[str]) -> str:
    """`at the centre: 1 created, 2 configured`; empty if nothing changes there."""
    counts = Counter(verb for verb in verbs if verb != "unchanged")
    said = ", ".join(f"{count:,} {verb}" for verb, count in counts.items())
    return f"at the centre: {said}" if said else ""


def waves_lines(summary: Form) -> list[str]:
    """`edgeplacement/shop goes out in 2 waves: canary 12, rest 1,192`, a line each."""
    return [
        f"{name} goes out in {_counted(len(waves), ('wave', 'waves'))}: "
        + ", ".join(f"{wave['name']} {wave['members']:,}" for wave in waves)
        for name, waves in summary["waves"].items()
    ]


def object_name(key: Sequence[str]) -> str:
    """`shop/deployments.apps/web`."""
    group, resource, namespace, name = key
    kind = f"{resource}.{group}" if group else resource
    return "/".join(part for part in (namespace, kind, name) if part)


def why_text(row: Form) -> str:
    """Why, and of which fields."""
    fields = [str(name) for name in row["fields"]]
    if not fields:
        return str(row["why"])
    if row["why"]:
        return f"{row['why']} for {shortened(fields[0])}"
    return some_of(fields, FIELDS_MAX)


def grouped(rows: Iterable[Form]) -> list[list[Form]]:
    """The rows by what becomes of which object, and why; in the order of the first of each."""
    found: dict[tuple[object, ...], list[Form]] = {}
    for row in rows:
        alike = (tuple(row["key"]), row["action"], why_text(row), row.get("live"))
        found.setdefault(alike, []).append(row)
    return list(found.values())


@dataclass(slots=True)
class PlanTable:
    """Rows that may go on: the header comes once, columns keep their widths.

    What keeps back many copies is told in full of the first of them. `groups` puts what is alike at
    several destinations into one row.
    """

    live: bool = False
    groups: bool = False
    _told: set[str] = field(default_factory=set)
    _widths: list[int] = field(default_factory=list)

    def lines(self, rows: Sequence[Form]) -> list[str]:
        alike = grouped(rows) if self.groups else [[row] for row in rows]
        cells = [self._cells(of[0], len(of)) for of in alike]
        if not self._widths:
            cells.insert(0, (*HEADERS, LIVE_HEADER) if self.live else HEADERS)
        self._widths = widths_of(cells, self._widths)
        return laid_out(cells, self._widths)

    def _cells(self, row: Form, count: int) -> tuple[str, ...]:
        where = str(row["destination"])
        if count > 1:
            where += f" and {count - 1:,} more"
        own = (where, object_name(row["key"]), row["action"], self._why(row))
        return (*own, row["live"]) if self.live else own

    def _why(self, row: Form) -> str:
        why = why_text(row)
        if row["action"] != "held":
            return why
        if why in self._told:
            return f"{why.partition(': ')[0]}, as above"
        self._told.add(why)
        return why


def _counted(count: int, forms: tuple[str, str]) -> str:
    return f"{count:,} {forms[count != 1]}"
