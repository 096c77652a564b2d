"""Manifests that no one made for Leafcast: data beside the repository, never part of it."""

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def folder(name: str) -> str:
    """Where the manifests of that name are; skips the test where they are not."""
    place = DATA / name
    if not any(place.glob("*")):
        pytest.skip(f"NOT TESTED with real manifests: there is no {place} beside the repository")
    return str(place)
