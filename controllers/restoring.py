"""The former contents of what was aborted or undone, read back to be written at the centre."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.centre import Controllers
from controllers.core.rollout.restoring import Restoration, restoration
from controllers.core.translation.placements import Placements
from controllers.core.translation.stored_arms import RejectedArms
from schemas.content.blobs import OBJECT_MAX_BYTES
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from schemas.values.refusals import CodecError
from schemas.values.wording import namespace_first


class NotRestorable(Exception):
    """An object of which the former content cannot be written back; says why, and what to do."""

    def __init__(self, key: ObjectKey, message: str, remedy: str) -> None:
        self.message = f"{namespace_first(str(key))}: {message}"
        self.remedy = remedy
        super().__init__(f"{self.message}; {remedy}")


async def read_restoration(controllers: Controllers, name: str, key: ObjectKey) -> Restoration:
    """What to write back of a rejected object; raises NotRestorable, BusBroken."""
    translator = controllers.translator
    placements = translator.placements
    arms = placements.rejections.arms(name)
    if arms is None or key not in placements.rejections.objects.get(name, ()):
        raise NotRestorable(key, "it is not rejected any more", "see: leafcast rollout status")
    live, sent = _present(placements, name, arms, key)
    entry = arms.target.entries.get(key)
    former = await _former(controllers, name, entry) if entry is not None else None
    return restoration(key, live, sent, former)


def _present(
    placements: Placements, name: str, arms: RejectedArms, key: ObjectKey
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """The object at the centre, and what of it would be sent."""
    live, plain = placements.sent(key, placements.workloads.cleaning_of(name))
    if (live is None) != (key not in arms.wish.entries):
        raise NotRestorable(key, "it changed just now", "look at it, and try again")
    if live is None:
        return None, None
    if plain is None:
        raise NotRestorable(key, "it cannot be read", "put its former content there yourself")
    return live, _object(plain)


async def _former(
    controllers: Controllers, name: str, entry: ManifestEntry
) -> Mapping[str, Any] | None:
    remedy = "put its former content there yourself, or apply another one"
    stored = await controllers.relay.load(entry.reference)
    if stored is None:
        raise NotRestorable(entry.key, "its former content is lost", remedy)
    if not entry.mark:
        return _object(stored)
    keys = controllers.translator.keys_of(controllers.translator.source(name).key)
    plain = keys.open(entry.reference.kind, stored)
    if plain is None:
        raise NotRestorable(
            entry.key, "its former content is sealed under a key that is gone", remedy
        )
    return _object(plain)


def _object(plain: bytes) -> Mapping[str, Any] | None:
    try:
        found = codec.unpack(plain, OBJECT_MAX_BYTES)
    except CodecError:
        return None
    return found if isinstance(found, Mapping) else None
