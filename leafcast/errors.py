"""What a person is told of an error: the cause, not the groups of tasks around it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

from leafcast.show.sanitize import sanitize_lines

FROM_SERVER = "Error from server ("
_OF_NO_SERVER = frozenset({"InvalidKubeconfig", "NotServed", "Timeout", "Restarting"})
"""Why no server was asked, or a tree did not answer, in the command's own words."""
_OF_A_BROKEN_DISK = frozenset({errno.EIO, errno.EROFS})
DISK_REMEDY = (
    "see what the kernel says of it (dmesg), mend or replace it, and start again; "
    "what was acknowledged before is there, or in the last backup"
)


def said(error: BaseException) -> list[str]:
    """One line or more for each cause; each says what to do where the error itself does."""
    return [sanitize_lines(_text(cause)) for cause in _causes(error)]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """What really went wrong: groups of tasks wrap it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _causes(inner)
    else:
        yield error


def _text(error: BaseException) -> str:
    """Our own errors say all; others are defects, and their type is worth knowing.

    What the tree refuses is told as kubectl tells what an API server refuses.
    """
    word = getattr(error, "code", "") or getattr(error, "reason", "")
    # By name: to import them here would slow every command down that needs none of them.
    refused = any(kind.__name__ in ("CallFailed", "SpaceError") for kind in type(error).__mro__)
    if refused and word not in _OF_NO_SERVER:
        return f"{FROM_SERVER}{word}): {error}"
    ours = type(error).__module__.partition(".")[0] in (
        "schemas",
        "relay",
        "controllers",
        "leafcast",
    )
    if isinstance(error, OSError) and error.errno in _OF_A_BROKEN_DISK and error.filename:
        folder = Path(str(error.filename)).parent
        return f"the disk of {folder} fails ({error.strerror}): {DISK_REMEDY}"
    if ours or isinstance(error, OSError):
        return str(error)
    remedy = "this is a defect of Leafcast; LEAFCAST_TRACEBACK=1 shows where"
    return f"{type(error).__name__}: {error}; {remedy}"
