"""What the daemon answers, as the page shows it: rows by ids, counts that say if they are exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.show.faults import FaultGroup, faults, samples_of
from leafcast.show.holds import hold_text, milliseconds
from leafcast.show.placement_order import worst_first
from leafcast.show.tree_tables import headline, worst_text
from leafcast.ui.tones import WORST_FIRST, node_tone, placement_tone
from schemas.objects.objects import ObjectKey
from schemas.records.placements import short_title
from schemas.reports.states import AT_WORK

ROWS_MAX = 200

Form = Mapping[str, Any]
Json = dict[str, Any]


def placements_form(found: Form) -> Json:
    """All placements, the worst first; what is wrong with the centre itself."""
    listed = [placement_row(form) for form in worst_first(found["placements"])]
    # What fails comes before what waits for a person, as the signs say.
    return {
        "rows": sorted(listed, key=lambda row: WORST_FIRST.index(row["tone"])),
        "lostSpaces": [f"{space}: {what}" for space, what in sorted(found["lostSpaces"].items())],
        "backupTrouble": found["backupTrouble"],
    }


def placement_row(form: Form) -> Json:
    """One placement in a line."""
    silent = [item["since_ms"] for item in form["unreachable"]]
    return {
        "id": short_title(form["name"]),
        "tone": placement_tone(form),
        "selected": form["selected"],
        **_counts(form),
        "silentSinceMs": min(silent, default=None),
        "worst": worst_text(form),
        "conditions": [_condition(it) for it in form.get("conditions", ())],
    }


def placement_head(form: Form) -> Json:
    """One placement at length, without its tiers."""
    return {
        **placement_row(form),
        "headline": headline(form),
        "problems": [form[why] for why in ("problem", "lack") if form.get(why)],
        "notes": [*filter(None, [form.get("undenatured")]), *form.get("unreturned", ())],
        "held": [_hold(hold) for hold in form.get("held", ())],
        "waitsFor": list(form["blocking"]),
        "silent": [_silent(item) for item in form["unreachable"]],
        "kept": form.get("kept", 0),
        "repaired": form.get("repaired", 0),
        "faults": [_fault(group, form["name"]) for group in faults(samples_of(form))],
    }


def tier_rows(nodes: Iterable[Form]) -> list[Json]:
    """The children of a node in one placement, the worst first."""
    return [
        {
            "id": form["path"],
            "name": form["path"].rpartition("/")[2],
            "tone": placement_tone(form),
            "role": form["role"],
            "state": form["state"],
            "silentSinceMs": form["silent_since_ms"],
            **_counts(form),
            "worst": worst_text(form),
            "wave": form.get("wave", ""),
        }
        for form in worst_first([{**node, "name": node["path"]} for node in nodes])
    ]


def carried_row(found: Form) -> Json:
    """An object that a search found, with the placements that bring it."""
    return {
        "id": str(ObjectKey(*found["key"])),
        "placements": [short_title(name) for name in found["placements"]],
    }


def level_rows(found: Form, now_ms: int) -> Json:
    """A node of the tree, and a page of its children."""
    return {
        "node": _node(found["node"], now_ms),
        "rows": [_node(form, now_ms) for form in found["children"]],
        "count": found["count"],
        "skip": found["skip"],
        "answers": found["answers"],
        "held": [{**_hold(it), "of": short_title(it["placement"])} for it in found["held"]],
    }


def _node(form: Form, now_ms: int) -> Json:
    path, until = str(form["path"]), form.get("maintenance_until_ms", 0)
    whole, complete = form["destinations"], form["complete"]
    return {
        "id": path,
        "name": path.rpartition("/")[2] or "/",
        "tone": node_tone(form, now_ms),
        "role": "edge" if form.get("is_edge") else form["role"],
        "state": form["state"],
        "silentSinceMs": form["silent_since_ms"],
        "target": form.get("sync_target", ""),
        "edges": form["edges"],
        "children": form["children"],
        "delivered": {"n": form["synced"], "of": whole, "exact": complete},
        "working": {"n": form["healthy"], "of": whole, "exact": complete},
        "failing": form.get("failing", 0),
        "degraded": form.get("degraded", 0),
        "unreachable": form.get("unreachable", 0),
        "lag": form["lag"],
        "objects": form["objects_applied"],
        "maintenanceUntilMs": until if until > now_ms else None,
        "maintenanceReason": form.get("maintenance_reason", "") if until > now_ms else "",
    }


def _counts(form: Form) -> Json:
    states, health = form["states"], form["health"]
    whole, complete = form["destinations"], form["complete"]
    return {
        "delivered": {"n": states.get("synced", 0), "of": whole, "exact": complete},
        "working": {"n": health.get("healthy", 0), "of": whole, "exact": complete},
        "unreachable": states.get("unreachable", 0),
        "neverJoined": form.get("never_joined", 0),
        "states": {word: count for word, count in sorted(states.items()) if count},
        "health": {word: count for word, count in sorted(health.items()) if count},
    }


def _condition(said: Form) -> Json:
    return {
        "id": str(said.get("type", "")),
        "status": str(said.get("status", "")),
        "reason": str(said.get("reason", "")),
        "message": str(said.get("message", "")),
        "sinceMs": milliseconds(str(said.get("lastTransitionTime", ""))),
    }


def _hold(hold: Form) -> Json:
    since = milliseconds(str(hold.get("since") or ""))
    return {"said": hold_text(hold), "sinceMs": since, "remedy": str(hold.get("remedy") or "")}


def _silent(item: Form) -> Json:
    return {
        "id": item["path"],
        "state": item.get("state", "unreachable"),
        "sinceMs": item["since_ms"],
        "destinations": item["destinations"],
    }


def _fault(group: FaultGroup, placement: str) -> Json:
    see = f"leafcast status {short_title(placement)} --destinations"
    return {
        "id": f"{group.kind.name} {group.objects} {group.reason}",
        "tone": "busy" if group.severity >= AT_WORK else "bad",
        "cause": group.kind.cause,
        "objects": group.objects,
        "reason": group.reason,
        "count": group.count,
        "example": group.first.path,
        "exampleObject": group.first.object,
        "remedy": group.remedy(see),
    }
