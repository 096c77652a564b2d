"""JSONPath (RFC 9535) for replacing: the one importer of python-jsonpath.

Beside the standard `.N` is an index or a name, a last name that is missing can be set, and nothing
is found inside of what is replaced itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from functools import lru_cache
from typing import Any

from jsonpath import JSONPath, JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import IndexSelector, NameSelector

from relay.objects.merge import copied

DESCENTS_MAX = 2
MATCHES_MAX = 10_000
_NUMBER = re.compile(r"\.(\d+)(?=[.\[]|\Z)")

Location = tuple[str | int, ...]


class PathWrong(ValueError):
    """A text is no JSONPath, or none that may be used; says why."""


class _Environment(JSONPathEnvironment):
    """The standard, without regular expressions: what they cost cannot be bounded."""

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        for name in ("match", "search"):
            self.function_extensions.pop(name, None)


_ENVIRONMENT = _Environment(strict=True)


class ObjectPath:
    """Parts of an object."""

    def __init__(self, text: str) -> None:
        """Read a JSONPath; raises PathWrong."""
        self._text = text
        try:
            path = _ENVIRONMENT.compile(_with_numbers(text))
        except (JSONPathError, RecursionError, ValueError) as error:
            said = str(error).split("\n", maxsplit=1)[0]
            raise PathWrong(f'"{text}" is no JSONPath: {said}') from error
        assert isinstance(path, JSONPath)
        self._path, segments = path, tuple(path.segments)
        if not segments:
            raise PathWrong(f'"{text}" means the whole object; name a part of it')
        if text.count("..") > DESCENTS_MAX:
            raise PathWrong(f'"{text}" descends ".." more than {DESCENTS_MAX} times')
        self._holder = JSONPath(env=_ENVIRONMENT, segments=segments[:-1])
        self._names = _names_of(segments[-1])

    def replace(self, obj: MutableMapping[str, Any], value: object) -> int:
        """Put a value in the place of each part, and of last names that are missing; how many.

        Raises PathWrong.
        """
        done: list[Location] = []
        for location in sorted(self._locations(obj), key=len):
            if not any(location[: len(above)] == above for above in done):
                _holder_of(obj, location)[location[-1]] = copied(value)
                done.append(location)
        return len(done)

    def _locations(self, obj: MutableMapping[str, Any]) -> list[Location]:
        found = [tuple(match.parts) for match in self._matches(self._path, obj)]
        if self._names:
            for match in self._matches(self._holder, obj):
                if isinstance(match.obj, Mapping):
                    parts = tuple(match.parts)
                    missing = (name for name in self._names if name not in match.obj)
                    found += [(*parts, name) for name in missing]
        return list(dict.fromkeys(found))

    def _matches(self, path: JSONPath, obj: MutableMapping[str, Any]) -> Iterator[Any]:
        try:
            for count, match in enumerate(path.finditer(obj)):
                if count >= MATCHES_MAX:
                    raise PathWrong(f'"{self._text}" means more than {MATCHES_MAX} parts')
                yield match
        except (JSONPathError, RecursionError) as error:
            raise PathWrong(f'"{self._text}" cannot be followed: {error}') from error


@lru_cache(maxsize=256)
def object_path(text: str) -> ObjectPath:
    """A JSONPath, read once; raises PathWrong."""
    return ObjectPath(text)


def _names_of(segment: object) -> tuple[str, ...]:
    """The names that a last segment sets, if names and indices are all that it is."""
    if not isinstance(segment, JSONPathChildSegment):
        return ()
    if not all(isinstance(one, (NameSelector, IndexSelector)) for one in segment.selectors):
        return ()
    return tuple(one.name for one in segment.selectors if isinstance(one, NameSelector))


def _holder_of(obj: Any, location: Location) -> Any:
    for part in location[:-1]:
        obj = obj[part]
    assert isinstance(obj, (MutableMapping, MutableSequence))
    return obj


def _with_numbers(text: str) -> str:
    """The path with `.N` outside of brackets as an index or a name."""
    parts: list[str] = []
    depth, quote, at = 0, "", 0
    while at < len(text):
        number = _NUMBER.match(text, at) if not depth and not quote else None
        if number is not None and text[at - 1 : at] != ".":
            parts.append(f"[{int(number[1])},'{number[1]}']")
            at = number.end()
            continue
        char = text[at]
        if quote:
            if char == "\\":
                parts.append(text[at : at + 1])
                at += 1
                char = text[at : at + 1]
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
        parts.append(char)
        at += 1
    return "".join(parts)
