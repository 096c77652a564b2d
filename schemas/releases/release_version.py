"""Versions of releases, and their order: 0.3.0rc1, then 0.3.0, then 0.3.1."""

from __future__ import annotations

import re

from schemas.releases.release_refused import ReleaseRefused

VERSION_MAX = 32
_FORM = re.compile(r"(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})\.(0|[1-9]\d{0,5})(?:(a|b|rc)(\d{1,5}))?")
_FINAL = "z"


def check_version(text: object, field: str) -> str:
    """The version, if it is one; raises ReleaseRefused."""
    if isinstance(text, str) and len(text) <= VERSION_MAX and _FORM.fullmatch(text):
        return text
    raise ReleaseRefused(field, f"{text!r} is no version", "write it as 0.3.0, or 0.3.0rc1")


def version_order(version: str) -> tuple[int, int, int, str, int]:
    """What versions are sorted by; raises ReleaseRefused for what is none."""
    found = _FORM.fullmatch(check_version(version, "version"))
    assert found is not None
    major, minor, patch, phase, number = found.groups()
    return int(major), int(minor), int(patch), phase or _FINAL, int(number or 0)


def age_of(version: str) -> tuple[int, int, int, str, int]:
    """The same of what any program says that it is; what is no version comes first."""
    try:
        return version_order(version)
    except ReleaseRefused:
        return (-1, 0, 0, "", 0)
