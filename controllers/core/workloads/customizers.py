"""The Customizers of a space: who asks for them, and what is wrong before anything goes out.

What a destination lacks only the destination knows. A mistake that it would meet everywhere is
found here, and nothing of the placement goes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from relay.core.destination.customized_forms import NotCustomized
from relay.objects.customization import (
    CustomizationFailed,
    SentCustomizer,
    customize,
    customizer_faults,
    customizer_named,
    expression_faults,
    has_expressions,
    read_customizer,
)
from relay.syncer.customized_content import address_of
from schemas.api.customizer import Customizer
from schemas.api.parsing import parse_kind
from schemas.content import blobs
from schemas.content.blobs import StoredBlob
from schemas.objects.objects import ObjectKey, is_terminating
from schemas.values.faults import Fault, InvalidObject
from schemas.values.refusals import CodecError
from schemas.values.wording import some_of

CUSTOMIZERS = ("edge.kubestellar.io", "customizers")
NAMED_MAX = 4

CustomizerName = tuple[str, str]
"""Namespace and name of a Customizer."""


@dataclass(frozen=True, slots=True)
class Casting:
    """How an object goes out: as it is, or as a template that each destination customizes."""

    template: bool = False
    customizer: StoredBlob | None = None
    revision: int = 0
    faults: tuple[Fault, ...] = ()


PLAIN = Casting()


@dataclass(frozen=True, slots=True)
class _Known:
    customizer: SentCustomizer | None
    stored: StoredBlob | None
    revision: int
    faults: tuple[Fault, ...]
    # The same by field, as its own status says it.
    errors: tuple[str, ...] = ()


class _Cast(NamedTuple):
    """How an object was found to go out."""

    obj: Mapping[str, Any]
    # The Customizer that it names, and that one as it was.
    named: CustomizerName | None
    known: _Known | None
    casting: Casting


def is_customizer(key: ObjectKey) -> bool:
    return key.group_resource == CUSTOMIZERS


@dataclass(slots=True)
class Customizers:
    """Each change returns the placements that it concerns."""

    objects: dict[CustomizerName, Mapping[str, Any]] = field(default_factory=dict)
    _known: dict[CustomizerName, _Known] = field(default_factory=dict)
    # Who asks for a Customizer: by its name the objects, by object the placements.
    _used_by: dict[CustomizerName, dict[ObjectKey, set[str]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _asked: dict[tuple[str, ObjectKey], CustomizerName] = field(default_factory=dict)
    # By object, so that each is looked through once per change.
    _castings: dict[ObjectKey, _Cast] = field(default_factory=dict)

    def put(self, key: ObjectKey, obj: Mapping[str, Any]) -> frozenset[str]:
        """Learn of a Customizer's present state; one that is terminating counts as gone."""
        if is_terminating(obj):
            return self.remove(key)
        name, known = (key.namespace, key.name), _read(key, obj)
        before = self._known.get(name)
        self.objects[name] = obj
        # A new status, or a label, is no news to those who ask for it.
        if before is not None and before == replace(known, revision=before.revision):
            return frozenset()
        self._known[name] = known
        return self._concerned(name)

    def remove(self, key: ObjectKey) -> frozenset[str]:
        """Learn that a Customizer is gone."""
        self.objects.pop((key.namespace, key.name), None)
        if self._known.pop((key.namespace, key.name), None) is None:
            return frozenset()
        return self._concerned((key.namespace, key.name))

    def errors(self, key: ObjectKey) -> tuple[str, ...]:
        """What is wrong with a Customizer itself, by field."""
        known = self._known.get((key.namespace, key.name))
        return known.errors if known is not None else ()

    def listed(self) -> list[ObjectKey]:
        """The Customizers that there are."""
        return [ObjectKey(*CUSTOMIZERS, namespace, name) for namespace, name in self._known]

    def select(self, placement: str, key: ObjectKey, obj: Mapping[str, Any]) -> None:
        """Learn of an object that a placement selects, as it is now."""
        self.unselect(placement, key)
        named = customizer_named(key, obj)
        if named is not None:
            self._asked[placement, key] = named
            self._used_by[named].setdefault(key, set()).add(placement)

    def unselect(self, placement: str, key: ObjectKey) -> None:
        """Learn that a placement does not select an object any more."""
        self._castings.pop(key, None)
        named = self._asked.pop((placement, key), None)
        if named is None:
            return
        placements = self._used_by[named][key]
        placements.discard(placement)
        if not placements:
            del self._used_by[named][key]
        if not self._used_by[named]:
            del self._used_by[named]

    def casting(self, key: ObjectKey, obj: Mapping[str, Any]) -> Casting:
        """How an object goes out now."""
        held = self._castings.get(key)
        is_same = held is not None and held.obj is obj
        named = held.named if held is not None and is_same else customizer_named(key, obj)
        known = self._known.get(named) if named is not None else None
        if held is not None and is_same and held.known is known:
            return held.casting
        casting = PLAIN if named is not None and known is None else _cast(key, obj, known)
        self._castings[key] = _Cast(obj, named, known, casting)
        return casting

    def asked_by(self, key: ObjectKey, obj: Mapping[str, Any]) -> SentCustomizer | None:
        """The Customizer of an object, if it asks for one that is there."""
        named = customizer_named(key, obj)
        known = self._known.get(named) if named is not None else None
        return known.customizer if known is not None else None

    def lacks(self, key: ObjectKey, obj: Mapping[str, Any]) -> str:
        """The Customizer that an object asks for and that is not there; "" if it lacks none."""
        named = customizer_named(key, obj)
        return "/".join(named) if named is not None and named not in self._known else ""

    def faults(self, objects: Iterable[tuple[ObjectKey, Mapping[str, Any]]]) -> tuple[Fault, ...]:
        """What keeps any of these objects from going out, each mistake once."""
        found: dict[Fault, None] = {}
        for key, obj in objects:
            found |= dict.fromkeys(self.casting(key, obj).faults)
        return tuple(found)

    def missing(self, placement: str) -> tuple[str, ...]:
        """The Customizers that objects of a placement ask for and that are not there."""
        counts: dict[CustomizerName, int] = defaultdict(int)
        for (name, _), asked in self._asked.items():
            if name == placement and asked not in self._known:
                counts[asked] += 1
        return tuple(
            f"Customizer {namespace}/{name} is not there: "
            f"{count} object{'s go' if count > 1 else ' goes'} out as it is written"
            for (namespace, name), count in sorted(counts.items())
        )

    def _concerned(self, named: CustomizerName) -> frozenset[str]:
        used_by = self._used_by.get(named, {})
        for key in used_by:
            self._castings.pop(key, None)
        return frozenset(name for placements in used_by.values() for name in placements)


