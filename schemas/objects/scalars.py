"""Plain YAML scalars as JSON values, exactly as kubectl reads them.

kubectl reads manifests with sigs.k8s.io/yaml, whose go-yaml v2 is YAML 1.1 with exceptions, so:
- y, yes, on, true and n, no, off, false are booleans (lower, Capitalized, UPPER), quoted or not at
  all; so is a key such as `on:`, which becomes "true";
- 0x, 0b, 0o and a leading 0 (0755) are integers, `_` in a number is dropped;
- 1e3 is a number, base-60 (12:30:00) is not: it stays a string, as do dates, `=` and `1.2.3`.
Where JSON has no form (.inf, .nan, integers beyond 64 bits) the value is refused, not bent.
"""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

_FIXED: dict[str, Scalar] = {"": None, "~": None}
for _word, _value in (("null", None), ("y", True), ("yes", True), ("true", True), ("on", True)):
    _FIXED |= dict.fromkeys((_word, _word.capitalize(), _word.upper()), _value)
for _word in ("n", "no", "false", "off"):
    _FIXED |= dict.fromkeys((_word, _word.capitalize(), _word.upper()), False)

_NUMERIC_START = frozenset("+-.0123456789")
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z"
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_BASES = (16, 2, 8, 10)
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
# More digits than 64 bits have in base 2, leading zeros aside.
_DIGITS_MAX = 80


class NoJsonForm(ValueError):
    """A scalar that JSON cannot say; the message says why and what to write."""


def resolve(text: str) -> Scalar:
    """Read a plain (unquoted) scalar; raises NoJsonForm."""
    if text in _FIXED:
        return _FIXED[text]
    if text[0] not in _NUMERIC_START:
        return text
    if _NOT_FINITE.match(text):
        raise NoJsonForm(f"{text} has no JSON form; quote it if it is a string")
    # Only numbers that begin with a sign or digit may hold underscores.
    plain = text if text[0] == "." else text.replace("_", "")
    if found := _INTEGER.match(plain):
        return _integer(found, text)
    if _FLOAT.match(plain):
        value = float(plain)
        return value if math.isfinite(value) else text
    return text


def key_text(value: Scalar) -> str:
    """Say a scalar that stands as a key in the string that kubectl makes of it."""
    match value:
        case None:
            raise NoJsonForm("a null key has no JSON form; quote it")
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 2**53:
            return str(int(value))
        case _:
            return str(value)


def _integer(found: re.Match[str], text: str) -> int:
    sign, *forms = found.groups()
    digits, base = next(
        (form, base) for form, base in zip(forms, _BASES, strict=True) if form is not None
    )
    value = int(f"{sign}{digits}", base) if len(digits) <= _DIGITS_MAX else None
    if value is None or not _INT_MIN <= value <= _INT_MAX:
        raise NoJsonForm(f"{text} is an integer beyond 64 bits; quote it")
    return value
