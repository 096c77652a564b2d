"""What an expression may cost at most, told from its text: CEL itself has no limits.

An evaluation cannot be stopped, and nothing else runs meanwhile. So what could take long is refused
before: by its loops and the sizes of what it may loop over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from schemas.reports.collectors import EXPRESSION_MAX_BYTES

LOOPS_DEEP_MAX = 2
BRACKETS_DEEP_MAX = 32
STEPS_MAX = 100_000
"""About 40 ms; of all expressions of a collector together, as what follows."""
MATCHES = "matches"
MATCHES_MAX = 4
TOKENS_MAX = 1000
"""Words, numbers and marks of one expression. So many take about 15 ms to compile."""
TOKENS_IN_ALL_MAX = 2000
"""The same of all expressions of a collector, or a HealthRule: a node compiles them at once."""
COMPILED_STEPS = 50
"""So many steps take as long as to compile one token."""
VALUES_MAX = 5_000_000
JOINED_BYTES_MAX = 16 * 1024 * 1024
READ_BYTES_MAX = 20 * 1024 * 1024
"""About 40 ms: each mention of a variable copies its value."""
VALUE_BYTES = 64
"""To copy a value, a key of a map among them, takes as long as to copy so many bytes."""
BYTES_OF_STEP = 210
VALUES_OF_STEP = 250
_LOOPS = [[".", macro, "("] for macro in ("all", "exists", "exists_one", "filter", "map")]
_SMALL = ("false", "in", "inventory", "null", "propagation", "true")
"""Words that stand for no large value, unless a loop is called so."""
_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | //[^\n]* )
  | (?P<text> [rRbB]{0,2}
      (?: \"{3}.*?\"{3} | '{3}.*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
  | (?P<name> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<number> [0-9][0-9A-Za-z.]* )
  | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
PATH_MAX = 2
FieldPath = tuple[str, ...]


class TooCostly(ValueError):
    """An expression that is refused for what it could cost; says what, and what to do."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the text of an expression tells of its cost, and which names it binds itself."""

    tokens: int
    deep: int
    joins: int
    # At least as many as a list has that is written out.
    written: int
    bound: frozenset[str]
    # Those without a loop in them, as they are written.
    calls: frozenset[str]
    # Each use of a variable as the fields it goes to, at most two: those it needs of the variable.
    # An empty name is that of a field of which it matters only that it is there.
    paths: Mapping[str, frozenset[FieldPath]]
    # How often variables are mentioned, by how many loops are around; and those of loops.
    mentions: tuple[int, ...]
    own_mentions: tuple[int, ...]
    # Whether a loop may be over what a map made.
    remade: bool
    # Where `matches` is called, and the patterns that are written out, as they are written.
    matches_at: tuple[int, ...]
    patterns: tuple[str, ...]

    def check(self, largest: int, size: int) -> None:
        """Raise TooCostly over `size` bytes of values, the largest list or map of so many items."""
        check_all((self,), largest, size)

    def cost(self, largest: int, size: int) -> Cost:
        """The most that it may take over such values."""
        items = max(largest, self.written)
        # Lists that are added up may be one that is looped over.
        joined = items * (self.joins + 1)
        return Cost(
            values=items ** (self.deep + 1) * self.tokens if self.deep else 0,
            steps=joined**self.deep * self.tokens,
            read=self._times_read(items) * size,
            joined=(self.joins + 1) * items**self.deep * size if self.joins else 0,
        )

    def _times_read(self, items: int) -> int:
        """How often all values may be copied: each mention does it, as often as it loops."""
        times: int = sum(said * items**deep for deep, said in enumerate(self.mentions))
        # What a loop is over is as large as all values once for each mention, and all its items
        # together are as large as that.
        copies = max(sum(self.mentions), 1) * (items if self.remade else 1)
        loops = enumerate(self.own_mentions)
        own: int = sum(said * items ** (deep - 1) for deep, said in loops if deep)
        return times + own * copies


class Cost(NamedTuple):
    """What evaluations may take at most: values made, steps, bytes read and bytes joined."""

    values: int = 0
    steps: int = 0
    read: int = 0
    joined: int = 0


