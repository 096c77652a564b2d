"""How far a LeafcastRelease has come, by its status as any program finds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.releases.release_version import version_order

ENDED = frozenset({"Complete", "Aborted"})
UNDER_WAY = frozenset({"Progressing", "Soaking", "Paused", "Failed"})


def has_ended(status: Mapping[str, Any]) -> bool:
    """Whether it goes out no further."""
    return status.get("phase") in ENDED


def takes_back(version: str, other: str, status: Mapping[str, Any]) -> bool:
    """Whether this version would take nodes back from another one, which has that status."""
    went_out = has_ended(status) and bool(status.get("waves"))
    return went_out and version_order(other) > version_order(version)


def accepted_manifests(listed: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """The manifests of the LeafcastReleases that some nodes run and are healthy with, by version.

    Such a node believes whom the manifest names.
    """
    return {
        str(it["spec"]["version"]): str(it["spec"].get("manifest")).encode()
        for it in listed
        if any(wave.get("healthy") for wave in (it.get("status") or {}).get("waves") or ())
    }
