"""JSONPath over objects: RFC 9535, and what KubeStellar takes beside it; bounded, and without I/O.

The library is loaded at the first expression only: it costs 6 MB. Ours are the
step `.N` for an index or a name, a last step that is made where it is missing, and that nothing is
looked for inside what was just replaced. Functions that take regular expressions are left out, as
nothing bounds them; a filter looks only at what it tests; and the steps in an object are counted.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from schemas.values.faults import Fault, Faulty
from schemas.values.fields import Steps, by_place, value_at

if TYPE_CHECKING:
    from jsonpath import JSONPath, JSONPathEnvironment

    from schemas.objects.counted_paths import CountedPath

EXPRESSION_MAX = 4096
DESCENTS_MAX = 2
_LEFT_OUT = ("match", "search")
PLACES_MAX = 10_000
STEPS_MAX = 50_000
"""Of all paths that are followed in one object: about 0.3 s."""
STEPS_OF_PATH = 10
CHARACTERS_MAX = 16_384
"""Of all paths of one text: to read so many takes at most 0.1 s."""
# What stands in quotes or brackets is left as it is; a step `.7` becomes `[7,'7']`.
_STEP = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|([\[\]])|(?<!\.)\.(\d+)(?![\w-])""")

_FORM = 'write it as in $.spec.ports[*].nodePort or $["spec"]'


class TooManySteps(Exception):
    """Paths look at more than they may."""


class StepBudget:
    """How many steps paths may still take in one object."""

    def __init__(self, most: int = STEPS_MAX) -> None:
        self._most = self._left = most

    @property
    def taken(self) -> int:
        """How many were taken."""
        return min(self._most - self._left, self._most)

    def take(self, steps: int) -> None:
        """Raises TooManySteps."""
        self._left -= steps
        if self._left < 0:
            raise TooManySteps


