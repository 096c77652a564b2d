"""Rollouts, events, what waits for a person, and what the doctor found, as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leafcast.doctor.findings import Check
from leafcast.show.holds import milliseconds
from leafcast.show.plans import object_name
from leafcast.show.rollout_tables import (
    rollout_headline,
    rollout_notes,
    steered,
    unattended,
    wave_in_hand,
    wave_state,
)
from leafcast.ui.acts import act
from leafcast.ui.rows import ROWS_MAX
from leafcast.ui.tones import Tone
from schemas.records.placements import short_title

KEY_SHOWN = 12
_PHASES: Mapping[str, Tone] = {
    "Aborted": "bad",
    "Held": "held",
    "Paused": "held",
    "AwaitingApproval": "held",
    "Complete": "good",
}
_WAVES: Mapping[str, Tone] = {
    "Failed": "bad",
    "Done": "good",
    "Promoted": "good",
    "AwaitingApproval": "held",
    "Progressing": "busy",
    "Soaking": "busy",
}
_ACTIONS: Mapping[str, Tone] = {
    "delete": "bad",
    "held": "held",
    "keep": "held",
    "orphan": "held",
    "frozen": "held",
    "create": "busy",
    "update": "busy",
}
_CHECKS: Mapping[str, Tone] = {"ok": "good", "warning": "held", "failure": "bad"}
_COUNTS = ("members", "healthy", "failing", "waiting", "unreachable")

Form = Mapping[str, Any]
Json = dict[str, Any]


def rollout_row(obj: Form) -> Json:
    """One Rollout in a line."""
    status: Form = obj.get("status") or {}
    wave = wave_in_hand(status) or {}
    phase = str(status.get("phase") or "Waiting")
    failed = wave.get("phase") == "Failed"
    return {
        "id": str(obj["metadata"]["name"]),
        "tone": "bad" if failed else _PHASES.get(phase, "busy"),
        "placement": steered(obj),
        "revision": status.get("revision"),
        "phase": phase,
        "wave": wave.get("name", "") if phase not in ("Complete", "Partial", "Aborted") else "",
        "message": str(status.get("message") or ""),
    }


def rollout_flow(obj: Form) -> Json:
    """One Rollout: its waves in their order, what each waits for, and what happens next."""
    status: Form = obj.get("status") or {}
    in_hand = wave_in_hand(status)
    history = sorted(status.get("history", ()), key=lambda it: -int(it["number"]))
    return {
        "head": {
            **rollout_row(obj),
            "headline": _headline(status),
            "notes": list(rollout_notes(status)),
            "next": str(status.get("next") or ""),
            "unattended": unattended(status),
            "exact": status.get("complete") is not False,
            "acts": rollout_acts(obj),
        },
        "waves": [_wave(status, wave, at=wave is in_hand) for wave in status.get("waves", ())],
        "history": [
            {
                "id": int(it["number"]),
                "sinceMs": milliseconds(str(it.get("time") or "")),
                "user": it.get("user") or "",
                "cause": it.get("cause") or "",
                "outcome": it.get("outcome") or "",
            }
            for it in history
        ],
    }


def rollout_acts(obj: Form) -> list[Json]:
    """What a person may do with it now, as the page can."""
    row = rollout_row(obj)
    if row["phase"] in ("Complete", "Partial", "Aborted") or row["revision"] is None:
        return []
    found = [act("rollout-abort", rollout=row["id"])]
    if row["phase"] != "Paused":
        found.insert(0, act("rollout-pause", rollout=row["id"]))
    if row["phase"] == "AwaitingApproval":
        found.insert(0, act("rollout-approve", rollout=row["id"], wave=str(row["wave"])))
    return [it for it in found if it is not None]


def _headline(status: Form) -> str:
    return rollout_headline(status).text.replace("  ", ", ") if status.get("revision") else ""


def _wave(status: Form, wave: Form, *, at: bool) -> Json:
    said: Form = wave["definition"]
    aborted = status.get("phase") == "Aborted" and wave.get("phase", "Pending") in (
        "AwaitingApproval",
        "Progressing",
        "Soaking",
    )
    tone: Tone = "bad" if aborted else _WAVES.get(wave.get("phase", "Pending"), "none")
    return {
        "id": str(wave["name"]),
        "tone": tone,
        "state": wave_state(status, wave).text,
        "inHand": at,
        "gate": str(wave["gate"]),
        "soak": str(said.get("soak") or ""),
        "approval": str(said.get("approval") or ""),
        "reason": str(wave.get("reason") or ""),
        **{name: wave.get(name) for name in _COUNTS},
    }


def event_rows(events: Sequence[Form], search: str, *, warnings: bool) -> Json:
    """The newest of the events that have all these words; how many more there are."""
    words = search.lower().split()
    found = [
        event
        for event in events
        if (event["type"] == "Warning" or not warnings) and all(w in _text(event) for w in words)
    ]
    return {"rows": [_event(event) for event in found[:ROWS_MAX]], "count": len(found)}


def _text(event: Form) -> str:
    return " ".join(str(event[it]) for it in ("reason", "node", "object", "message")).lower()


def _event(event: Form) -> Json:
    return {
        "id": " ".join(str(event[it]) for it in ("reason", "node", "object", "message")),
        "tone": "away" if event["type"] == "Warning" else "none",
        "type": event["type"],
        "lastMs": event["last_ms"],
        "firstMs": event["first_ms"],
        "count": event["count"],
        "reason": event["reason"],
        "node": event["node"],
        "object": event["object"],
        "message": event["message"],
    }


def request_rows(nodes: Sequence[Form], held: Form, rollouts: Sequence[Form]) -> list[Json]:
    """What waits for a person, each with the command that lets it go on."""
    rows: list[Json] = [
        {
            "id": f"node {it['path']} {it['nkey']}",
            "what": f"{it['path']} asks to be let in",
            "said": f"machine {it['said'] or '-'}, key {it['nkey'][:KEY_SHOWN]}",
            "sinceMs": it["askedMs"],
            "command": f"leafcast node approve {it['path']}",
            "act": act("node-approve", path=str(it["path"])),
        }
        for it in nodes
    ]
    for name, why in sorted(held["placements"].items()):
        said = act("accept", placement=short_title(name))
        rows.append(_removal(f"a removal of {short_title(name)}", why, short_title(name), said))
    for kind, why in sorted(held["inventory"].items()):
        what = f"a removal of {kind}"
        rows.append(_removal(what, why, "--inventory", act("accept-inventory")))
    for space, why in sorted(held["spaces"].items()):
        said = act("accept-space", space=space)
        rows.append(_removal(f"what the lost space {space} said", why, f"--space {space}", said))
    if held["ledger"]:
        said = act("accept-ledger")
        rows.append(_removal("what the ledger lost", held["ledger"], "--ledger", said))
    for obj in rollouts:
        row = rollout_row(obj)
        if row["phase"] == "AwaitingApproval":
            command = str((obj.get("status") or {}).get("next") or "")
            what = f"rollout {row['id']} waits for approval of wave {row['wave']}"
            since = _stalled_ms(obj.get("status") or {})
            told = {"what": what, "said": row["message"], "sinceMs": since, "command": command}
            approves = act("rollout-approve", rollout=row["id"], wave=str(row["wave"]))
            rows.append({"id": f"rollout {row['id']}", **told, "act": approves})
    return [{"tone": "held", **row} for row in rows]


def _stalled_ms(status: Form) -> int | None:
    """Since when a Rollout waits for a person, as its conditions tell."""
    for said in status.get("conditions") or ():
        if said.get("type") == "Stalled":
            return milliseconds(str(said.get("lastTransitionTime") or ""))
    return None


def _removal(what: str, why: str, words: str, accepts: Json | None) -> Json:
    said = {"what": f"{what} is held", "said": why, "sinceMs": None, "act": accepts}
    return {"id": f"accept {words} {what}", **said, "command": f"leafcast accept {words}"}


def check_rows(found: Sequence[Check]) -> list[Json]:
    """The doctor's findings, what failed first."""
    order = ("failure", "warning", "ok")
    ranked = sorted(enumerate(found), key=lambda it: (order.index(it[1].state), it[0]))
    return [
        {
            "id": f"{at}",
            "tone": _CHECKS[check.state],
            "group": check.group,
            "said": check.said,
            "cause": check.cause,
            "remedy": check.remedy,
            "about": check.about,
        }
        for at, check in ranked
    ]


def plan_form(found: Form) -> Json:
    """A plan: what becomes of each object, what is alike at several destinations in one row."""
    return {
        "reach": found["reach"],
        "centre": found["centre"],
        "objects": [{"id": name, "verb": verb} for name, verb in found["objects"].items()],
        "waves": found["waves"],
        "rows": [
            {
                "id": str(at),
                "tone": _ACTIONS.get(group["row"]["action"], "none"),
                "action": group["row"]["action"],
                "object": object_name(group["row"]["key"]),
                "destination": group["row"]["destination"],
                "more": group["count"] - 1,
                "why": group["why"],
            }
            for at, group in enumerate(found["groups"])
        ],
        "rest": max(0, found["all"] - found["rows"]),
        "notes": found["notes"],
    }
