"""CEL, by the package `common-expression-language`: the one importer of it.

Only its extension module is loaded, and only for the first expression: the package itself would
load its command line, 30 MB.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from relay.objects.expressions.bounds import MATCHES, Shape, TooCostly, shape_of
from relay.objects.expressions.patterns import (
    OWN_NAME,
    WRONG_KINDS,
    Matcher,
    PatternRefused,
    pattern_of,
)

VARIABLES: Mapping[str, object] = {
    "inventory": {"name": ""},
    "obj": {"apiVersion": "", "kind": "", "metadata": {"name": ""}},
    "propagation": {
        "lastReturnedUpdateTimestamp": datetime(1, 1, 1, tzinfo=UTC),
        "lastReportTime": datetime(1, 1, 1, tzinfo=UTC),
        "reachable": True,
    },
    "returned": {},
}
"""Those of a collector, each with a value of what it always has."""
_FUNCTIONS = {
    "bytes": "bytes(text)",
    "contains": "text.contains(text)",
    "double": "double(number or text)",
    "duration": "duration(text)",
    "dyn": "dyn(value)",
    "endsWith": "text.endsWith(text)",
    **{f"get{part}": f"time.get{part}()" for part in ("Date", "DayOfMonth", "DayOfWeek")},
    **{f"get{part}": f"time.get{part}()" for part in ("DayOfYear", "FullYear", "Month")},
    **{f"get{part}": f"time or duration.get{part}()" for part in ("Hours", "Minutes")},
    **{f"get{part}": f"time or duration.get{part}()" for part in ("Seconds", "Milliseconds")},
    "int": "int(number or text)",
    "matches": "text.matches(text)",
    "size": "size(text, bytes, list or map)",
    "startsWith": "text.startsWith(text)",
    "string": "string(number, text, bytes, time or duration)",
    "timestamp": "timestamp(text)",
    "type": "type(value)",
    "uint": "uint(number or text)",
}
"""How each is called, and with what."""
_LACKING = re.compile("Undefined variable or function: '(.*?)'")
_MESSAGE = re.compile("Found struct (.*?), feature")
_SHOWN_CHARACTERS = 60
TEXT_MAX_CHARACTERS = 200
_EXTENSION = "cel.cel"
TRIED_CHARACTERS_MAX = 2048
"""All calls of an expression that are tried share it: each holds those in its brackets again."""


class ExpressionRefused(ValueError):
    """An expression that is not evaluated; says why, and what to do."""


class EvaluationFailed(ValueError):
    """An expression that gives nothing for these values."""


class CompiledExpression:
    """An expression that was checked: it names only what there is."""

    def __init__(self, text: str, variables: Mapping[str, object] = VARIABLES) -> None:
        """Raise ExpressionRefused for one that is wrong or too costly.

        `variables` are what it may name, each with a value of what it always has.
        """
        try:
            self.shape: Shape = shape_of(text)
            self._program = _extension().compile(_with_own_matches(text, self.shape))
            referenced = self._program.references()
            _check_patterns(self.shape.patterns)
        except (TooCostly, PatternRefused) as error:
            raise ExpressionRefused(str(error)) from error
        except (ValueError, RuntimeError, TypeError) as error:
            raise ExpressionRefused(_parse_error(error)) from error
        unknown = sorted({*referenced["variables"]} - {*variables} - self.shape.bound)
        if unknown:
            known = ", ".join(variables)
            if unknown[0] in _FUNCTIONS:
                known = f'texts for types, as in type(value) == "{unknown[0]}"'
            raise ExpressionRefused(f'unknown variable "{unknown[0]}"; there are {known}')
        called = {name for name in referenced["functions"] if name.isidentifier()}
        if OWN_NAME not in text:
            called.discard(OWN_NAME)
        if missing := sorted(called - {*_FUNCTIONS}):
            known = ", ".join(sorted(_FUNCTIONS))
            raise ExpressionRefused(f'unknown function "{missing[0]}"; there are {known}')
        if calls := sorted(self.shape.calls):
            _check_calls(calls, variables)
        self.variables = frozenset(referenced["variables"]) & frozenset(variables)

    def value(self, values: ExpressionValues) -> Any:
        """What it gives for these values, in JSON's types; raises EvaluationFailed."""
        values.matcher.failure = ""
        try:
            found = _plain(self._program.execute(values.context))
        except KeyError as error:
            raise EvaluationFailed(f"no such key: {error.args[0]}") from error
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise EvaluationFailed(_failure(error)) from error
        if values.matcher.failure:
            raise EvaluationFailed(values.matcher.failure)
        return found


