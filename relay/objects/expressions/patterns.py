"""The function `matches` of expressions, by RE2 with bounds: the one importer of it.

CEL's own `matches` compiles a pattern at each evaluation, up to 10 MB: a second for 40 characters.
Here a pattern is compiled once, small or not at all, and a match takes a number of steps that is
known before: so many as the text has characters, times the size of the compiled pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

PATTERN_MAX_CHARACTERS = 512
PATTERNS_KNOWN = 256
COMPILED_MAX_BYTES = 256 * 1024
"""About 10 ms to compile."""
MATCH_STEPS_MAX = 2_000_000
"""All matches of one object and collector share it: about 50 ms at worst."""
MATCH_STEPS_OF_STEP = 20
"""So many of a match take as long as one step of an expression."""
COMPILED_STEPS = 40
"""So many steps take as long as to compile one part of a pattern."""
WRONG_KINDS = "a function was given what it does not take; there is text.matches(text)"
OWN_NAME = "re2find"
"""What `matches` is called where expressions are compiled: the library's own cannot be replaced.

It is as long, so that the places in messages are those of what was written.
"""


class PatternRefused(ValueError):
    """A pattern that is not matched; says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was compiled."""

    regex: Any
    size: int

    def steps(self, text: str) -> int:
        """How many steps it may take to look through the text."""
        return (len(text) + 1) * self.size

    def is_in(self, text: str) -> bool:
        return self.regex.search(text) is not None


def pattern_of(text: str) -> Pattern:
    """The pattern, compiled once; raises PatternRefused."""
    found = _compiled(text) if len(text) <= PATTERN_MAX_CHARACTERS else _too_long(text)
    if isinstance(found, str):
        raise PatternRefused(found)
    return found


@lru_cache(maxsize=PATTERNS_KNOWN)
def _compiled(text: str) -> Pattern | str:
    """The pattern, or why there is none: that is remembered as well."""
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    re2, options = _library()
    try:
        regex = re2.compile(text, options)
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if error.args else ""
        if "too large" in said or "repetition size" in said:
            remedy = (
                "repeat less, and name fewer characters; or write contains, startsWith, endsWith"
            )
            return f'the pattern "{shown}" is too large once it is compiled; {remedy}'
        return f'the pattern "{shown}" is none: {said}; see the syntax of RE2'
    return Pattern(regex, max(regex.programsize, 1))


_SHOWN_CHARACTERS = 60


def _too_long(text: str) -> str:
    return f"a pattern of {len(text)} characters, at most {PATTERN_MAX_CHARACTERS} are allowed"


@cache
def _library() -> tuple[Any, Any]:
    # Loaded for the first pattern only.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.max_mem = COMPILED_MAX_BYTES
    options.log_errors = False
    return re2, options


class Matcher:
    """Matches for one object and collector, within MATCH_STEPS_MAX steps.

    The library prints what is raised in a function of ours, so what is wrong is noted: who asks
    for a value looks at `failure` first.
    """

    def __init__(self) -> None:
        self.failure = ""
        self._left = self._all = MATCH_STEPS_MAX
        self._compiled = set[str]()

    @property
    def taken(self) -> int:
        """The steps since it began."""
        return min(self._all - self._left, self._all)

    def begin(self, used: float = 0.0) -> None:
        """What comes is another object's, or of another moment.

        `used` is the part of a collector's shared budget that goes to what is no match.
        """
        self.failure = ""
        self._left = self._all = int(MATCH_STEPS_MAX * max(1 - used, 0.0))
        self._compiled.clear()

    def matches(self, text: object, pattern: object = None, *_: object) -> bool:
        """Whether the pattern is found in the text; False if it cannot be told."""
        if not isinstance(text, str) or not isinstance(pattern, str):
            self.failure = WRONG_KINDS
            return False
        if self._left < 0:
            return self._is_over()
        try:
            compiled = pattern_of(pattern)
        except PatternRefused as error:
            # To find that out may have taken as long as everything else may.
            self.failure, self._left = str(error), -1
            return False
        if pattern not in self._compiled:
            self._compiled.add(pattern)
            self._left -= compiled.size * COMPILED_STEPS
        self._left -= compiled.steps(text)
        return compiled.is_in(text) if self._left >= 0 else self._is_over()

    def _is_over(self) -> bool:
        self.failure = (
            f"too costly: matches() may take more than {self._all} steps; "
            "look in shorter texts, by fewer and smaller patterns"
        )
        return False
