"""In which order what became of placements is listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Form = Mapping[str, Any]


def worst_first(forms: Sequence[Form]) -> list[Form]:
    """Those with problems, then failing, then unreachable, then incomplete ones; then by name."""
    return sorted(sorted(forms, key=lambda form: str(form["name"])), key=badness, reverse=True)


def badness(form: Form) -> tuple[bool, int, int, int, int, bool]:
    """The greater, the worse."""
    states, whole = form["states"], form["destinations"]
    return (
        bool(form.get("problem") or form.get("lack") or form.get("held")),
        states.get("failing", 0),
        form["health"].get("degraded", 0),
        states.get("unreachable", 0),
        2 * whole - states.get("synced", 0) - form["health"].get("healthy", 0),
        not form["complete"],
    )
