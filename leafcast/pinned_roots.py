"""The root keys that a file pins, as its fields say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.identity import KeyId, check_id
from schemas.records import ROOT_KEY_BYTES
from schemas.roots import Roots


def roots_form(roots: Roots) -> dict[str, Any]:
    """The fields of a file that pins these roots."""
    return {
        "roots": {key: public.hex() for key, public in roots.keys.items()},
        "roots_threshold": roots.threshold,
        "roots_version": roots.version,
        "keys_since": roots.since,
    }


def roots_from(form: Mapping[str, Any]) -> Roots:
    """The roots that the fields of a file pin; raises ValueError, TypeError or KeyError."""
    keys = {KeyId(check_id(key, "key id")): bytes.fromhex(it) for key, it in form["roots"].items()}
    if not keys or any(len(public) != ROOT_KEY_BYTES for public in keys.values()):
        raise ValueError(f"it has no root key of {ROOT_KEY_BYTES} bytes")
    threshold, version = int(form.get("roots_threshold", 1)), int(form.get("roots_version", 1))
    if not 1 <= threshold <= len(keys) or version < 1:
        raise ValueError("its threshold of root keys cannot be met")
    return Roots(keys, threshold, version, int(form.get("keys_since", 0)))
