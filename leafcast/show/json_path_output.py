"""`-o jsonpath=TEMPLATE`, as kubectl reads it: text, and in braces what is to be put there.

`{.items[*].metadata.name}` is a path, `{range PATH}...{end}` says its text for each value, and a
text may be in quotes. Steps are `.name`, `['name']`, `[0]`, `[0:2]`, `[*]`, `..name`, and a filter,
`[?(@.a=="b")]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

TEMPLATE_MAX, DEPTH_MAX = 4096, 100
_EXAMPLE = "{.metadata.name}"
_NAME = re.compile(r"(?:\\.|[^.\[\]{}()'\"\s=!<>,])+")
_SLICE = re.compile(r"\s*(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?\Z")
_FILTER = re.compile(r"(.*?)\s*(==|!=|<=|>=|<|>)\s*(.*)\Z", re.DOTALL)
_QUOTED = r"""'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)\""""
_TEXT = re.compile(_QUOTED, re.DOTALL)
_BLOCK = re.compile(rf"""\{{((?:\\.|[^\\'"}}]|{_QUOTED})*)\}}""", re.DOTALL)
_BRACKETS = re.compile(rf"{_QUOTED}|[\[\]]", re.DOTALL)
_NAMES = re.compile(rf"\s*(?:{_QUOTED})\s*(?:,|\Z)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}

PathStep: TypeAlias = Callable[[Any], Iterable[Any]]
"""From one value to those that a step leads to; to none where there is nothing."""


class BadTemplate(ValueError):
    """A template that cannot be read; says where, and how to write one."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"jsonpath: {part}: {why}")
        self.part = part


@dataclass(frozen=True, slots=True)
class Path:
    """A path from the whole, or from what a range is at."""

    steps: tuple[PathStep, ...]
    from_root: bool = False

    def begins_with(self, name: str) -> bool:
        """Whether its first step leads to this field and to no other."""
        first = self.steps[:1]
        return any([*step({name: 1})] and not [*step({"": {name: 1}})] for step in first)

    def values(self, root: Any, here: Any) -> list[Any]:
        found = [root if self.from_root else here]
        for step in self.steps:
            found = [value for one in found for value in step(one)]
        return found


@dataclass(frozen=True, slots=True)
class _Range:
    path: Path
    parts: tuple[_Part, ...]


_Part: TypeAlias = "str | Path | _Range"


@dataclass(frozen=True, slots=True)
class Template:
    """What is printed of a document."""

    parts: tuple[_Part, ...]

    def of(self, root: Any) -> str:
        return "".join(_said(self.parts, root, root))

    def begins_with(self, name: str) -> bool:
        """Whether a path of it leads from the whole to this field."""
        paths = (part.path if isinstance(part, _Range) else part for part in self.parts)
        return any(isinstance(path, Path) and path.begins_with(name) for path in paths)


def read_template(text: str) -> Template:
    """Raises BadTemplate."""
    if len(text) > TEMPLATE_MAX:
        raise BadTemplate(f"{len(text)} letters", f"at most {TEMPLATE_MAX} are read")
    if "{" not in text:
        raise BadTemplate(f'"{text}"', f"it has no braces; write jsonpath='{_EXAMPLE}'")
    try:
        words = [word for block in _blocks(text) for word in block]
        return Template(_parts(words, 0, within=False)[0])
    except RecursionError as error:
        raise BadTemplate(f'"{text[:20]}..."', "it is nested too deeply; write less") from error


def read_path(text: str) -> Path:
    """A path without braces, as `.spec.replicas`; raises BadTemplate."""
    try:
        return _path(text[:TEMPLATE_MAX].strip().removeprefix("{").removesuffix("}"))
    except RecursionError as error:
        raise BadTemplate(f'"{text[:20]}..."', "it is nested too deeply; write less") from error


def _said(parts: Iterable[_Part], root: Any, here: Any) -> Iterator[str]:
    for part in parts:
        match part:
            case str():
                yield part
            case Path():
                yield " ".join(map(value_text, part.values(root, here)))
            case _Range(path, inner):
                for value in path.values(root, here):
                    yield from _said(inner, root, value)


def value_text(value: Any) -> str:
    """A text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


_Word: TypeAlias = tuple[str, str]
"""`text` and what it is, or `path`, `range`, `end`, and what follows."""


def _blocks(text: str) -> Iterator[list[_Word]]:
    at = 0
    while at < len(text):
        begin = text.find("{", at)
        if begin != at:
            yield [("text", text[at:] if begin < 0 else text[at:begin])]
        if begin < 0:
            return
        found = _BLOCK.match(text, begin)
        if found is None:
            raise BadTemplate(f'"{text[begin:]}"', "its brace is not closed; write {...}")
        yield list(_words(found[1]))
        at = found.end()


def _words(block: str) -> Iterator[_Word]:
    """What one pair of braces says: texts in quotes, and a path, `range PATH` or `end`."""
    rest = block.strip()
    while found := _TEXT.match(rest):
        yield "text", _unescaped(found[0][1:-1])
        rest = rest[found.end() :].strip()
    if rest == "end":
        yield "end", ""
    elif rest.startswith("range ") or rest == "range":
        yield "range", rest.removeprefix("range").strip()
    elif rest:
        yield "path", rest


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda it: _ESCAPES.get(it[1], it[1]), text, flags=re.DOTALL)


