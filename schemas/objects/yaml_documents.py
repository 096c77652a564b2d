"""YAML text as documents of JSON values, with the place of each key; the one reader of YAML.

Values are built from parser events, without recursion and without PyYAML's constructors, so
nothing in a text can make anything but mappings, lists and scalars.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from schemas.objects.scalars import NoJsonForm, Scalar, key_text, resolve
from schemas.objects.yaml_streams import parts_of
from schemas.values.codec import DEPTH_MAX

# Characters that aliases may add to one document: more than any object that Kubernetes would take.
ALIASED_CHARACTERS_MAX = 4 * 1024 * 1024
# Of a mapping or list, in characters: it takes as much memory, however little is in it.
EMPTY_WEIGHT = 16

_TAG = "tag:yaml.org,2002:"
_STRING_TAGS = frozenset((f"{_TAG}str", "!"))
_READ_TAGS = frozenset(f"{_TAG}{name}" for name in ("null", "bool", "int", "float"))
_MERGE = "<<"
# JSON says characters beyond U+FFFF as two escapes, which YAML does not know.
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)")
# A line that begins a document; no text of another one can hold it.
_BEGIN = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
# libyaml's parser is about ten times as fast; the one in Python reads the same language.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a text: where, and what."""

    origin: str
    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.origin}:{self.position.line}:{self.position.column}: {self.message}"


class InvalidManifest(ValueError):
    """A text that is refused as a whole; `problems` are at least one, in the order of the text."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Document:
    """A document's value and the places in it."""

    origin: str
    root: Any
    position: Position
    # By the id of a mapping (or list) of the document and the key (or index) in it; with None as
    # the key, where that mapping or list itself begins.
    positions: dict[tuple[int, object], Position]
    # By the same keys how a scalar is written that reads as another: `y` for true.
    written: dict[tuple[int, object], str]
    # By the same keys how a key itself is written that reads as another: `y` for "true".
    written_keys: dict[tuple[int, object], str]


@dataclass(frozen=True, slots=True)
class _Place:
    """A text that is read, or a part of one: what it is named, and how much is before it."""

    origin: str
    lines: int = 0
    columns: int = 0

    def at(self, mark: Any) -> Position:
        """What the parser marked."""
        return self.position(mark.line, mark.column)

    def position(self, line: int, column: int) -> Position:
        """Where in the whole text a line and column of the part are, both from 0."""
        return Position(line + 1 + self.lines, column + 1 + (0 if line else self.columns))

    def fault(self, mark: Any, message: str) -> InvalidManifest:
        position = self.position(0, 0) if mark is None else self.at(mark)
        return InvalidManifest([Problem(self.origin, position, message)])


def read_documents(text: str, origin: str) -> Iterator[Document]:
    """Yield the documents that are not empty; raises InvalidManifest at the first fault."""
    for found in read_all(text, origin):
        if isinstance(found, InvalidManifest):
            raise found
        yield found


def read_all(text: str, origin: str) -> Iterator[Document | InvalidManifest]:
    """Yield the documents that are not empty, and of each that cannot be read why not."""
    for part in parts_of(text):
        yield from _read(_joined_escapes(part.text), _Place(origin, part.lines, part.columns))


def _read(text: str, place: _Place) -> Iterator[Document | InvalidManifest]:
    reader = _Reader(text, place)
    try:
        yield from reader.documents()
    except InvalidManifest as invalid:
        yield invalid
    else:
        return
    if reader.broken:
        return
    # A parser does not go on behind a fault; documents begin where nothing else can stand.
    begins = [found.start() for found in _BEGIN.finditer(text)]
    lines, at = place.lines, 0
    for begin, end in itertools.pairwise((*begins, len(text))):
        lines, at = lines + text.count("\n", at, begin), begin
        if lines >= reader.line:
            try:
                yield from _Reader(text[begin:end], _Place(place.origin, lines)).documents()
            except InvalidManifest as invalid:
                yield invalid


