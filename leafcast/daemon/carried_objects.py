"""The objects of the centre that placements bring to destinations, found by words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from leafcast.ask.asked_space import key_form
from schemas.objects.objects import ObjectKey

FOUND_MAX = 50

Form = dict[str, Any]


def carried_form(carried: Mapping[ObjectKey, Collection[str]], words: str) -> Form:
    """`{objects: [{key, placements}], more}`: those that all words fit, some, by key.

    A word is a part of an object as it is written, such as `deployments.apps/shop/web`.
    """
    wanted = words.lower().split()
    found = sorted(_found(carried, wanted)) if wanted else []
    forms = [
        {"key": key_form(key), "placements": sorted(carried[key])} for key in found[:FOUND_MAX]
    ]
    return {"objects": forms, "more": max(0, len(found) - FOUND_MAX)}


def _found(carried: Iterable[ObjectKey], wanted: Collection[str]) -> Iterable[ObjectKey]:
    for key in carried:
        said = str(key).lower()
        if all(word in said for word in wanted):
            yield key
