"""What an object becomes at a destination: expressions expanded, replacements made.

A pure function of the object, the Customizer and the properties. What it makes is a valid object of
the same name, or an error that names object, field, property and destination.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from relay.objects.expansion import ExpandsTooFar, ExpressionWrong, PropertyMissing, Syntax
from relay.objects.merge import Object, copied
from schemas.content.blobs import OBJECT_MAX_BYTES
from schemas.objects.json_paths import JsonPath, StepBudget, with_length
from schemas.objects.objects import ObjectKey, identity_of, object_faults, texts_of
from schemas.values import codec
from schemas.values.faults import Fault
from schemas.values.fields import Steps
from schemas.values.refusals import CodecError

EXPAND_PARAMETERS = "edge.kubestellar.io/expand-parameters"
EXPAND_TEMPLATES = "control.kubestellar.io/expand-templates"
CUSTOMIZER = "edge.kubestellar.io/customizer"
_HEAD = ("apiVersion", "kind", "metadata")
VALUES_PUT_MAX = 100_000
"""Into one object, by all replacements: that takes about 0.15 s."""
_VALUE_MARKS = ",:[{"
OBJECT_STEPS, STEPS_OF_PATH_STEP, STEPS_OF_VALUE, STEPS_OF_TEXT = 500, 8, 4, 12


class CustomizationFailed(ValueError):
    """An object cannot be customized: at one field, for want of a property or for a mistake."""

    def __init__(
        self,
        key: ObjectKey,
        fault: Fault,
        name: str = "",
        destination: str = "",
        used: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        self.key = key
        self.fault = fault
        self.property = name
        # Empty where it would fail at each.
        self.destination = destination
        # The names asked for until then.
        self.used = used
        where = f" at {destination}" if destination else ""
        super().__init__(f"{key}{where}: {fault}")


@dataclass(frozen=True, slots=True)
class SentReplacement:
    path: str
    value: str


@dataclass(frozen=True, slots=True)
class SentCustomizer:
    """What a Customizer says, as it travels."""

    name: str
    syntax: Syntax
    replacements: tuple[SentReplacement, ...]

    def encode(self) -> bytes:
        said = [[item.path, item.value] for item in self.replacements]
        form = [self.name, self.syntax.parameters, self.syntax.templates, said]
        return codec.canonical(form)

    @staticmethod
    @lru_cache(maxsize=64)
    def decode(plain: bytes) -> SentCustomizer:
        """Read what `encode` wrote; raises CodecError."""
        match codec.unpack(plain, OBJECT_MAX_BYTES):
            case (str(name), bool(parameters), bool(templates), tuple(said)):
                pass
            case _:
                raise CodecError("", "no Customizer")
        found: list[SentReplacement] = []
        for item in said:
            match item:
                case (str(path), str(value)):
                    found.append(SentReplacement(path, value))
                case _:
                    raise CodecError("", "no replacement of a Customizer")
        return SentCustomizer(name, Syntax(parameters, templates), tuple(found))


@dataclass(frozen=True, slots=True)
class FieldChange:
    """What became of one field: `before` is the text with its expressions, or a replacement."""

    path: str
    before: str
    after: str
    names: tuple[str, ...]
    source: str = ""
    """Which Customizer said so; empty for the object itself."""
    places: int = 1
    """How many places of the object it is in; 0 if there is none that its path leads to."""


@dataclass(slots=True)
class Customized:
    """A customized object; `used` are the names it asked for, None for one that is not there."""

    object: Object
    used: dict[str, str | None] = field(default_factory=dict)
    changes: list[FieldChange] = field(default_factory=list)
    steps: int = 0
    """About how many it took; 25,000 of them take 10 ms."""


def syntax_of(obj: Mapping[str, Any]) -> Syntax:
    """Which expressions an object, or a Customizer, asks to have expanded."""
    said = texts_of(obj, "annotations")
    return Syntax(said.get(EXPAND_PARAMETERS) == "true", said.get(EXPAND_TEMPLATES) == "true")


def customizer_named(key: ObjectKey, obj: Mapping[str, Any]) -> tuple[str, str] | None:
    """The namespace and name of the Customizer that an object asks for, if it does."""
    said = texts_of(obj, "annotations").get(CUSTOMIZER)
    if not isinstance(said, str) or not said:
        return None
    namespace, slash, name = said.partition("/")
    return (namespace, name) if slash else (key.namespace, said)


def read_customizer(obj: Mapping[str, Any]) -> SentCustomizer:
    """A Customizer object that was admitted, as it travels."""
    metadata = obj["metadata"]
    said = obj.get("replacements") or ()
    replacements = tuple(SentReplacement(str(item["path"]), str(item["value"])) for item in said)
    name = f"{metadata.get('namespace', '')}/{metadata['name']}"
    return SentCustomizer(name, syntax_of(obj), replacements)


def has_expressions(obj: Mapping[str, Any]) -> bool:
    """Whether something of an object is to be expanded."""
    syntax = syntax_of(obj)
    return bool(syntax) and any(True for _ in _texts(syntax, obj, ()))


def expression_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """The fields of an object whose expressions are wrong, whatever the destination."""
    syntax = syntax_of(obj)
    for steps, text in _texts(syntax, obj, ()) if syntax else ():
        try:
            syntax.check(text)
        except ExpressionWrong as error:
            yield Fault(path_text(steps), str(error), "")


def properties_needed(obj: Mapping[str, Any]) -> dict[str, str]:
    """The properties without which an object cannot be customized, each with a field that asks."""
    found: dict[str, str] = {}
    syntax = syntax_of(obj)
    for steps, text in _texts(syntax, obj, ()) if syntax.templates else ():
        for name in syntax.properties_needed(text):
            found.setdefault(name, path_text(steps))
    return found


def customizer_faults(customizer: SentCustomizer) -> Iterator[Fault]:
    """What is wrong with a Customizer, whatever the destination."""
    for at, item in enumerate(customizer.replacements):
        field_of = f"replacements[{at}]"
        for name, text, check in (("path", item.path, JsonPath), ("value", item.value, _json)):
            try:
                if not customizer.syntax.check(text):
                    check(text)
            except (ExpressionWrong, ValueError) as error:
                yield Fault(f"{field_of}.{name}", str(error))


def customize(
    key: ObjectKey,
    obj: Mapping[str, Any],
    customizer: SentCustomizer | None,
    values: Mapping[str, str],
    destination: str,
) -> Customized:
    """What the object becomes where the properties are these; raises CustomizationFailed."""
    made = Customized({})
    work = _Work(key, destination, values, made)
    made.object = work.expanded(syntax_of(obj), obj)
    if customizer is not None:
        for at, item in enumerate(customizer.replacements):
            work.replace(customizer, at, item)
    work.check(obj, customizer)
    made.steps = work.steps
    return made


class _Work:
    """One object under way."""

    def __init__(
        self, key: ObjectKey, destination: str, values: Mapping[str, str], made: Customized
    ) -> None:
        self._key = key
        self._destination = destination
        self._values = values
        self._made = made
        self._room = OBJECT_MAX_BYTES
        self._steps = StepBudget()
        # What is still put into the object by replacements.
        self._values_left = VALUES_PUT_MAX

    @property
    def steps(self) -> int:
        """How many it took by now."""
        put = (VALUES_PUT_MAX - self._values_left) * STEPS_OF_VALUE
        followed = self._steps.taken * STEPS_OF_PATH_STEP
        return OBJECT_STEPS + followed + put + len(self._made.changes) * STEPS_OF_TEXT

    def expanded(self, syntax: Syntax, obj: Mapping[str, Any]) -> Object:
        """The object with its texts expanded, not shared with what came in."""
        found = self._copy(syntax, obj, ()) if syntax else copied(obj)
        assert isinstance(found, dict)
        return found

    def replace(self, customizer: SentCustomizer, at: int, item: SentReplacement) -> None:
        """Make one replacement of a Customizer, whose own expressions are expanded first."""
        used: dict[str, str | None] = {}
        named = f"Customizer {customizer.name}: replacements[{at}]"
        path = self._expand(customizer.syntax, item.path, f"{named}.path", used)
        value = self._expand(customizer.syntax, item.value, f"{named}.value", used)
        try:
            # A value may be put in many places; each is to find room.
            count = self._checked_count(value)
            most = min(self._room // max(len(value), 1), self._values_left // count)
            with_length(path, self._steps)
            places = JsonPath(path).replace(self._made.object, _json(value), most, self._steps)
        except ValueError as error:
            raise self._failed(named, str(error)) from error
        self._room -= places * len(value)
        self._values_left -= max(places, 1) * count
        by = f"Customizer {customizer.name}"
        change = FieldChange(path, item.value, value, tuple(used), by, places)
        self._made.changes.append(change)

    def _checked_count(self, value: str) -> int:
        """How many values are put at most, of a JSON text; raises ValueError of too many."""
        count = _values_at_most(value)
        if count > self._values_left:
            raise ValueError(
                f"{count} values, and of {VALUES_PUT_MAX} that may be put into an object "
                f"{self._values_left} are left; put less there"
            )
        return count

    def check(self, before: Mapping[str, Any], customizer: SentCustomizer | None) -> None:
        """Hold what was made to what any object is held to, and to its name."""
        made = self._made.object
        if all(made.get(name) == before.get(name) for name in _HEAD):
            return
        fault = next(object_faults(made), None)
        if fault is not None:
            raise self._failed(fault.path, f"{fault.message}; {fault.remedy}")
        was = identity_of(before)
        for path, value in identity_of(made).items():
            if value != was[path]:
                also = f", also in Customizer {customizer.name}" if customizer else ""
                raise self._failed(path, f"it cannot be customized; leave it as it is{also}")

    def _copy(self, syntax: Syntax, value: Any, steps: Steps) -> Any:
        kind = type(value)
        # Most values are texts and dicts; to ask whether something is a Mapping is slow.
        if kind is str:
            return self._text(syntax, value, steps) if syntax.may_expand(value) else value
        if kind is dict or isinstance(value, Mapping):
            return {
                name: item
                if type(item) is str and not syntax.may_expand(item)
                else self._copy(syntax, item, (*steps, name))
                for name, item in value.items()
            }
        if kind is list or kind is tuple:
            return [self._copy(syntax, item, (*steps, at)) for at, item in enumerate(value)]
        return value

    def _text(self, syntax: Syntax, text: str, steps: Steps) -> str:
        used: dict[str, str | None] = {}
        path = path_text(steps)
        after = self._expand(syntax, text, path, used)
        if used or after != text:
            self._made.changes.append(FieldChange(path, text, after, tuple(used)))
        return after

    def _expand(
        self, syntax: Syntax, text: str, path: str, used: MutableMapping[str, str | None]
    ) -> str:
        if not syntax.may_expand(text):
            return text
        try:
            after = syntax.expand(text, self._values, used, self._room)
        except PropertyMissing as error:
            remedy = "say it as a label or an annotation of the SyncTarget"
            raise self._failed(path, str(error), error.name, remedy) from error
        except ExpressionWrong as error:
            raise self._failed(path, str(error)) from error
        except ExpandsTooFar as error:
            said = f"more than {OBJECT_MAX_BYTES} bytes once it is expanded"
            raise self._failed(path, said) from error
        finally:
            self._made.used.update(used)
        self._room -= len(after)
        return after

    def _failed(
        self, path: str, message: str, name: str = "", remedy: str = ""
    ) -> CustomizationFailed:
        fault = Fault(path, message, remedy)
        return CustomizationFailed(self._key, fault, name, self._destination, self._made.used)


def _values_at_most(text: str) -> int:
    """How many values a JSON text has at most, keys of maps among them: nothing is read for it."""
    return 1 + sum(map(text.count, _VALUE_MARKS))


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_json)
        codec.canonical(value)
    except CodecError as error:
        raise ValueError(f"{text[:60]!r} has no form in an object: {error.reason}") from error
    except (ValueError, RecursionError) as error:
        said = str(error).partition(":")[0].lower()
        remedy = """a text has quotes of its own, as in '"web"'"""
        raise ValueError(f"{text[:60]!r} is no JSON ({said}); {remedy}") from error
    return value


def _no_json(text: str) -> Any:
    raise ValueError(f"{text} has no form in JSON")


def _texts(syntax: Syntax, value: Any, steps: Steps) -> Iterator[tuple[Steps, str]]:
    """The texts in a value that may have expressions, each with the steps to it."""
    kind = type(value)
    if kind is str:
        if syntax.may_expand(value):
            yield steps, value
    elif kind is dict or isinstance(value, Mapping):
        for name, item in value.items():
            if type(item) is not str or syntax.may_expand(item):
                yield from _texts(syntax, item, (*steps, name))
    elif kind is list or kind is tuple:
        for at, item in enumerate(value):
            yield from _texts(syntax, item, (*steps, at))


def path_text(steps: Steps) -> str:
    """The path of a field: `data.text`, `metadata.labels[a/b]`, `spec.ports[0].name`."""
    path = ""
    for step in steps:
        plain = isinstance(step, str) and not {".", "/"} & {*step}
        path += (f".{step}" if path else str(step)) if plain else f"[{step}]"
    return path
