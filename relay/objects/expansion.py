"""Expressions in texts: `%(name)` of parameters, `{{ .name }}` of templates.

What a property says is put in as it is, and not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from math import inf

from schemas.records.properties import PARAMETER

EXCERPT_MAX = 60
_MARKS = re.compile(r"%|\{\{")
_TEMPLATE = re.compile(r"\{\{[ \t\r\n]*\.([^\W\d]\w*)[ \t\r\n]*\}\}")
_TEMPLATES_ONLY = "only {{ .name }} is supported, with the name of a property"
_END = "}}"


class ExpressionWrong(ValueError):
    """A text has an expression that is not one of ours; `text` begins with it."""

    def __init__(self, text: str) -> None:
        inside, end, _ = text.partition(_END)
        shown = " ".join(f"{inside}{end}".split())
        shown = shown if len(shown) <= EXCERPT_MAX else f"{shown[:EXCERPT_MAX]}…"
        # The reason stands first: of what is quoted some may be left out.
        super().__init__(f'{_TEMPLATES_ONLY}, not "{shown}"')


class ExpandsTooFar(ValueError):
    """More would come of a text than there is room for."""


class PropertyMissing(LookupError):
    """A template names a property that the destination has not."""

    def __init__(self, name: str) -> None:
        super().__init__(f'no property "{name}"')
        self.name = name


@dataclass(frozen=True, slots=True)
class Syntax:
    """Which expressions count in a text."""

    parameters: bool
    templates: bool

    def __bool__(self) -> bool:
        return self.parameters or self.templates

    def may_expand(self, text: str) -> bool:
        """Whether there may be an expression in a text."""
        return (self.parameters and "%" in text) or (self.templates and "{{" in text)

    def expand(
        self,
        text: str,
        values: Mapping[str, str],
        used: MutableMapping[str, str | None],
        room: float = inf,
    ) -> str:
        """The text with its expressions replaced; notes in `used` what each name stood for.

        That of a parameter is noted as `%name`. A parameter that is not there stays as it is
        written. Raises PropertyMissing of a template, ExpressionWrong, and as soon as more than
        `room` characters would come of it ExpandsTooFar.
        """
        parts: list[str] = []
        at = size = 0
        while found := _MARKS.search(text, at):
            parts.append(text[at : found.start()])
            size += found.start() - at
            if found[0] == "%":
                said, at = self._parameter(text, found.start(), values, used)
            else:
                said, at = self._template(text, found.start(), values, used)
            parts.append(said)
            size += len(said)
            if size > room:
                raise ExpandsTooFar
        if size + len(text) - at > room:
            raise ExpandsTooFar
        parts.append(text[at:])
        return "".join(parts)

    def check(self, text: str) -> bool:
        """Whether an expression is in a text; raises ExpressionWrong."""
        names = _Names()
        self.expand(text, names, {})
        return names.asked

    def properties_needed(self, text: str) -> frozenset[str]:
        """The properties that templates in a text cannot do without; of what is wrong none."""
        used: dict[str, str | None] = {}
        try:
            Syntax(parameters=False, templates=self.templates).expand(text, _Names(), used)
        except ExpressionWrong:
            return frozenset()
        return frozenset(used)

    def _parameter(
        self, text: str, at: int, values: Mapping[str, str], used: MutableMapping[str, str | None]
    ) -> tuple[str, int]:
        following = text[at + 1 : at + 2]
        if not self.parameters or following not in ("%", "("):
            return "%", at + 1
        if following == "%":
            return "%", at + 2
        end = text.find(")", at)
        name = text[at + 2 : end] if end >= 0 else text[at + 2 :]
        after = end + 1 if end >= 0 else len(text)
        asked = f"{PARAMETER}{name}"
        value = values.get(asked)
        # A plain mapping makes no difference between parameters and templates.
        value = used[asked] = values.get(name) if value is None else value
        return (text[at:after] if value is None else value), after

    def _template(
        self, text: str, at: int, values: Mapping[str, str], used: MutableMapping[str, str | None]
    ) -> tuple[str, int]:
        if not self.templates:
            return "{{", at + 2
        found = _TEMPLATE.match(text, at)
        if found is None:
            raise ExpressionWrong(text[at:])
        name = found[1]
        value = used[name] = values.get(name)
        if value is None:
            raise PropertyMissing(name)
        return value, found.end()


class _Names(dict[str, str]):
    """Has every property, and knows whether one was asked for."""

    asked = False

    def get(self, _name: str, _default: object = None) -> str:
        self.asked = True
        return ""