def _parts(words: Sequence[_Word], at: int, *, within: bool) -> tuple[tuple[_Part, ...], int]:
    """The parts from a word on, to the end or to that of a range, and where to go on."""
    found: list[_Part] = []
    while at < len(words):
        kind, said = words[at]
        at += 1
        match kind:
            case "text":
                found.append(said)
            case "path":
                found.append(_path(said))
            case "range":
                inner, at = _parts(words, at, within=True)
                found.append(_Range(_path(said), inner))
            case _ if within:
                return tuple(found), at
            case _:
                raise BadTemplate("{end}", "no {range PATH} is open there; take it out")
    if within:
        raise BadTemplate("{range ...}", "it is not ended; write {end} behind what is repeated")
    return tuple(found), at


def _path(text: str) -> Path:
    rest, steps = text, list[PathStep]()
    from_root = rest.startswith("$")
    rest = rest[1:] if rest[:1] in ("$", "@") else rest
    if rest and rest[0] not in ".[":
        raise BadTemplate(f'"{text}"', f"a path begins with a dot, as in {_EXAMPLE}")
    while rest:
        step, rest = _step(rest, text)
        if step is not None:
            steps.append(step)
    return Path(tuple(steps), from_root)


def _step(rest: str, whole: str) -> tuple[PathStep | None, str]:
    """The first step of what is left, and what is left then."""
    if rest.startswith("["):
        end = _bracket_end(rest, whole)
        return _bracket(rest[1:end].strip(), whole), rest[end + 1 :]
    deep = rest.startswith("..")
    rest = rest[2 if deep else 1 :]
    if rest.startswith("*"):
        return (_all_below if deep else _all), rest[1:]
    if deep and rest.startswith("["):
        return _all_below_and_self, rest
    if (not rest and not deep) or rest.startswith("["):
        # `.` is all there is, and `.[0]` is `[0]`.
        return None, rest
    found = _NAME.match(rest)
    if found is None:
        raise BadTemplate(f'"{whole}"', f'no name stands before "{rest}"')
    name = re.sub(r"\\(.)", r"\1", found[0])
    return (_named_below(name) if deep else _named((name,))), rest[found.end() :]


def _bracket_end(rest: str, whole: str) -> int:
    depth = 0
    for found in _BRACKETS.finditer(rest):
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        if not depth:
            return found.start()
    raise BadTemplate(f'"{whole}"', "its bracket is not closed; write [...]")


def _bracket(said: str, whole: str) -> PathStep:
    if said == "*":
        return _all
    if said.startswith("?(") and said.endswith(")"):
        return _filter(said[2:-1].strip())
    if found := _SLICE.match(said):
        bounds = [int(bound) if bound and bound != "-" else None for bound in found.groups()]
        if bounds[2] == 0:
            raise BadTemplate(f'"{whole}"', "a slice's step is not 0")
        return _sliced(slice(*bounds))
    words = [word.strip() for word in said.split(",")]
    if all(re.fullmatch(r"-?\d{1,9}", word) for word in words):
        return _indexed(tuple(map(int, words)))
    quoted = _NAMES.findall(said)
    if quoted and said[:1] in ("'", '"'):
        return _named(tuple(_unescaped(one or other) for one, other in quoted))
    raise BadTemplate(f'"[{said}]"', "write [0], [0:2], [*], ['name'] or [?(@.type==\"Ready\")]")


def _named(names: Sequence[str]) -> PathStep:
    return lambda it: (it[name] for name in names if isinstance(it, Mapping) and name in it)


def _indexed(places: Sequence[int]) -> PathStep:
    return lambda it: (it[at] for at in places if _is_list(it) and -len(it) <= at < len(it))


def _sliced(part: slice) -> PathStep:
    return lambda it: it[part] if _is_list(it) else ()


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _all(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if _is_list(value) else ()


def _all_below_and_self(value: Any, depth: int = 0) -> Iterator[Any]:
    yield value
    if depth < DEPTH_MAX:
        for inner in _all(value):
            yield from _all_below_and_self(inner, depth + 1)


def _all_below(value: Any) -> Iterable[Any]:
    return (inner for one in _all_below_and_self(value) for inner in _all(one))


def _named_below(name: str) -> PathStep:
    step = _named((name,))
    return lambda it: (found for one in _all_below_and_self(it) for found in step(one))


def _filter(said: str) -> PathStep:
    """The values of a list of which it is true; without a comparison those that have it."""
    found = _FILTER.match(said)
    left = _path(found[1] if found else said)
    test = _TESTS[found[2]] if found else None
    right = _operand(found[3].strip()) if found else None

    def holds(value: Any) -> bool:
        ours = left.values(value, value)
        if test is None or right is None:
            return bool(ours)
        theirs = right.values(value, value) if isinstance(right, Path) else [right[0]]
        try:
            return bool(ours and theirs) and test(ours[0], theirs[0])
        except TypeError:
            return False

    return lambda it: filter(holds, it) if _is_list(it) else ()


def _operand(said: str) -> Path | tuple[Any]:
    if said[:1] in ("'", '"') and said[-1:] == said[0] and len(said) > 1:
        return (_unescaped(said[1:-1]),)
    if said[:1] in ("@", "$"):
        return _path(said)
    try:
        return (json.loads(said),)
    except ValueError as error:
        raise BadTemplate(
            f'"{said}"', "compare with a number, a text in quotes or @.path"
        ) from error