class _Reader:
    """Reads the documents of a text until one cannot be read."""

    def __init__(self, text: str, place: _Place) -> None:
        self._text = text
        self._place = place
        self.line = 0
        """In which line the last document began; 0 if none did."""
        self.broken = False
        """Whether the text itself is at fault: then no part of it can be read."""

    def documents(self) -> Iterator[Document]:
        """Yield the documents that are not empty; raises InvalidManifest at the first fault."""
        builder: _Builder | None = None
        try:
            for event in yaml.parse(self._text, Loader=_LOADER):
                if isinstance(event, yaml.DocumentStartEvent):
                    self.line = self._place.at(event.start_mark).line
                    builder = _Builder(self._place)
                elif isinstance(event, yaml.DocumentEndEvent):
                    if builder is not None and builder.root is not None:
                        yield builder.document()
                    builder = None
                elif builder is not None:
                    builder.take(event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = error.problem or error.context or "not YAML"
            if _stands_on_tab(self._text, mark):
                said = "a tab; YAML is indented with spaces: write spaces instead"
            raise self._place.fault(mark, said) from error
        except yaml.reader.ReaderError as error:
            # libyaml counts bytes, the parser in Python characters; the character is surest.
            self.broken = True
            at = self._text.find(chr(error.character)) if isinstance(error.character, int) else -1
            raise self._unreadable(max(at, 0), str(error.reason)) from error
        except UnicodeEncodeError as error:
            self.broken = True
            raise self._unreadable(error.start, "half a character") from error

    def _unreadable(self, at: int, said: str) -> InvalidManifest:
        before = self._text[:at]
        position = self._place.position(before.count("\n"), at - (before.rfind("\n") + 1))
        return InvalidManifest([Problem(self._place.origin, position, said)])


@dataclass(slots=True)
class _Frame:
    """A mapping or list that is being read."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    weight: int = EMPTY_WEIGHT
    key: str | None = None
    merging: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list)


class _Builder:
    """One document in the making."""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self.root: Any = None
        self._started: Position | None = None
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0
        self._positions: dict[tuple[int, object], Position] = {}
        self._written: dict[tuple[int, object], str] = {}
        self._written_keys: dict[tuple[int, object], str] = {}
        # Positions go by id: what was merged stays, so that its id is not given again.
        self._kept: list[Any] = []

    def document(self) -> Document:
        began = self._started or Position(1, 1)
        return Document(
            self._place.origin,
            self.root,
            began,
            self._positions,
            self._written,
            self._written_keys,
        )

    def take(self, event: Any) -> None:
        """Read one event."""
        if self._started is None:
            self._started = self._place.at(event.start_mark)
        match event:
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(event)
            case _:
                raise self._place.fault(event.start_mark, "not expected here")

    def _scalar(self, event: Any) -> None:
        frame = self._frames[-1] if self._frames else None
        wants_key = frame is not None and isinstance(frame.value, dict) and frame.key is None
        if wants_key and event.value == _MERGE and event.implicit[0]:
            assert frame is not None
            frame.key, frame.merging = _MERGE, True
            return
        try:
            value = self._resolve(event)
            if wants_key:
                assert frame is not None
                self._key(frame, key_text(value), event)
                if not isinstance(value, str) and event.value != frame.key:
                    self._written_keys[id(frame.value), frame.key] = event.value
            else:
                self._add(value, 1 + len(event.value), event)
        except NoJsonForm as error:
            raise self._place.fault(event.start_mark, str(error)) from error
        if event.anchor:
            self._anchors[event.anchor] = (value, 1 + len(event.value))

    def _resolve(self, event: Any) -> Scalar:
        if event.style == '"' and _HALF_CHARACTER.search(event.value):
            raise NoJsonForm("half a character; write both escapes of the pair")
        plain, quoted = event.implicit
        if event.tag in _STRING_TAGS:
            return str(event.value)
        if plain:
            return resolve(event.value)
        if quoted or event.tag is None:
            return str(event.value)
        if event.tag in _READ_TAGS:
            return _as_tagged(event.tag, event.value)
        raise NoJsonForm(f"the tag {_short(event.tag)} has no JSON form; leave it out")

    def _key(self, frame: _Frame, key: str, event: Any) -> None:
        assert isinstance(frame.value, dict)
        if key in frame.value:
            raise self._place.fault(event.start_mark, self._twice(frame.value, key, event))
        # Its value comes next; the place is kept by then, for a second one to be found.
        self._positions[id(frame.value), key] = self._place.at(event.start_mark)
        frame.value[key] = None
        frame.key = key
        frame.weight += 1 + len(key)

    def _twice(self, value: dict[str, Any], key: str, event: Any) -> str:
        """That a key is given twice, in the words of who wrote it."""
        at = (id(value), key)
        first, second = self._written_keys.get(at, key), getattr(event, "value", key)
        said = f"is given twice, first in line {self._positions[at].line}"
        if first == second == key:
            return f'"{key}" {said}'
        return f'"{key}" {said}: so YAML reads both {first} and {second}; quote them'

    def _add(self, value: Any, weight: int, event: Any) -> None:
        """Put a finished value where it belongs."""
        if not self._frames:
            self.root = value
            return
        frame = self._frames[-1]
        frame.weight += weight
        if isinstance(frame.value, list):
            # A mapping or list is finished where it ends, and found where it began.
            began = self._positions.get((id(value), None)) or self._place.at(event.start_mark)
            at = (id(frame.value), len(frame.value))
            self._positions[at] = began
            frame.value.append(value)
            self._note_written(at, value, event)
        elif frame.key is None:
            raise self._place.fault(event.start_mark, "a key must be a string, not a list")
        elif frame.merging:
            frame.merged.extend(self._merged(value, event))
            frame.key, frame.merging = None, False
        else:
            frame.value[frame.key] = value
            self._note_written((id(frame.value), frame.key), value, event)
            frame.key = None

    def _note_written(self, at: tuple[int, object], value: Any, event: Any) -> None:
        if not isinstance(value, str | dict | list) and isinstance(event, yaml.ScalarEvent):
            self._written[at] = event.value

    def _merged(self, value: Any, event: Any) -> list[dict[str, Any]]:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise self._place.fault(event.start_mark, "<< takes a mapping or mappings")
        self._kept.extend(sources)
        return sources

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            said = f"*{event.anchor} names an anchor that is not finished before it"
            raise self._place.fault(event.start_mark, said)
        value, weight = self._anchors[event.anchor]
        self._aliased += weight
        if self._aliased > ALIASED_CHARACTERS_MAX:
            said = f"aliases add more than {ALIASED_CHARACTERS_MAX} characters"
            raise self._place.fault(event.start_mark, said)
        frame = self._frames[-1] if self._frames else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            if isinstance(value, (dict, list)):
                said = "a key must be a string, not a mapping or a list"
                raise self._place.fault(event.start_mark, said)
            self._key(frame, key_text(value), event)
            return
        # A copy, so that the value is a tree and no change to one place shows at another.
        self._add(_copy(value), weight, event)

    def _open(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        usual = f"{_TAG}{'map' if mapping else 'seq'}"
        if event.tag not in (None, "!", usual):
            said = f"the tag {_short(event.tag)} has no JSON form; leave it out"
            raise self._place.fault(event.start_mark, said)
        if len(self._frames) >= DEPTH_MAX:
            said = f"nested deeper than {DEPTH_MAX} levels"
            raise self._place.fault(event.start_mark, said)
        holder = self._frames[-1] if self._frames else None
        if holder is not None and isinstance(holder.value, dict) and holder.key is None:
            said = "a key must be a string, not a mapping or a list"
            raise self._place.fault(event.start_mark, said)
        value: dict[str, Any] | list[Any] = {} if mapping else []
        self._positions[id(value), None] = self._place.at(event.start_mark)
        self._frames.append(_Frame(value, event.anchor))

    def _close(self, event: Any) -> None:
        frame = self._frames.pop()
        if isinstance(frame.value, dict):
            for source in frame.merged:
                for key, value in source.items():
                    frame.value.setdefault(key, value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.weight)
        self._add(frame.value, frame.weight, event)


def _joined_escapes(text: str) -> str:
    """In a text that is JSON, write a pair of escapes as the one that YAML has for it."""
    if not text.lstrip().startswith(("{", "[")):
        return text

    def joined(found: re.Match[str]) -> str:
        high, low = found.groups()
        if high is None:
            return found.group()
        code = 0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00)
        return f"\\U{code:08X}"

    return _ESCAPE.sub(joined, text)


def _as_tagged(tag: str, text: str) -> Scalar:
    value = resolve(text)
    match tag.removeprefix(_TAG), value:
        case ("null", None) | ("bool", bool()):
            return value
        case ("int", int()) | ("float", int() | float()) if not isinstance(value, bool):
            return value
        case name, _:
            raise NoJsonForm(f"{text} is not a {name}, as its tag says")


def _copy(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copy(item) for key, item in value.items()}
        case list():
            return [_copy(item) for item in value]
        case _:
            return value


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}" if tag.startswith(_TAG) else tag


def _stands_on_tab(text: str, mark: Any) -> bool:
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines):
        return False
    line = lines[mark.line]
    indent = line[: len(line) - len(line.lstrip())]
    return "\t" in indent or line[mark.column : mark.column + 1] == "\t"
