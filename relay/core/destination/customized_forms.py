"""What objects become at this destination: by its properties, each on its own.

How an object is customized is another's business, which is handed in: here is decided when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from schemas.content.blobs import Reference
from schemas.content.manifest import TEMPLATE, Manifest, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.properties import Properties
from schemas.values.identity import ContentHash, MailKey
from schemas.values.refusals import WireRefused

ValuesUsed = tuple[tuple[str, str | None], ...]
"""Properties as they were asked for, sorted; None is one that the destination has not."""

NOBODY = Properties("", ())


class NotCustomized(ValueError):
    """An object cannot become anything here; says at which field, why, and what to do."""


@dataclass(frozen=True, slots=True)
class CustomizedForm:
    """What an object becomes here: the address of that, and what it was made of."""

    address: ContentHash
    customizer: Reference | None
    values: ValuesUsed

    @property
    def properties(self) -> dict[str, str]:
        """The properties that it was made of."""
        return {name: value for name, value in self.values if value is not None}


Forms = Mapping[ObjectKey, CustomizedForm]
Customize = Callable[
    [ObjectKey, bytes, bytes | None, Mapping[str, str], str], tuple[ContentHash, ValuesUsed, int]
]
"""Customizes the bytes of an object by those of its Customizer and by properties, at a destination.

Gives the address of what it makes, the properties that it asked for, and about how many steps it
took, of which 25,000 take 10 ms; raises NotCustomized.
"""
TURN_STEPS = 25_000
"""In one turn: about 10 ms, and as long as the last object takes."""
FAILED_STEPS = TURN_STEPS // 4
"""Of one that cannot be customized: nobody counts."""


def customizes_nothing(
    _key: ObjectKey, _plain: bytes, _by: bytes | None, _values: Mapping[str, str], _where: str
) -> tuple[ContentHash, ValuesUsed, int]:
    """What a node does that is given no other way: such an object is not applied."""
    raise NotCustomized("this program customizes nothing; use a newer one")


class CustomizedForms:
    """The properties of a destination, and what they make of objects."""

    def __init__(self, customize: Customize) -> None:
        self._customize = customize
        self._destination = ""
        self._values: Mapping[str, str] = {}
        # What is said otherwise by two Locations, by property.
        self._clashes: dict[str, str] = {}
        self._under_way: dict[MailKey, PlacementForms] = {}
        # Steps that are left of a turn.
        self._left = TURN_STEPS

    def put(self, properties: Properties) -> None:
        """Take the properties that the destination has from now on."""
        self._destination = properties.destination
        if properties.values != self._values:
            for under_way in self._under_way.values():
                under_way.restart()
        self._values = properties.values
        self._clashes = {clash.name: str(clash) for clash in properties.clashes()}

    def clashes(self, forms: Forms) -> Iterator[tuple[ObjectKey, str]]:
        """Which of these objects use a property that two Locations say otherwise."""
        for key, form in forms.items() if self._clashes else ():
            yield from ((key, self._clashes[n]) for n, _ in form.values if n in self._clashes)

    def is_current(self, forms: Forms) -> bool:
        """Whether the same would come of these objects now."""
        get = self._values.get
        return all(get(name) == value for form in forms.values() for name, value in form.values)

    # One object after another: some take long, and a placement may have very many.

    def begin(
        self,
        placement: MailKey,
        arm: Reference,
        manifest: Manifest,
        plains: Mapping[ContentHash, bytes],
    ) -> None:
        """Customize the objects of a placement that has this content now; `go_on` does it."""
        under_way = self._under_way.get(placement)
        if under_way is not None and under_way.is_of(arm, manifest):
            return
        self._under_way[placement] = PlacementForms(arm, manifest, plains)

    def end_other(self, placement: MailKey, arm: Reference | None = None) -> None:
        """The content of a placement is this now, or none."""
        under_way = self._under_way.get(placement)
        if under_way is not None and under_way.arm != arm:
            del self._under_way[placement]

    def go_on(self, placement: MailKey) -> PlacementForms | None:
        """All objects customized; None while some are left, which is gone on with in a later turn.

        Raises NotOpened, or BlobRefused, of what is sealed under another key.
        """
        under_way = self._under_way[placement]
        while self._left > 0 and (entry := under_way.next()) is not None:
            try:
                self._left -= under_way.put(entry, self._made(entry, under_way))
            except NotCustomized as error:
                self._left -= FAILED_STEPS
                under_way.failed[entry.key] = str(error)
            except WireRefused:
                del self._under_way[placement]
                raise
        if not under_way.is_done:
            return None
        return self._under_way.pop(placement)

    def begin_turn(self) -> list[MailKey]:
        """A turn begins: the placements that are to be gone on with."""
        self._left = TURN_STEPS
        return list(self._under_way)

    def deadline(self) -> float | None:
        """The monotonic second at which a turn is due: at once, if something is left."""
        return 0.0 if self._under_way else None

    def _made(
        self, entry: ManifestEntry, under_way: PlacementForms
    ) -> tuple[ContentHash, ValuesUsed, int]:
        by = entry.customizer
        return self._customize(
            entry.key,
            under_way.opened(entry.reference),
            under_way.opened(by) if by is not None else None,
            self._values,
            self._destination,
        )


class PlacementForms:
    """What the objects of one placement become: those that were customized by now."""

    def __init__(
        self, arm: Reference, manifest: Manifest, plains: Mapping[ContentHash, bytes]
    ) -> None:
        self.arm, self.manifest = arm, manifest
        self.made: dict[ObjectKey, CustomizedForm] = {}
        # Why some cannot become anything.
        self.failed: dict[ObjectKey, str] = {}
        templates = [entry for entry in manifest.entries if entry.flags & TEMPLATE]
        references = [it for entry in templates for it in (entry.reference, entry.customizer) if it]
        self._plains = {it.address: plains[it.address] for it in references}
        self._templates, self._at = templates, 0

    def is_of(self, arm: Reference, manifest: Manifest) -> bool:
        """Whether it is of this content, opened by the same key."""
        return self.arm == arm and self.manifest.key == manifest.key

    @property
    def is_done(self) -> bool:
        return self._at == len(self._templates)

    def restart(self) -> None:
        """The properties are others now."""
        self.made, self.failed, self._at = {}, {}, 0

    def next(self) -> ManifestEntry | None:
        """What is to be customized next; None if nothing is."""
        if self.is_done:
            return None
        self._at += 1
        return self._templates[self._at - 1]

    def opened(self, reference: Reference) -> bytes:
        """Raises BlobRefused of what is sealed under another key."""
        value, key = self._plains[reference.address], self.manifest.key
        return value if key is None else key.unseal(reference.kind, value)

    def put(self, entry: ManifestEntry, made: tuple[ContentHash, ValuesUsed, int]) -> int:
        """Take what became of an object; how many steps that took."""
        address, values, steps = made
        self.made[entry.key] = CustomizedForm(address, entry.customizer, values)
        return steps