def check_all(shapes: Sequence[Shape], largest: int, size: int) -> None:
    """Raise TooCostly if these, evaluated one after another, cost too much; see `Shape.check`."""
    costs = [shape.cost(largest, size) for shape in shapes]
    items = max((largest, *(shape.written for shape in shapes)))
    joined = max((max(largest, it.written) * (it.joins + 1) for it in shapes), default=0)
    deep = max((shape.deep for shape in shapes), default=0)
    whole = Cost(*(sum(parts) for parts in zip(*costs, strict=True)))
    # The values of one are gone when the next begins.
    whole = whole._replace(values=max((cost.values for cost in costs), default=0))
    together = f"; {len(shapes)} expressions together" if len(shapes) > 1 else ""
    if whole.values > VALUES_MAX:
        said = f"it may make too many values out of {items} items; narrow the lists"
        raise TooCostly(f"too costly: {said}{together}")
    if whole.steps > STEPS_MAX:
        loops = f"{deep} nested loops over up to {joined} items; narrow the lists"
        raise TooCostly(f"too costly: {loops}{together}")
    if whole.read > READ_BYTES_MAX:
        remedy = "name fewer and smaller fields, and in loops only the loop's own variable"
        said = f"it may read more than {READ_BYTES_MAX} bytes; {remedy}"
        raise TooCostly(f"too costly: {said}{together}")
    if whole.joined > JOINED_BYTES_MAX:
        said = f"it may join more than {JOINED_BYTES_MAX} bytes; join fewer or smaller values"
        raise TooCostly(f"too costly: {said}{together}")
    if (steps := steps_of(shapes, largest, size)) > STEPS_MAX:
        said = f"{steps} steps for loops, reading and joining, at most {STEPS_MAX} are allowed"
        remedy = "name fewer and smaller fields, narrow the lists, or use several collectors"
        raise TooCostly(f"too costly: {said}; {remedy}{together}")


def check_texts(shapes: Sequence[Shape]) -> None:
    """Raise TooCostly if they take too long to compile, whatever they are evaluated over."""
    tokens = sum(shape.tokens for shape in shapes)
    if tokens > TOKENS_IN_ALL_MAX:
        said = f"{tokens} words, numbers and marks in {len(shapes)} expressions"
        raise TooCostly(f"{said}, at most {TOKENS_IN_ALL_MAX} are allowed; write them shorter")


def steps_of(shapes: Sequence[Shape], largest: int, size: int) -> int:
    """The most steps that all of them take over such values; all that they do counts."""
    costs = [shape.cost(largest, size) for shape in shapes]
    total = Cost(*(sum(parts) for parts in zip(*costs, strict=True))) if costs else Cost()
    copied = (total.read + total.joined) // BYTES_OF_STEP
    return total.steps + copied + total.values // VALUES_OF_STEP


def shape_of(text: str) -> Shape:
    """The shape of an expression; raises TooCostly for one that is too costly on any values."""
    if len(text.encode()) > EXPRESSION_MAX_BYTES:
        raise TooCostly(f"{len(text.encode())} bytes, at most {EXPRESSION_MAX_BYTES} are allowed")
    tokens = list(_tokens(text))
    if len(tokens) > TOKENS_MAX:
        message = f"{len(tokens)} words, numbers and marks, at most {TOKENS_MAX} are allowed"
        raise TooCostly(f"{message}; write it shorter")
    said = [token.text for token in tokens]
    deepest = 0
    bound: set[str] = set()
    loops, patterns, macros = list[int](), list[int](), list[str]()
    called = list[int]()
    paths: dict[str, set[FieldPath]] = {}
    mentions, own = [0] * (LOOPS_DEEP_MAX + 1), [0] * (LOOPS_DEEP_MAX + 1)
    for at, stack in _loops_around(said):
        token, deep = said[at], sum(map(bool, stack))
        deepest = max(deepest, deep)
        if deepest > LOOPS_DEEP_MAX:
            raise TooCostly(f"{deepest} nested loops, at most {LOOPS_DEEP_MAX} are allowed")
        if said[at] == "(" and stack[-1]:
            bound.add(stack[-1])
            loops.append(tokens[at].start)
            macros.append(said[at - 1])
        if said[at : at + 2] == [MATCHES, "("]:
            patterns.append(deep)
            called.append(at)
        if token.isidentifier() and (not at or said[at - 1] != "."):
            paths.setdefault(token, set()).add(_path_from(said, at))
            declared = said[max(at - 3, 0) : at] in _LOOPS
            if not declared and said[at + 1 : at + 2] != ["("]:
                (own if token in stack else mentions)[deep] += token in stack or token not in _SMALL
    _check_patterns(patterns)
    shape = Shape(
        tokens=max(len(tokens), 1),
        deep=deepest,
        joins=said.count("+"),
        written=said.count(",") + 1,
        bound=frozenset(bound),
        calls=frozenset(calls_of(text, tokens, loops)),
        paths={name: frozenset(used) for name, used in paths.items()},
        mentions=tuple(mentions),
        own_mentions=tuple(own),
        remade="map" in macros[:-1],
        matches_at=tuple(tokens[at].start for at in called),
        patterns=tuple(_patterns_in(text, tokens, called)),
    )
    shape.check(0, 0)
    return shape