class ExpressionValues:
    """The variables of expressions; what is put once need not be converted again."""

    def __init__(self) -> None:
        self.context = _extension().Context()
        self.matcher = Matcher()
        self.context.add_function(OWN_NAME, self.matcher.matches)

    def begin(self, used: float = 0.0) -> None:
        """What comes is evaluated with a budget of its own; of it so much is `used` already."""
        self.matcher.begin(used)

    def put(self, name: str, value: object) -> None:
        self.context.add_variable(name, value)


@cache
def _extension() -> ModuleType:
    # It can be begun once in a process, whoever does it.
    if _EXTENSION in sys.modules:
        return sys.modules[_EXTENSION]
    package = importlib.util.find_spec("cel")
    if package is None:
        raise ImportError("common-expression-language is not installed")
    places: Iterable[str] = package.submodule_search_locations or ()
    spec = PathFinder.find_spec(_EXTENSION, list(places))
    if spec is None or spec.loader is None:
        raise ImportError("common-expression-language has no extension for this machine")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_EXTENSION] = module
    return module


def _parse_error(error: Exception) -> str:
    """The first line of what is wrong, and where."""
    text = str(error).partition("ERROR: <input>:")[2] or str(error)
    return f"not CEL: at {text.splitlines()[0]}"[:TEXT_MAX_CHARACTERS]


def _check_calls(calls: Iterable[str], variables: Mapping[str, object]) -> None:
    """Refuse a call that no values can make right, whatever else the expression looks at.

    The library finds a function by the kinds of what it is given, and only when it runs. So each
    call is tried with what the variables always have; one that needs more fails otherwise.
    """
    values = ExpressionValues()
    for name, value in variables.items():
        values.put(name, value)
    room = TRIED_CHARACTERS_MAX
    for call in sorted(calls, key=len):
        room -= len(call)
        if room < 0:
            # What is wrong with larger ones is told where they are evaluated.
            return
        try:
            values.begin()
            own = _with_own_matches(call, shape_of(call))
            _extension().compile(own).execute(values.context)
        except RuntimeError as error:
            shown = _short(call)
            if _MESSAGE.search(str(error)):
                raise ExpressionRefused(f"{shown} is not possible; write a map") from error
            if usage := _usage(error):
                raise ExpressionRefused(f"{shown} is not possible; there is {usage}") from error
        except (ArithmeticError, LookupError, TypeError, ValueError):
            continue
        if values.matcher.failure == WRONG_KINDS:
            raise ExpressionRefused(
                f"{_short(call)} is not possible; there is {_FUNCTIONS[MATCHES]}"
            )


def _short(call: str) -> str:
    return call if len(call) <= _SHOWN_CHARACTERS else f"{call[:_SHOWN_CHARACTERS]}…"


def _with_own_matches(text: str, shape: Shape) -> str:
    """The expression with our function in the place of the library's, which has no bounds."""
    for start in shape.matches_at:
        text = f"{text[:start]}{OWN_NAME}{text[start + len(MATCHES) :]}"
    return text


def _check_patterns(written: Iterable[str]) -> None:
    """Raises PatternRefused for one that is written out, so that no object has to show it."""
    for literal in written:
        pattern = _extension().compile(literal).execute(_extension().Context())
        if isinstance(pattern, str):
            pattern_of(pattern)


def _usage(error: Exception) -> str:
    """How the function is called that the library has not found."""
    lacking = _LACKING.search(str(error))
    return _FUNCTIONS.get(lacking[1], "") if lacking else ""


def _failure(error: Exception) -> str:
    """What went wrong, in one sentence."""
    if usage := _usage(error):
        return f"a function was given what it does not take; there is {usage}"
    return " ".join(str(error).split()).partition(". ")[0][:TEXT_MAX_CHARACTERS]


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():.9f}".rstrip("0").rstrip(".") + "s"
        case list():
            return [_plain(item) for item in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _plain(item) for key, item in value.items()}
        case dict():
            raise EvaluationFailed("a map whose keys are not strings; make strings of them")
        case _:
            raise EvaluationFailed(f"a {type(value).__name__} has no form; make a string of it")
