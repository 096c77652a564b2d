"""How a node stands and what it holds, as its own page shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from leafcast.show.faults import faults, samples_of
from leafcast.show.tree_tables import headline, worst_text
from leafcast.ui.tones import Tone, placement_tone
from schemas.records.placements import short_title
from schemas.values.wording import many

FLAPS = 2
"""A link that was lost so often within ten minutes comes and goes."""
HASH_SHOWN = 12
CHANGES_SHOWN = 20

Form = Mapping[str, Any]
Json = dict[str, Any]

_LINK: Mapping[str, tuple[Tone, str]] = {
    "in session": ("good", "in session with its parent"),
    "catching up": ("busy", "its parent answers, and has not told it all yet"),
    "not reached": ("away", "its parent is not reached"),
    "not let in": ("bad", "its parent does not let it in"),
    "stopped": ("held", "another run with the same key is in its place, so this one does nothing"),
    "starting": ("busy", "it starts"),
}
_REMEDIES = {
    "not reached": "see that the machine of its parent runs, and that the network leads there; "
    "what is here goes on, and comes up by itself",
    "not let in": "see at the centre: leafcast node list; a node that was removed or moved joins "
    "with a new token",
    "stopped": "end one of the two",
}


def here_form(said: Form) -> Json:
    """All that the view shows."""
    link, now_ms = said["link"], said["nowMs"]
    tone, words = _LINK.get(link["state"], ("none", link["state"]))
    in_session = link["state"] == "in session"
    words = words[:1].upper() + words[1:]
    cause = link["cause"] if link["state"] == "not reached" else ""
    return {
        "path": said["path"],
        "role": said["role"],
        "version": said["version"],
        "tone": "away" if tone == "good" and said["stale"] else tone,
        "headline": f"{words}: {cause}" if cause else words,
        "remedy": (link["remedy"] if cause else "") or _REMEDIES.get(link["state"], ""),
        # Who was in session before was cut off then, however often it tried since.
        "sinceMs": link["sinceMs"] if in_session else link["sessionMs"] or link["startedMs"],
        "neverSince": not in_session and link["sessionMs"] is None,
        "flaps": link["lostTimes"] if link["lostTimes"] >= FLAPS else 0,
        "startedMs": link["startedMs"],
        "snapshotMs": said["snapshotMs"],
        "notes": list(_notes(said)),
        "holds": _holds(said),
        "rows": [_placement(form, now_ms) for form in said["held"]],
        "more": max(0, said["heldCount"] - len(said["held"])),
        "children": [_child(it) for it in said["children"]],
        "childrenMore": max(0, said["childCount"] - len(said["children"])),
        "changes": [
            {"id": str(it["atMs"]), "atMs": it["atMs"], **_change(it["state"])}
            for it in link["changes"][:CHANGES_SHOWN]
        ],
    }


def _change(state: str) -> Json:
    tone, words = _LINK.get(state, ("none", state))
    return {"tone": tone, "said": words}


def _holds(said: Form) -> str:
    what = many(said["heldCount"], "placement")
    if said["objects"] is not None:
        return f"{what}, {many(said['objects'], 'object')} applied"
    return f"{what} for {many(said['childCount'], 'child', 'children')}"


def _notes(said: Form) -> Iterator[str]:
    """What to know of the node besides its link."""
    if said["stale"]:
        yield "It was shown nothing newer for long: what it holds may be old, and is kept."
    if said["maintenance"]:
        yield "It is in maintenance: nothing is changed here until that ends."
    if said["role"] == "edge" and not said["isDestination"]:
        yield "It is no destination yet: the centre has said nothing of it that came here."
    if said["withheld"]:
        yield f"{many(said['withheld'], 'record')} in force that its mailbox does not show."
    if said["orphaned"]:
        yield f"{many(said['orphaned'], 'record')} that the centre does not know; they are kept."
    for name, why in sorted(said["unready"].items()):
        yield f"{name}: {why}"


def _placement(form: Form, now_ms: int) -> Json:
    waits = list(_waits(form))
    refused = form["here"]["refusedMs"]
    name, tone = short_title(form["name"]), placement_tone(form)
    see = f"leafcast status {name} --destinations, at the centre"
    return {
        "id": name,
        "tone": "busy" if waits and tone in ("good", "none") else tone,
        "generation": form["generation"],
        "said": headline(form),
        "worst": worst_text(form),
        "remedy": next((it.remedy(see) for it in faults(samples_of(form))), ""),
        "waits": waits,
        "waitsSinceMs": now_ms - refused if refused is not None else None,
    }


def _waits(form: Form) -> Iterator[str]:
    """What it waits for that is not here."""
    here = form["here"]
    if here["headOnly"]:
        yield "its content, which the mailbox at the parent does not have yet"
    if here["missingCount"]:
        named = ", ".join(f"{address[:HASH_SHOWN]}…" for address in here["missing"])
        what = many(here["missingCount"], "piece")
        yield f"{what} of content that did not come yet: {named}"
    if here["outdated"]:
        yield "a newer version, which is in force and did not come yet"
    if here["orphaned"]:
        yield "the centre, which does not know this version; it is kept until a person decides"
    if form["waitingFor"]:
        yield f"the reports of {', '.join(form['waitingFor'])}"


def _child(it: Form) -> Json:
    silent = it["silentSinceMs"]
    if not it["joined"]:
        tone, said = "none", "has not joined yet"
    elif it["left"]:
        tone, said = "held", "was stopped"
    elif silent is not None or not it["inSession"]:
        tone, said = "away", "does not answer"
    elif not it["inStep"]:
        tone, said = "busy", "is catching up"
    else:
        tone, said = "good", "in session"
    return {
        "id": it["name"],
        "role": "edge" if it["isEdge"] else "relay",
        "tone": tone,
        "said": said,
        "silentSinceMs": silent,
        "lag": it["lag"],
    }
