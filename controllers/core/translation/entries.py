"""What a placement's manifest lists of one object of its space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.core.translation.clean_objects import CleanObjects, Listed, check_asks
from controllers.core.workloads.customizers import Casting
from schemas.content.manifest import TEMPLATE, ManifestEntry, removal_flag
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import ObjectKey, apply_order, texts_of
from schemas.objects.order import order_of
from schemas.objects.source_objects import created_seconds, uid_of
from schemas.values.wire import replace


def entry_of(
    space: str,
    key: ObjectKey,
    obj: Mapping[str, Any],
    flags: int,
    cleaned: CleanObjects,
    casting: Casting,
) -> ManifestEntry:
    """The entry of an object, in clear; raises ObjectRefused."""
    listed = cleaned.listed.get(key)
    if listed is None or listed.obj is not obj:
        check_asks(key, obj)
    reference = cleaned.present(key, obj)
    is_same = listed is not None and listed.is_of(obj, casting, flags)
    if listed is not None and is_same and listed.reference is reference:
        return listed.entry
    by = casting.customizer
    version = str((obj.get("metadata") or {}).get("resourceVersion", ""))
    entry = ManifestEntry(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        address=reference.address,
        size=reference.size,
        space=space,
        revision=max(int(version) if version.isdecimal() else 0, casting.revision),
        flags=flags | TEMPLATE if casting.template else flags,
        order=order_of(apply_order(key.group, key.resource), obj),
        customizer=by.reference if by is not None else None,
        created_s=created_seconds(obj),
        uid=uid_of(obj),
        unsaid=cleaned.unsaid(key),
    )
    cleaned.listed[key] = Listed(obj, casting, flags, reference, entry)
    return entry


def settled(entry: ManifestEntry, known: ManifestEntry | None) -> ManifestEntry:
    """A new status, or a write that changed nothing, is no news to a destination.

    Nor is it that an object was deleted and created as it was before.
    """
    if known is None or known.content != entry.content:
        return entry
    return replace(entry, revision=known.revision, created_s=known.created_s, uid=known.uid)


def removal_said(obj: Mapping[str, Any]) -> int:
    """The flag of what an object itself says becomes of its copies; 0 if nothing."""
    return removal_flag(str(texts_of(obj, "annotations").get(ON_REMOVAL, "")))