class JsonPath:
    """One expression; raises Faulty if it is none, or means the whole object."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled = _compile(text)

    def places(self, obj: Mapping[str, Any], steps: StepBudget | None = None) -> list[Steps]:
        """Where it leads to in an object, each place once, in the order of the expression.

        Several paths in one object share their `steps`. Raises Faulty for an object that is nested
        too deeply, or too large for it.
        """
        return _places(self.text, self._compiled, obj, steps or StepBudget())

    def remove(self, obj: dict[str, Any], steps: StepBudget | None = None) -> list[Steps]:
        """Take out of an object, in place, what it leads to, and tell where; raises Faulty."""
        places = sorted(self.places(obj, steps), key=by_place, reverse=True)
        # Of a list the last items first, so that the others stay where they are.
        for place in places:
            if (holder := _at(obj, place[:-1])) is not None:
                del holder[place[-1]]
        return places

    def replace(
        self,
        obj: dict[str, Any],
        value: Any,
        places_max: int = PLACES_MAX,
        steps: StepBudget | None = None,
    ) -> int:
        """Put a value, in place, wherever it leads to; in how many places. Raises Faulty.

        It puts nothing anywhere if that were more than `places_max` places.

        A last step that names one field makes that field where it is missing. Nothing is changed
        inside of what was replaced.
        """
        steps = steps or StepBudget()
        found = dict.fromkeys(self.places(obj, steps))
        prefix, names = _last_names(self.text)
        if names:
            holders = _places(self.text, prefix, obj, steps) if prefix is not None else [()]
            maps = [place for place in holders if isinstance(_at(obj, place), dict)]
            found |= {(*place, name): None for place in maps for name in names}
        done: dict[Steps, None] = {}
        for place in sorted(found, key=len):
            if not any(place[:at] in done for at in range(1, len(place))):
                done[place] = None
        if len(done) > places_max:
            what = f"puts too much into this object, at {len(done)} places"
            raise _fault(self.text, what, "name fewer, or put less there")
        for place in done:
            _at(obj, place[:-1])[place[-1]] = copy.deepcopy(value)
        return len(done)


def _places(
    text: str, compiled: CountedPath, obj: Mapping[str, Any], steps: StepBudget
) -> list[Steps]:
    from jsonpath import JSONPathError  # noqa: PLC0415

    try:
        # One that finds nothing at once takes some time as well.
        steps.take(STEPS_OF_PATH)
        found = [match.parts for match in islice(compiled.within(obj, steps), PLACES_MAX + 1)]
    except TooManySteps as error:
        remedy = "name fewer levels and fields, each once, by fewer paths"
        raise _fault(text, "looks at too much in this object", remedy) from error
    except (JSONPathError, RecursionError) as error:
        raise _fault(text, "cannot be followed in this object", "name fewer levels") from error
    if len(found) > PLACES_MAX:
        raise _fault(text, f"leads to more than {PLACES_MAX} places", "name fewer")
    # To the library a slice of a text is one, too.
    inside = (place for place in found if isinstance(_at(obj, place[:-1]), dict | list))
    return list(dict.fromkeys(inside))


def with_length(text: str, steps: StepBudget) -> None:
    """Take what it may take to read a path: a step for each character. Raises Faulty."""
    try:
        steps.take(len(text))
    except TooManySteps as error:
        said = "is too long, with the others that are followed in this object"
        raise _fault(text, said, "write shorter paths, or fewer") from error


def length_fault(field: str, texts: Iterable[str]) -> Fault | None:
    """What is wrong with how long paths are together; None if nothing is."""
    size = sum(map(len, texts))
    if size <= CHARACTERS_MAX:
        return None
    said = f"{size} characters in all paths, at most {CHARACTERS_MAX} may be"
    return Fault(field, said, "write shorter paths, or fewer")


def _at(obj: Any, place: Steps) -> Any:
    """What lies at a place; None if nothing does any more."""
    try:
        return value_at(obj, place)
    except (LookupError, TypeError):
        return None


def _fault(text: str, message: str, remedy: str) -> Faulty:
    shown = text if len(text) <= 64 else f"{text[:61]}..."
    return Faulty(Fault("", f'"{shown}" {message}', remedy))


@lru_cache(maxsize=256)
def _compile(text: str) -> CountedPath:
    from jsonpath import CompoundJSONPath, JSONPathError  # noqa: PLC0415

    from schemas.objects.counted_paths import CountedPath  # noqa: PLC0415

    if len(text) > EXPRESSION_MAX:
        raise _fault(text, f"has {len(text)} characters", f"at most {EXPRESSION_MAX} may be")
    if not text.startswith("$"):
        raise _fault(text, "is not a JSONPath: it does not begin with $", _FORM)
    try:
        compiled = _environment().compile(_with_brackets(text))
    except (JSONPathError, RecursionError, ValueError, ArithmeticError) as error:
        # The library takes 1e400 for a number, and cannot make one of it.
        said = error.args[0] if error.args and isinstance(error.args[0], str) else "not readable"
        raise _fault(text, f"is not a JSONPath: {said.splitlines()[0]}", _FORM) from error
    if isinstance(compiled, CompoundJSONPath) or not compiled.segments:
        raise _fault(text, "means the whole object", "name a field in it, as in $.spec.replicas")
    _check_cost(text, compiled)
    return CountedPath(compiled)


@lru_cache(maxsize=256)
def _last_names(text: str) -> tuple[CountedPath | None, tuple[str, ...]]:
    """The expression without its last step, None if that is the root, and the fields it names.

    None are named by a last step that tells no names, or is looked for at any depth.
    """
    from jsonpath import JSONPath  # noqa: PLC0415
    from jsonpath.segments import JSONPathChildSegment  # noqa: PLC0415
    from jsonpath.selectors import IndexSelector, NameSelector  # noqa: PLC0415

    from schemas.objects.counted_paths import CountedPath  # noqa: PLC0415

    compiled = _compile(text)
    *before, last = compiled.segments
    if not isinstance(last, JSONPathChildSegment):
        return None, ()
    if not all(isinstance(one, NameSelector | IndexSelector) for one in last.selectors):
        return None, ()
    names = tuple(one.name for one in last.selectors if isinstance(one, NameSelector))
    prefix = CountedPath(JSONPath(env=_environment(), segments=before)) if before else None
    return prefix, names


@cache
def _environment() -> JSONPathEnvironment:
    from jsonpath import JSONPathEnvironment  # noqa: PLC0415

    environment = JSONPathEnvironment(strict=True, filter_caching=False)
    for name in _LEFT_OUT:
        environment.function_extensions.pop(name, None)
    return environment


def _with_brackets(text: str) -> str:
    """`$.a.0` as the RFC writes it: `$.a[0,'0']`."""
    depth = 0

    def said(match: re.Match[str]) -> str:
        nonlocal depth
        _, bracket, number = match.groups()
        if bracket:
            depth += 1 if bracket == "[" else -1
        return f"[{int(number)},'{number}']" if number and not depth else match.group()

    return _STEP.sub(said, text)


def _check_cost(text: str, compiled: JSONPath) -> None:
    """Refuse what could take longer than some walks through the object."""
    from jsonpath.segments import JSONPathRecursiveDescentSegment  # noqa: PLC0415

    descents = sum(isinstance(it, JSONPathRecursiveDescentSegment) for it in compiled.segments)
    if descents > DESCENTS_MAX:
        raise _fault(text, f"has {descents} times ..", f"at most {DESCENTS_MAX} may be")
    for query in _queries(compiled):
        deep = any(isinstance(it, JSONPathRecursiveDescentSegment) for it in query.path.segments)
        if deep or type(query).__name__ == "RootFilterQuery":
            remedy = "a filter looks at what it tests, as in [?@.name == 'web']"
            raise _fault(text, "has a filter that looks at all of the object", remedy)


def _queries(path: JSONPath) -> Iterator[Any]:
    """The queries inside the filters of a path, and inside theirs."""
    from jsonpath.filter import BaseExpression, FilterQuery  # noqa: PLC0415
    from jsonpath.selectors import Filter  # noqa: PLC0415

    waiting: list[BaseExpression] = [
        selector.expression
        for segment in path.segments
        for selector in segment.selectors
        if isinstance(selector, Filter)
    ]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, FilterQuery):
            yield expression
            yield from _queries(expression.path)
        else:
            waiting.extend(expression.children())
