"""Selectors of labels as people type them: `app=web,tier!=db`, `env in (a,b)`, `!old`."""

from __future__ import annotations

import re

from leafcast.cli.options.common import Parsed
from schemas.objects.selectors import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, LabelSelector, Requirement
from schemas.values.refusals import BadSelector

# A comma inside parentheses does not end a requirement.
_COMMA = re.compile(r",(?![^(]*\))")
_SET = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)\Z")
_EQUAL = re.compile(r"([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\Z")
_BARE = re.compile(r"(!?)\s*([^=!\s(),]+)\Z")


class BadLabelText(ValueError):
    """A selector that cannot be read; says which part, and how to write one."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f'label selector: "{part}": {why}')
        self.part = part


def read_label_selector(text: str) -> LabelSelector:
    """The selector said; the empty text selects everything. Raises BadLabelText."""
    parts = [part.strip() for part in _COMMA.split(text)] if text.strip() else []
    return LabelSelector(tuple(_requirement(part) for part in parts))


def read_some_label_selector(text: str) -> LabelSelector:
    """The selector said, which is for changes: one that selects everything raises BadLabelText."""
    selector = read_label_selector(text)
    if selector.is_everything:
        # Two empty variables of a script would say it.
        raise BadLabelText(text, "it says no label, and would take all; write key=value")
    return selector


def _requirement(part: str) -> Requirement:
    try:
        if found := _SET.match(part):
            key, operator, values = found.groups()
            listed = tuple(value.strip() for value in values.split(","))
            return Requirement(key, IN if operator == "in" else NOT_IN, listed)
        if found := _EQUAL.match(part):
            key, operator, value = found.groups()
            return Requirement(key, NOT_IN if operator == "!=" else IN, (value,))
        if found := _BARE.match(part):
            negated, key = found.groups()
            return Requirement(key, DOES_NOT_EXIST if negated else EXISTS)
    except BadSelector as error:
        raise BadLabelText(part, str(error)) from error
    raise BadLabelText(part, "write key=value, key!=value, key in (a,b), key or !key")


LABELS = Parsed("selector", read_label_selector)
"""Labels as `-l` takes them, where something is read."""
SOME_LABELS = Parsed("selector", read_some_label_selector)
"""Labels where something is changed: at least one is said."""
