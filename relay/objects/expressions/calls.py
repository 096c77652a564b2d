"""Which functions an expression calls, and of what, told from its text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

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
