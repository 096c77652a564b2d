"""How something is, in one word that the page shows as a colour and a sign."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from leafcast.show.tree_tables import stands_still
from schemas.reports.states import NEVER_JOINED

Tone = Literal["bad", "away", "held", "busy", "good", "none"]
"""Something fails; cannot be reached; waits for a person; is under way; all well; nothing there."""

WORST_FIRST: tuple[Tone, ...] = get_args(Tone)

_AWAY = frozenset({"unreachable", "revoked", "unknown"})
_BUSY = frozenset({"connecting", "catching up", "stale"})

Form = Mapping[str, Any]


def placement_tone(form: Form) -> Tone:
    """Of a placement, or of a node in one: the worst of it."""
    states, health, whole = form["states"], form["health"], form["destinations"]
    if form.get("problem") or form.get("lack") or states.get("failing") or health.get("degraded"):
        return "bad"
    if form.get("state") in _AWAY or states.get("unreachable"):
        return "away"
    if form.get("held") or states.get("frozen"):
        return "held"
    if not whole:
        return "none" if form["complete"] else "busy"
    well = states.get("synced", 0) == whole == health.get("healthy", 0)
    return "good" if well and form["complete"] and not stands_still(form) else "busy"


def node_tone(form: Form, now_ms: int) -> Tone:
    """Of a node of the tree and all that lies below it: the worst of it."""
    state, whole = form["state"], form["destinations"]
    if form.get("failing") or form.get("degraded"):
        return "bad"
    if state in _AWAY or form.get("unreachable"):
        return "away"
    if state == "stopped" or form.get("maintenance_until_ms", 0) > now_ms:
        return "held"
    if state == NEVER_JOINED:
        return "none"
    if state in _BUSY:
        return "busy"
    if not whole:
        return "none" if form["complete"] else "busy"
    well = form["synced"] == whole == form["healthy"]
    return "good" if well and form["complete"] else "busy"
