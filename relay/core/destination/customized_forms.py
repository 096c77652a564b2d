"""What objects become at this destination: by its properties, each on its own.

How an object is customized is another's business, which is handed in: here is decided when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from schemas.content.blobs import Reference
from schemas.content.chunks import TEMPLATE, ManifestEntry
from schemas.content.sealing import SealingKey
from schemas.identity import ContentHash
from schemas.objects import ObjectKey
from schemas.properties import Properties

Values = tuple[tuple[str, str | None], ...]
"""Properties as they were asked for, sorted; None is one that the destination has not."""

NOBODY = Properties("", ())


class NotCustomized(ValueError):
    """An object cannot become anything here; says at which field, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Form:
    """What an object becomes here: the address of that, and what it was made of."""

    address: ContentHash
    customizer: Reference | None
    values: Values

    @property
    def properties(self) -> dict[str, str]:
        """The properties that it was made of."""
        return {name: value for name, value in self.values if value is not None}


Forms = Mapping[ObjectKey, Form]
Customize = Callable[
    [ObjectKey, bytes, bytes | None, Mapping[str, str], str], tuple[ContentHash, Values]
]
"""Customizes the bytes of an object by those of its Customizer and by properties, at a destination.

Gives the address of what it makes, and the properties that it asked for; raises NotCustomized.
"""


def customizes_nothing(
    _key: ObjectKey, _plain: bytes, _by: bytes | None, _values: Mapping[str, str], _where: str
) -> tuple[ContentHash, Values]:
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

    def put(self, properties: Properties) -> None:
        """Take the properties that the destination has from now on."""
        self._destination = properties.destination
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

    def forms(
        self,
        entries: Iterable[ManifestEntry],
        plains: Mapping[ContentHash, bytes],
        key: SealingKey | None = None,
    ) -> tuple[dict[ObjectKey, Form], dict[ObjectKey, str]]:
        """What each object that is customized becomes, and why some cannot become anything.

        Raises NotOpened, or BlobRefused, of what is sealed under another key.
        """
        made: dict[ObjectKey, Form] = {}
        failed: dict[ObjectKey, str] = {}
        for entry in entries:
            if not entry.flags & TEMPLATE:
                continue
            by = entry.customizer
            try:
                address, values = self._customize(
                    entry.key,
                    _opened(entry.reference, plains, key),
                    _opened(by, plains, key) if by is not None else None,
                    self._values,
                    self._destination,
                )
            except NotCustomized as error:
                failed[entry.key] = str(error)
            else:
                made[entry.key] = Form(address, by, values)
        return made, failed


def _opened(
    reference: Reference, plains: Mapping[ContentHash, bytes], key: SealingKey | None
) -> bytes:
    value = plains[reference.address]
    return value if key is None else key.unseal(reference.kind, value)
