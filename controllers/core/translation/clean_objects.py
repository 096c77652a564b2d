"""The objects of a space as they are sent: each is cleaned once for each change of it.

What blank rows of sealed objects are made of is evaluated here, for relays cannot. That takes time,
so it is bounded for each placement, and done in small steps before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from controllers.core.workloads.clean_copies import clean
from controllers.core.workloads.customizers import Casting, Customizers
from controllers.core.workloads.space import Workloads
from controllers.core.workloads.space_settings import SpaceSettings, take_off_marks
from controllers.core.workloads.transforms import Transform, TransformFailed, Transforms, transform
from controllers.core.workloads.unsaid import unsaid
from controllers.core.workloads.what import is_partial
from relay.objects.field_owners import tells_of_managers
from relay.objects.health_rules import annotation_fault
from relay.objects.unsaid_fields import numbers_of
from relay.shell.evaluator import CelEvaluator
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR, Cleaning
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import CLEANED, ManifestEntry, content_id
from schemas.content.sealing import SealingKey, mark
from schemas.objects.annotations import annotation_faults
from schemas.objects.objects import ObjectKey
from schemas.objects.order import wave_fault
from schemas.reports.collectors import Blanks, Program
from schemas.values.bounded_cache import BoundedCache
from schemas.values.codec import address, canonical
from schemas.values.faults import Fault
from schemas.values.identity import ContentHash
from schemas.values.refusals import CodecError

BLANK_STEPS_MAX = 25_000_000
"""All collectors of one placement share it, over all its objects: about 10 s at the centre."""
PROGRAMS_KNOWN = 256
"""So many are remembered of one object, and all that are asked for."""

Asked = Mapping[ObjectKey, tuple[Program, ...]]
BlanksOf = Callable[[ObjectKey, Program], tuple[Blanks, int]]
"""What blank rows of an object are made of, and how many steps it takes at most to say that."""


class BlankRows:
    """What is known already, by object."""

    def __init__(self) -> None:
        self._evaluator = CelEvaluator()
        self._known: dict[ObjectKey, tuple[Reference, dict[Program, tuple[Blanks, int]]]] = {}

    def of(
        self, key: ObjectKey, reference: Reference, plain: Callable[[], bytes], program: Program
    ) -> tuple[Blanks, int]:
        """What blank rows of an object are made of whose bytes lie there, and in how many steps."""
        at, said = self._known.get(key, (None, dict[Program, tuple[Blanks, int]]()))
        if at != reference:
            said = {}
            self._known[key] = (reference, said)
        found = said.get(program)
        if found is None:
            found = said[program] = self._evaluator.blanks_and_steps(program, plain())
        return found

    def keep_only(self, key: ObjectKey, programs: tuple[Program, ...]) -> None:
        """Forget what is asked of an object no more, if that is much."""
        _, said = self._known.get(key, (None, dict[Program, tuple[Blanks, int]]()))
        if len(said) > len(programs) + PROGRAMS_KNOWN:
            for program in said.keys() - {*programs}:
                del said[program]

    def forget(self, key: ObjectKey) -> None:
        self._known.pop(key, None)


def blanks_within(asked: Asked, blanks_of: BlanksOf) -> Iterator[tuple[ObjectKey, Program, Blanks]]:
    """What is said of each, as long as there is room; always the same of the same.

    Nothing is said of the rest: relays only count its blank rows.
    """
    room = BLANK_STEPS_MAX
    for key in sorted(asked):
        for program in asked[key]:
            said, steps = blanks_of(key, program)
            room -= steps
            if room < 0:
                return
            yield key, program, said


PLAIN_BYTES_MAX = 16 * 1024 * 1024

_Rules = tuple[tuple[Transform, ...], tuple[str, ...], str]


class _Cleaned(NamedTuple):
    """Where the clean bytes of an object lie, and what it was then."""

    obj: Mapping[str, Any]
    # Whether it tells who manages its fields.
    is_managed: bool
    rules: _Rules
    reference: Reference


class ObjectRefused(ValueError):
    """An object that cannot be sent; says why, and what to do."""

    def __init__(self, key: ObjectKey, message: str, remedy: str) -> None:
        super().__init__(f"{key}: {message}; {remedy}")
        self.fault = Fault(str(key), message, remedy)


def check_asks(key: ObjectKey, obj: Mapping[str, Any]) -> None:
    """Refuse annotations that ask for what there is not; raises ObjectRefused."""
    fault = wave_fault(obj) or next(annotation_faults(obj), None) or annotation_fault(obj)
    if fault is not None:
        raise ObjectRefused(key, f"{fault.path}: {fault.message}", fault.remedy)


@dataclass(slots=True)
class Listed:
    """What was listed of an object, and of what it was made: while that is so it stands."""

    obj: Mapping[str, Any]
    casting: Casting
    flags: int
    reference: Reference
    # In clear.
    entry: ManifestEntry
    # What it came to in the manifest, and by which marking.
    settled: ManifestEntry | None = None
    marking: bytes = b""

    def is_of(self, obj: Mapping[str, Any], casting: Casting, flags: int) -> bool:
        """Whether the object, and how it goes out, is what it was."""
        return self.obj is obj and self.casting is casting and self.flags == flags

    def is_settled(self, before: ManifestEntry, marking: bytes) -> bool:
        """Whether it came to just this, and nothing of it changed since."""
        return self.settled is before and self.marking == marking


@dataclass(slots=True)
class CleanObjects:
    """Addresses of objects cleaned by one rule, so that each is cleaned once per change."""

    customizers: Customizers = field(default_factory=Customizers)
    # What they take off is taken off of clean objects, too.
    transforms: Transforms = field(default_factory=Transforms)
    settings: SpaceSettings = field(default_factory=SpaceSettings)
    cleaning: Cleaning = AS_WRITTEN
    # The definition of an object's kind, if it is known.
    definition: Callable[[ObjectKey], Mapping[str, Any] | None] = lambda _key: None
    # By the objects that were listed last, and not forgotten since.
    listed: dict[ObjectKey, Listed] = field(init=False, default_factory=dict)
    _known: dict[ObjectKey, _Cleaned] = field(init=False, default_factory=dict)
    # What was cleaned in this translation, so that it is not cleaned again for its blob.
    _plain: BoundedCache[ContentHash, bytes] = field(
        init=False, default_factory=lambda: BoundedCache(PLAIN_BYTES_MAX)
    )
    _blanks: BlankRows = field(init=False, default_factory=BlankRows)
    # By their numbers, the fields that nobody said.
    _unsaid: dict[ObjectKey, tuple[int, ...]] = field(init=False, default_factory=dict)

    @property
    def flag(self) -> int:
        """What a manifest says of how they are cleaned."""
        return CLEANED if self.cleaning == KUBESTELLAR else 0

    def plain(self, key: ObjectKey, obj: Mapping[str, Any]) -> bytes:
        """The object as it would be sent; raises ObjectRefused."""
        return _packed(key, self._sent(key, obj))

    def reference(
        self, key: ObjectKey, obj: Mapping[str, Any], kind: str = blobs.OBJECT
    ) -> Reference:
        """Where the object's clean bytes lie as this kind of blob; raises ObjectRefused."""
        known = self._reference(key, obj, kind)
        if known is not None:
            return known
        sent = self._sent(key, obj)
        plain = _packed(key, sent)
        reference = Reference(kind, address(kind, plain), len(plain))
        self._plain.put(reference.address, plain, len(plain))
        is_managed = tells_of_managers(obj)
        rules = self._rules(key, is_managed=is_managed)
        self._known[key] = _Cleaned(obj, is_managed, rules, reference)
        self._unsaid.pop(key, None)
        if numbers := numbers_of(sent, unsaid(obj, sent, self.definition(key))):
            self._unsaid[key] = numbers
        return reference

    def unsaid(self, key: ObjectKey) -> tuple[int, ...]:
        """Which fields nobody said, of the object whose reference was asked for last."""
        return self._unsaid.get(key, ())

    def present(self, key: ObjectKey, obj: Mapping[str, Any]) -> Reference:
        """The same as whatever kind of blob it goes out now; raises ObjectRefused."""
        kind = blobs.TEMPLATE if self.customizers.casting(key, obj).template else blobs.OBJECT
        return self.reference(key, obj, kind)

    def content_ids(
        self, key: ObjectKey, obj: Mapping[str, Any], marking: bytes
    ) -> frozenset[bytes]:
        """How edges name its content, in clear and sealed; nothing of one that cannot be sent."""
        try:
            address = self.present(key, obj).address
        except ObjectRefused:
            return frozenset()
        marked = ContentHash(mark(marking, address))
        return frozenset({content_id(key, address), content_id(key, marked)})

    def _reference(self, key: ObjectKey, obj: Mapping[str, Any], kind: str) -> Reference | None:
        """Where the object was found to lie, if it is what it was then."""
        known = self._known.get(key)
        if known is None or known.obj is not obj or known.reference.kind != kind:
            return None
        is_same = known.rules == self._rules(key, is_managed=known.is_managed)
        return known.reference if is_same else None

    def blob(
        self,
        key: ObjectKey,
        obj: Mapping[str, Any],
        kind: str,
        sealed_under: SealingKey | None = None,
    ) -> StoredBlob:
        """The blob itself; raises ObjectRefused."""
        known = self._reference(key, obj, kind)
        plain = self._plain.pop(known.address) if known is not None else None
        plain = self.plain(key, obj) if plain is None else plain
        return blobs.store(kind, plain) if sealed_under is None else sealed_under.store(kind, plain)

    def blanks(
        self, key: ObjectKey, obj: Mapping[str, Any], program: Program
    ) -> tuple[Blanks, int]:
        """What blank rows of the object that was cleaned so are made of, and in how many steps.

        Raises ObjectRefused.
        """
        reference = self.reference(key, obj, self._known[key].reference.kind)
        return self._blanks.of(key, reference, lambda: self.plain(key, obj), program)

    def prepare(
        self, key: ObjectKey, obj: Mapping[str, Any], programs: tuple[Program, ...]
    ) -> Iterator[int]:
        """Do beforehand what is remembered of the object as it is now, one thing after another.

        Tells how many steps each program takes for its blank rows; 0 of all else.
        """
        self._blanks.keep_only(key, programs)
        casting, listed = self.customizers.casting(key, obj), self.listed.get(key)
        if listed is not None and listed.is_of(obj, casting, listed.flags) and not programs:
            known = self._reference(key, obj, listed.reference.kind)
            if known is listed.reference:
                return
        yield 0
        try:
            check_asks(key, obj)
            yield 0
            self.present(key, obj)
            for program in programs:
                # Between two steps it may be forgotten, though it is there: as what stands in.
                self.present(key, obj)
                yield self.blanks(key, obj, program)[1]
        except ObjectRefused:
            # It is said where it is translated.
            return

    def translated(self) -> None:
        """Nobody asks soon for what was cleaned."""
        self._plain.clear()

    def forget(self, key: ObjectKey) -> None:
        self._known.pop(key, None)
        self.listed.pop(key, None)
        self._blanks.forget(key)
        self._unsaid.pop(key, None)

    def keep_only(self, keys: Container[ObjectKey]) -> None:
        """Forget all other objects."""
        for key in [key for key in self._known if key not in keys]:
            self.forget(key)

    def _rules(self, key: ObjectKey, *, is_managed: bool) -> _Rules:
        definition = self.definition(key) if is_managed else None
        version = definition["metadata"].get("resourceVersion", "") if definition else ""
        return self.transforms.of(key), self.settings.mark_patterns, version

    def _sent(self, key: ObjectKey, obj: Mapping[str, Any]) -> dict[str, Any]:
        if is_partial(obj):
            raise ObjectRefused(key, "it cannot be read", "it is read again by itself")
        cleaned = clean(key, obj, self.cleaning)
        take_off_marks(cleaned, self.settings.mark_patterns)
        try:
            transform(cleaned, self.transforms.of(key))
        except TransformFailed as error:
            raise ObjectRefused(key, error.message, error.remedy) from error
        return cleaned


def _packed(key: ObjectKey, sent: Mapping[str, Any]) -> bytes:
    """The bytes of what is sent; raises ObjectRefused."""
    try:
        plain = canonical(sent)
    except CodecError as error:
        raise ObjectRefused(key, str(error), "correct the field") from error
    if len(plain) > blobs.OBJECT_MAX_BYTES:
        message = f"{len(plain)} bytes, at most {blobs.OBJECT_MAX_BYTES} can be sent"
        raise ObjectRefused(key, message, "split the object")
    return plain


def cleaned_by_rule(workloads: Workloads) -> dict[Cleaning, CleanObjects]:
    """The objects of a space as they are sent, by the rule that a placement asks for."""
    resolver = workloads.resolver
    return {
        rule: CleanObjects(
            resolver.customizers,
            workloads.transforms,
            workloads.settings,
            rule,
            lambda key: resolver.objects.get(resolver.definition_of(key)),
        )
        for rule in get_args(Cleaning)
    }
