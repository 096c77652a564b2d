"""What a bundle's list of sums says: of each file its SHA-256, as `sha256sum -c` reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from schemas.values.faults import Unusable

SUMS, SIGNATURE, INSTALLER = "SHA256SUMS", "SHA256SUMS.sig", "install.sh"
FILES_MAX = 10_000
SUMS_BYTES_MAX = 2_000_000
NAME_CHARACTERS_MAX = 200
_LINE = re.compile(r"([0-9a-f]{64})  (\S+)")
_PART = r"[A-Za-z0-9][A-Za-z0-9._+!~-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})*")
_MADE_BY = "take one that `leafcast bundle make` wrote"


class BundleUnusable(Unusable):
    """A bundle that cannot be made, or that is not what it says; says why, and what to do."""

    word = "bundle "


def is_bundle_name(name: str) -> bool:
    """Whether a file of a bundle may be called so: no way leads out of it."""
    return len(name) <= NAME_CHARACTERS_MAX and _NAME.fullmatch(name) is not None


def sums_text(sums: Mapping[str, str]) -> str:
    """The list, ordered by names."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def read_sums(bundle: Path, data: bytes) -> dict[str, str]:
    """The sum of each file, by its name; raises BundleUnusable."""
    sums = dict[str, str]()
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None or not is_bundle_name(found[2]) or found[2] in (SUMS, SIGNATURE):
            raise BundleUnusable(bundle, f"{SUMS}, line {number}: no sum of a file", _MADE_BY)
        if found[2] in sums:
            raise BundleUnusable(bundle, f"{SUMS}, line {number}: {found[2]} again", _MADE_BY)
        sums[found[2]] = found[1]
    if not sums or len(sums) > FILES_MAX:
        raise BundleUnusable(bundle, f"{SUMS} names {len(sums)} files", _MADE_BY)
    return sums
