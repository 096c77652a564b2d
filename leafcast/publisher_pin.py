"""The publisher that is pinned on a machine, as its file says: for launchers and commands."""

from __future__ import annotations

from pathlib import Path

from schemas.releases.publisher_roots import ROOT_MAX_BYTES, PublisherRoots
from schemas.releases.release_refused import RefusedNow, ReleaseRefused


def pinned_at(place: Path) -> PublisherRoots | None:
    """Who may sign, if somebody is pinned in that file; raises RefusedNow if it is damaged."""
    try:
        with place.open("rb") as opened:
            return PublisherRoots.parse(opened.read(ROOT_MAX_BYTES + 1))
    except FileNotFoundError:
        return None
    except (OSError, ReleaseRefused) as error:
        why = error.why if isinstance(error, ReleaseRefused) else str(error.strerror)
        anew = f"leafcast release pin root.json --data-dir {place.parent.parent}"
        remedy = f"remove it, and pin the publisher's newest root anew: {anew}"
        raise RefusedNow("publisher", f"{place} is damaged: {why}", remedy) from error
