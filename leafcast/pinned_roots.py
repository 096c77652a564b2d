"""The root keys that a file pins, as its fields say them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.records.roots import Roots, check_pinned
from schemas.values.identity import KeyId, check_id


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
    names = ("roots_threshold", 1), ("roots_version", 1), ("keys_since", 0)
    threshold, version, since = (int(form.get(name, unsaid)) for name, unsaid in names)
    return check_pinned(Roots(keys, threshold, version, since))