def faults_text(faults: Iterable[Fault]) -> str:
    """What is wrong, the first of it, and that nothing goes out meanwhile."""
    said = [str(fault) for fault in faults]
    return f"frozen, it stays as it is everywhere: {some_of(said, NAMED_MAX, '; ')}"


def _read(key: ObjectKey, obj: Mapping[str, Any]) -> _Known:
    version = str(obj["metadata"].get("resourceVersion", ""))
    revision = int(version) if version.isdecimal() else 0
    customizer: SentCustomizer | None = None
    stored: StoredBlob | None = None
    try:
        if isinstance(parse_kind(obj), Customizer):
            customizer = read_customizer(obj)
            faults = tuple(customizer_faults(customizer))
            stored = blobs.store(blobs.CUSTOMIZER, customizer.encode())
        else:
            write = f"write {CUSTOMIZERS[0]}/v2alpha1"
            faults = (Fault("apiVersion", "this is no Customizer", write),)
    except InvalidObject as error:
        customizer, faults = None, error.faults
    about = tuple(_of(key, fault) for fault in faults)
    return _Known(customizer, stored, revision, about, tuple(map(str, faults)))


def _cast(key: ObjectKey, obj: Mapping[str, Any], known: _Known | None) -> Casting:
    if known is None and not has_expressions(obj):
        return PLAIN
    faults = tuple(_of(key, fault) for fault in expression_faults(obj))
    if known is None:
        return Casting(template=True, faults=faults)
    faults += known.faults
    if not faults and known.customizer is not None:
        faults = tuple(_anywhere(key, obj, known.customizer))
    return Casting(template=True, customizer=known.stored, revision=known.revision, faults=faults)


def _anywhere(
    key: ObjectKey, obj: Mapping[str, Any], customizer: SentCustomizer
) -> Iterator[Fault]:
    """What keeps an object from being customized for which no property matters."""
    try:
        made = customize(key, obj, customizer, {}, "")
        if not made.used:
            address_of(made)
    except CustomizationFailed as error:
        if not error.used:
            yield _of(key, error.fault)
    except NotCustomized as error:
        yield _of(key, Fault("", str(error)))
    except CodecError as error:
        yield _of(key, Fault(error.path, error.reason, f"correct Customizer {customizer.name}"))


def _of(key: ObjectKey, fault: Fault) -> Fault:
    return Fault(f"{key}: {fault.path}", fault.message, fault.remedy)
