"""What a space would not do, and why: apart from the port itself, for those who only tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

NOT_FOUND = "NotFound"
"""The reason where there is no such object, or no such kind."""
UNAVAILABLE = "ServiceUnavailable"
"""The reason where nothing can be done in the space now."""


class SpaceError(Exception):
    """A space would not do it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        # A Kubernetes-like CamelCase word.
        self.reason = reason
        self.message = message


class Conflict(SpaceError):
    """The object is not at the version, or not the one, that the caller named."""


class FieldConflict(Conflict):
    """Others own fields that the apply would change; `managers` names them by field path."""

    def __init__(self, reason: str, message: str, managers: Mapping[str, str]) -> None:
        super().__init__(reason, message)
        self.managers = managers


class AnotherSpace(SpaceError):
    """A space is not the one that was followed: what it lists says nothing of that one."""


class ResumeTooOld(SpaceError):
    """The watch cannot go on from that revision: list again."""


class reason_suppressed(AbstractContextManager[None]):  # noqa: N801 - as contextlib.suppress
    """Goes on behind it where a space would not for one of these reasons."""

    def __init__(self, *reasons: str) -> None:
        self._reasons = reasons

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, SpaceError) and error.reason in self._reasons
