"""The base of values that are made by the thousand a second."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True):
    """Equal and hashed by its fields, as a frozen dataclass is, and made faster.

    With one field 3 times as fast, with nine 11 times.

    A class of one says `frozen=True` again, for the type checker.
    """
