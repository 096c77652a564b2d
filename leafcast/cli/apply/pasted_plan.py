"""What applying pasted manifests would do, as the page asks for it; nothing is written."""

from __future__ import annotations

from typing import Any

from leafcast.ask.session import CallFailed, Session
from leafcast.changes.asked_batches import judged
from leafcast.changes.asked_plans import planned_writes
from leafcast.changes.forms import ApplyBatch
from leafcast.cli.apply.warnings import warnings
from leafcast.manifest_sources import BadManifests
from leafcast.show.plans import at_the_centre, blast_radius, grouped, waves_lines, why_text
from schemas.objects.manifest_files import read_objects
from schemas.values.wording import namespace_first

ORIGIN = "pasted text"
REMEDY = "mend it and plan again"

Form = dict[str, Any]


async def planned_text(session: Session, text: str) -> Form:
    """How far it reaches, what changes at the centre, and what becomes of which object where.

    Raises CallFailed, also of manifests that cannot be used, with all that is wrong.
    """
    loaded, problems = read_objects(text, ORIGIN)
    if problems or not loaded:
        said = "\n".join(map(str, problems)) or f"{ORIGIN}: there is no object in it"
        raise CallFailed("plan", "Invalid", said, REMEDY)
    try:
        async with judged(session, ApplyBatch(loaded)) as batch:
            changes = batch.writes
    except BadManifests as error:
        raise CallFailed("plan", "Invalid", "\n".join(error.faults), REMEDY) from error
    warned = await warnings(session, changes, dry=True, placing=None)
    async with planned_writes(session, changes) as made:
        summary = made.summary
    verbs = {change.wish.key: change.verb for change in changes}
    centre = at_the_centre(verbs.values())
    return {
        "reach": blast_radius(summary, centre=bool(centre)),
        "centre": centre,
        "objects": {namespace_first(str(key)): verb for key, verb in verbs.items()},
        "waves": waves_lines(summary),
        "groups": [
            {"row": rows[0], "count": len(rows), "why": why_text(rows[0])}
            for rows in grouped(summary["rows"])
        ],
        "rows": len(summary["rows"]),
        "all": sum(summary["counts"].values()),
        "notes": [*warned, *summary["notes"]],
    }
