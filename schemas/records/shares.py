"""Numbers of destinations, or shares of them, as people write them: 25, or 2.5%."""

from __future__ import annotations

import re
from decimal import Decimal

from schemas.values.faults import Fault, Faulty

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%")


def checked_share(text: str) -> str:
    """The text, if it is a share such as 2.5%; raises Faulty."""
    found = _PERCENT.fullmatch(text)
    if found is None or Decimal(found[1]) > 100:
        raise Faulty(Fault("", f'"{text}" is not a share', "write 0% to 100%, such as 95%"))
    return text


def checked_amount(form: object) -> int | str:
    """A number that is not negative, or a share; raises Faulty."""
    if isinstance(form, str) and form.endswith("%"):
        return checked_share(form)
    if isinstance(form, bool) or not isinstance(form, int) or form < 0:
        raise Faulty(Fault("", "not a number or a share", "write one such as 25, or 25%"))
    return form


def share_of(text: str) -> Decimal:
    """A share that was checked, such as `2.5%`, as a part of 1."""
    return Decimal(text.removesuffix("%")) / 100


def at_most(amount: int | str, whole: int) -> int:
    """How many of a whole a checked amount is; a share is rounded down."""
    return int(share_of(amount) * whole) if isinstance(amount, str) else amount