def _loops_around(said: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Where each token stands; and of each open bracket the variable of its loop, "" if none."""
    stack: list[str] = []
    for at, token in enumerate(said):
        if token in OPEN:
            begins = said[max(at - 2, 0) : at + 1] in _LOOPS
            stack.append("".join(said[at + 1 : at + 2]) if begins else "")
        elif token in CLOSE and stack:
            stack.pop()
        if len(stack) > BRACKETS_DEEP_MAX:
            raise TooCostly(f"brackets nested deeper than {BRACKETS_DEEP_MAX}; write it plainer")
        yield at, stack


def narrowed(value: object, paths: Iterable[FieldPath]) -> object:
    """What these uses need of the value: of a map, the fields that they name."""
    named: dict[str, list[FieldPath]] = {}
    for path in paths:
        if not path:
            return value
        named.setdefault(path[0], []).append(path[1:])
    if not isinstance(value, dict):
        return value
    return {name: narrowed(value[name], rest) for name, rest in named.items() if name in value}


def _check_patterns(loops_around: Sequence[int]) -> None:
    if any(loops_around) or len(loops_around) > MATCHES_MAX:
        most = f"at most {MATCHES_MAX} matches() are allowed, and none in a loop"
        raise TooCostly(f"{most}; write startsWith, endsWith or contains")


def _patterns_in(text: str, tokens: Sequence[Lexeme], called: Iterable[int]) -> Iterator[str]:
    """The last argument of each of these calls that is a text in quotes and nothing else."""
    said = [token.text for token in tokens]
    for at in called:
        close = next((end for end in range(at, len(said)) if said[end] == ")"), 0)
        if said[close - 2 : close] in (["(", TEXT], [",", TEXT]):
            yield text[tokens[close - 1].start : tokens[close - 1].end]


def _path_from(tokens: Sequence[str], at: int) -> FieldPath:
    """The fields to which a use of a variable goes; what is called there is none."""
    end, path = at + 1, list[str]()
    while len(path) < PATH_MAX and tokens[end : end + 1] == ["."]:
        name, after = "".join(tokens[end + 1 : end + 2]), tokens[end + 2 : end + 3]
        if not name.isidentifier() or after == ["("]:
            break
        path.append(name)
        end += 2
    if len(path) == 1 and tokens[at - 2 : at] == ["has", "("] and tokens[end : end + 1] == [")"]:
        path.append("")
    return tuple(path)


def extent_of(values: Iterable[object]) -> tuple[int, int]:
    """How many items the largest list or map among and in these values has.

    And how many values there are, keys of maps among them.
    """
    outermost = list(values)
    largest, count = 0, len(outermost)
    waiting = [item for item in outermost if isinstance(item, (dict, list, tuple))]
    while waiting:
        value = waiting.pop()
        items = value.values() if isinstance(value, dict) else value
        if value is not items:
            count += len(value)
        count += len(value)
        largest = max(largest, len(value))
        waiting.extend([item for item in items if isinstance(item, (dict, list, tuple))])
    return largest, count


def weight_of(size: int, count: int) -> int:
    """What it takes to copy so many values of so many bytes, in bytes."""
    return size + count * VALUE_BYTES


def _tokens(text: str) -> Iterator[Lexeme]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "space":
            yield Lexeme(TEXT if found.lastgroup == "text" else found[0], *found.span())


OPEN, CLOSE = "([{", ")]}"
TEXT = "''"


class Lexeme(NamedTuple):
    """A part of an expression, and where it stands; of a text in quotes only the quotes."""

    text: str
    start: int
    end: int


def calls_of(text: str, tokens: Sequence[Lexeme], loops: Collection[int]) -> Iterator[str]:
    """Each call as it is written, with what it is called of; also `Name{field: 1}`.

    Left out are calls with a loop in them; `loops` are where their brackets open.
    """
    brackets: list[tuple[int, bool]] = []
    value, before = 0, ""
    for token in tokens:
        if token.text in OPEN:
            follows = _ends_value(before)
            value = value if follows else token.start
            brackets.append((value, follows and token.text != "["))
        elif token.text in CLOSE and brackets:
            value, called = brackets.pop()
            if called and not any(value <= loop < token.end for loop in loops):
                yield text[value : token.end]
        elif "." not in (token.text, before):
            value = token.start
        before = token.text


def _ends_value(said: str) -> bool:
    name = said.isidentifier() and said != "in"
    return name or said == TEXT or said[:1].isdigit() or said in tuple(CLOSE)
