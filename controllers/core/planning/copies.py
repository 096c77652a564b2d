"""What objects become at destinations, each made once for all that have the same properties.

It is the very function by which edges customize.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from controllers.core.planning.states import Contents
from relay.core.destination.claims import DesiredObject
from relay.core.destination.customized_forms import CustomizedForm, NotCustomized, ValuesUsed
from relay.objects.customization import (
    CustomizationFailed,
    Customized,
    SentCustomizer,
    customize,
)
from relay.objects.policies import PolicyUnknown, policies_of
from relay.syncer.customized_content import address_of
from schemas.content.blobs import OBJECT_MAX_BYTES, Reference
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.records import Profile
from schemas.values import codec
from schemas.values.identity import ContentHash
from schemas.values.refusals import CodecError

KEPT_MAX = 4096
"""So many copies of one object are remembered."""
OPENED_MAX = 256


@dataclass(frozen=True, slots=True)
class PlannedCopy:
    """What an object becomes, or why it cannot; of a missing property also for which field."""

    form: CustomizedForm | None
    message: str = ""
    field: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.message)


class Copies:
    """All copies of the objects in `contents`; one that is not there counts as it is written."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        # By object and Customizer: for each set of names that it asked for, by what they said.
        self._made: dict[
            tuple[str, Reference | None], dict[tuple[str, ...], dict[ValuesUsed, PlannedCopy]]
        ] = {}
        self._opened = lru_cache(maxsize=OPENED_MAX)(self._open)
        self._left_alone: dict[ContentHash, bool] = {}

    def at(self, entry: ManifestEntry, values: Mapping[str, str], destination: str) -> PlannedCopy:
        """What an object that is customized becomes where the properties are these."""
        known = self._made.setdefault((entry.address, entry.customizer), {})
        for names, copies in known.items():
            copy = copies.get(tuple((name, values.get(name)) for name in names))
            if copy is not None:
                return copy
        used, copy = self._make(entry, values, destination)
        copies = known.setdefault(tuple(name for name, _ in used), {})
        if len(copies) >= KEPT_MAX:
            copies.clear()
        copies[used] = copy
        return copy

    def _object(
        self, key: ObjectKey, reference: Reference, form: CustomizedForm | None, destination: str
    ) -> Mapping[str, Any] | None:
        """The object itself, customized if it has a form; None if its content is not there."""
        if form is None:
            return self._opened(reference.address)
        try:
            made = self._customized(key, reference, form.customizer, form.properties, destination)
        except (CustomizationFailed, CodecError):
            return None
        return None if made is None else made.object

    def at_place(
        self, key: ObjectKey, wanted: DesiredObject | None, profile: Profile | None
    ) -> Mapping[str, Any] | None:
        """An object as a destination wants it; None if it does not, or nobody can tell."""
        if wanted is None or profile is None:
            return None
        return self._object(key, wanted.reference, wanted.form, profile.source.name)

    def is_left_alone(self, key: ObjectKey, reference: Reference) -> bool:
        """Whether its annotations ask that a copy is made once, and then left to its cluster."""
        known = self._left_alone.get(reference.address)
        if known is None:
            obj = self._opened(reference.address)
            try:
                known = obj is not None and not policies_of(key, obj).overwrite
            except PolicyUnknown:
                known = False
            self._left_alone[reference.address] = known
        return known

    def _make(
        self, entry: ManifestEntry, values: Mapping[str, str], destination: str
    ) -> tuple[ValuesUsed, PlannedCopy]:
        try:
            made = self._customized(
                entry.key, entry.reference, entry.customizer, values, destination
            )
            if made is None:
                return (), PlannedCopy(None)
            address, used = address_of(made)
        except CustomizationFailed as error:
            fault = error.fault
            missing = PlannedCopy(None, fault.message, fault.path)
            return _used(error), missing if error.property else PlannedCopy(None, str(fault))
        except (CodecError, NotCustomized) as error:
            return tuple(sorted(values.items())), PlannedCopy(None, str(error))
        return used, PlannedCopy(CustomizedForm(address, entry.customizer, used))

    def _customized(
        self,
        key: ObjectKey,
        reference: Reference,
        by: Reference | None,
        values: Mapping[str, str],
        destination: str,
    ) -> Customized | None:
        """As an edge does it; None if the content is not there."""
        obj = self._opened(reference.address)
        plain = None if by is None else self._contents.get(by.address)
        if obj is None or (plain is None and by is not None):
            return None
        customizer = None if plain is None else SentCustomizer.decode(plain)
        return customize(key, obj, customizer, values, destination)

    def _open(self, address: ContentHash) -> Mapping[str, Any] | None:
        plain = self._contents.get(address)
        if plain is None:
            return None
        opened = codec.unpack(plain, OBJECT_MAX_BYTES)
        return opened if isinstance(opened, Mapping) else None


def _used(error: CustomizationFailed) -> ValuesUsed:
    return tuple(sorted(error.used.items()))
