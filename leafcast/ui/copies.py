"""One copy at an edge: as it is meant, as it is there, in which fields these differ. Pure.

Data of Secrets is in neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.show.explanations import stop_text
from leafcast.show.object_output import yaml_text
from leafcast.show.rendering import rendering_lines
from leafcast.show.stages import CopyStage
from leafcast.ui.patches import LONG_TEXT_MAX_CHARACTERS, LongText
from leafcast.ui.tones import WORST_FIRST, Tone
from relay.objects.differences import differing_fields
from relay.objects.merge import merge_applied, wish_of
from relay.objects.nulls import said_by
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.objects.secret_values import without_secret_values
from schemas.records.asks import REDACTED
from schemas.records.placements import short_title

_STOPS: Mapping[str, Tone] = {
    CopyStage.REFUSED: "bad",
    CopyStage.NOT_HEALTHY: "bad",
    CopyStage.HELD: "held",
    CopyStage.APPROVAL: "held",
    CopyStage.FROZEN: "held",
}

Form = Mapping[str, Any]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CopySeen:
    """What the centre renders, and what the edge has; why not, of what is None."""

    rendered: Form | None
    live: Object | None
    unrendered: str = ""
    # "" if the edge answered, and has none.
    unread: str = ""
    # Why it is as it is, of each placement that brings it: the `explanations` of the verb `why`.
    why: Sequence[Form] = ()


def object_key(said: str) -> ObjectKey | None:
    """`deployments.apps/shop/web`, `namespaces/shop`, as reports name objects; None of others."""
    kind, _, place = said.partition("/")
    resource, _, group = kind.partition(".")
    namespace, slash, name = place.partition("/")
    if not slash:
        namespace, name = "", place
    return ObjectKey(group, resource, namespace, name) if resource and name else None


def copy_form(key: ObjectKey, found: CopySeen) -> Json:
    """The copy as the page shows it."""
    meant = _shown(found.rendered["object"]) if found.rendered is not None else None
    live = _shown(found.live) if found.live is not None else None
    differs = _differing(meant, live) if meant is not None and live is not None else ()
    is_secret = key.group_resource == ("", "secrets")
    stops = list(_stops(found.why))
    texts = [yaml_text(obj) if obj is not None else "" for obj in (meant, live)]
    rules = () if found.rendered is None or is_secret else rendering_lines(found.rendered)
    return {
        "tone": _tone(found, stops, is_other=bool(differs)),
        "differs": list(differs),
        "meant": LongText(texts[0][:LONG_TEXT_MAX_CHARACTERS]),
        "live": LongText(texts[1][:LONG_TEXT_MAX_CHARACTERS]),
        "cut": [len(text) > LONG_TEXT_MAX_CHARACTERS for text in texts],
        "rules": list(rules),
        "notes": list(found.rendered["notes"]) if found.rendered is not None else [],
        "unrendered": found.unrendered,
        "unread": found.unread,
        "why": stops,
        "isThere": live is not None,
        "isSecret": is_secret,
    }


def _stops(why: Sequence[Form]) -> Iterator[Json]:
    """What stops it; nothing if one of the placements has it there as it is meant."""
    if any(each["stage"] == CopyStage.AS_MEANT for each in why):
        return
    for each in why:
        said = {name: each[name] for name in ("remedy", "sinceMs", "at")}
        by = each["placement"] and short_title(each["placement"])
        tone = _STOPS.get(each["stage"], "busy")
        yield {**said, "placement": by, "tone": tone, "said": stop_text(each)}


def _shown(obj: Object) -> Object:
    """Without what a Secret holds, and without who manages which field."""
    shown: Object = dict(without_secret_values(obj, REDACTED))
    metadata = {it: said for it, said in shown["metadata"].items() if it != "managedFields"}
    return {**shown, "metadata": metadata}


def _differing(meant: Object, live: Object) -> tuple[str, ...]:
    """The fields that are not as they are meant; what nobody said does not count."""
    there = said_by(live)
    return differing_fields(wish_of(there), wish_of(merge_applied(there, {}, said_by(meant))))


def _tone(found: CopySeen, stops: Sequence[Json], *, is_other: bool) -> Tone:
    if found.unread:
        return "away"
    if found.rendered is None:
        return "none"
    if stops:
        return min((it["tone"] for it in stops), key=WORST_FIRST.index)
    return "good" if found.live is not None and not is_other else "busy"
