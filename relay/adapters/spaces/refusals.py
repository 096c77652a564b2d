"""What the rules of stored objects refuse, said as a space's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from relay.objects.stored_object import CONFLICT, Contested, WriteRefused
from relay.space_errors import Conflict, FieldConflict, SpaceError


@contextmanager
def as_space_errors() -> Iterator[None]:
    """Raise SpaceError, Conflict or FieldConflict in place of Refused."""
    try:
        yield
    except Contested as contested:
        raise FieldConflict(CONFLICT, contested.message, contested.managers) from contested
    except WriteRefused as refused:
        kind = Conflict if refused.reason == CONFLICT else SpaceError
        raise kind(refused.reason, refused.message) from refused
