"""Whether an object in a manifest is what was signed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controllers.core.workloads.clean_copies import clean
from leafcast.object_proofs import ListChecked
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR
from schemas.content.manifest import CLEANED, ManifestEntry
from schemas.values.codec import address, canonical
from schemas.values.refusals import CodecError


def is_signed(checked: ListChecked, obj: Mapping[str, Any]) -> bool:
    """Whether an object, as it is or as it would be sent, is what was signed."""
    entry = checked.entry
    if entry is None:
        return False
    return any(_address(checked, entry, it) == entry.address for it in _as_sent(entry, obj))


def _as_sent(entry: ManifestEntry, obj: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    metadata = obj["metadata"]
    if entry.namespace and not metadata.get("namespace"):
        obj = {**obj, "metadata": {**metadata, "namespace": entry.namespace}}
    yield obj
    yield clean(entry.key, obj, KUBESTELLAR if entry.flags & CLEANED else AS_WRITTEN)


def _address(checked: ListChecked, entry: ManifestEntry, obj: Mapping[str, Any]) -> str:
    """Where it would lie; "" of what has no bytes that could be sent."""
    kind, key = entry.reference.kind, checked.sealed_under
    try:
        plain = canonical(obj)
    except CodecError:
        return ""
    return address(kind, plain if key is None else key.seal(kind, plain))
