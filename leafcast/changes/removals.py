"""What a change takes off edges, placement by placement, and when that is much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.changes.wishes import PlannedWrite
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.records.placements import short_title
from schemas.values.groups import CONTROL_GROUPS, DENATURED_GROUP
from schemas.values.wording import many

NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Removals:
    """What a change takes: of each placement so many copies, at so many destinations."""

    losses: Sequence[Mapping[str, Any]] = ()

    @property
    def are_large(self) -> bool:
        """Whether much goes of a placement; of one whose copies all stay nothing does."""
        return any(form["large"] and form.get("kept", 0) < form["copies"] for form in self.losses)

    def are_of(self, placement: str) -> bool:
        """Whether no other placement loses anything."""
        return all(form["placement"] == placement for form in self.losses)

    @property
    def kept(self) -> int:
        """How many of the copies stay where they are, though nothing wants them then."""
        return sum(int(form.get("kept", 0)) for form in self.losses)

    def __str__(self) -> str:
        """`takes 80 copies at 5 destinations away: epl/shop`."""
        said = [
            f"{_copies(form)} at {many(form['places'], 'destination')} ({_name(form)})"
            for form in sorted(self.losses, key=lambda form: -form["copies"])
        ]
        more = len(said) - NAMED_MAX
        rest = f" and {more} more placements" if more > 0 else ""
        return f"takes away {', '.join(said[:NAMED_MAX])}{rest}"

    @property
    def confirmed(self) -> Mapping[str, int]:
        """How many copies of each placement a person lets go."""
        return {form["placement"]: form["copies"] for form in self.losses}


def changes_that_may_remove(writes: Iterable[PlannedWrite]) -> dict[ObjectKey, Object]:
    """What of a batch can take something off edges: only what was there and says something else."""
    found: dict[ObjectKey, Object] = {}
    for write in writes:
        if write.before is not None and write.verb != "unchanged" and _may_remove(write):
            found[write.wish.key] = write.after
    return found


def _may_remove(write: PlannedWrite) -> bool:
    before, after = write.before or {}, write.after
    if _labels(before) != _labels(after):
        return True
    control = write.wish.key.group in {*CONTROL_GROUPS, DENATURED_GROUP}
    return control and before.get("spec") != after.get("spec")


def _labels(obj: Object) -> object:
    return (obj.get("metadata") or {}).get("labels") or {}


def _copies(form: Mapping[str, Any]) -> str:
    said, kept = many(int(form["copies"]), "copy", "copies"), int(form.get("kept", 0))
    return f"{said}, of which {kept:,} {'is' if kept == 1 else 'are'} kept there," if kept else said


def _name(form: Mapping[str, Any]) -> str:
    return short_title(form["placement"])
