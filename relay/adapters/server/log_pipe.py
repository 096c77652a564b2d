"""What a process says of itself, message by message, as it writes them."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

MESSAGE_BYTES_MAX = 256 * 1024
UNREAD_SECONDS = 1
"""So long who says something waits to be read: then it goes on, and that message is lost."""


class LogPipe:
    """What is given to a process as its error output, and read here.

    Each line is a message. With `whole`, where the machine has such sockets, a message is what the
    process writes at once: a line break within it begins no other one. Linux has them; elsewhere
    who is quoted could begin a line of his own.
    """

    def __init__(self, *, whole: bool) -> None:
        self._ours: socket.socket | int
        pair = _pair() if whole else None
        if pair is None:
            self._ours, self._theirs = os.pipe()
        else:
            self._ours, self._theirs = pair[0], pair[1].detach()

    @property
    def theirs(self) -> int:
        """The end that the process writes to, until it was `handed_over`."""
        return self._theirs

    @property
    def ours_too(self) -> tuple[int, ...]:
        """What else the process is to have open: nothing, or the end that is read here.

        A program in Go that says something nobody can read any more is ended by that. So a server
        would be, as soon as this program is killed: it would hand nothing over, and write nothing.
        """
        return (self._ours.fileno(),) if isinstance(self._ours, socket.socket) else ()

    def handed_over(self) -> None:
        """The process has its end."""
        os.close(self._theirs)

    def close(self) -> None:
        """Nobody reads it."""
        if isinstance(self._ours, socket.socket):
            self._ours.close()
        else:
            os.close(self._ours)

    def messages(self) -> Iterator[bytes]:
        """All that the process says, until it ends."""
        if isinstance(self._ours, socket.socket):
            with self._ours as ours:
                while message := ours.recv(MESSAGE_BYTES_MAX):
                    yield message
        else:
            with os.fdopen(self._ours, "rb") as lines:
                yield from lines


def _pair() -> tuple[socket.socket, socket.socket] | None:
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except (AttributeError, OSError):
        return None
    patience = struct.pack("ll", UNREAD_SECONDS, 0)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
    return ours, theirs
