"""Which nats-servers are too old to be reached by strangers, by the version in their INFO."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from relay.adapters.jetstream.server_url import address

if TYPE_CHECKING:
    from nats.aio.client import Client

OLDEST = (2, 12, 6)
"""Older ones can be crashed or misused through their leaf, WebSocket and service ports."""
_NUMBERS = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-?)")


class ServerTooOld(Exception):
    """A server that must not be used; names it, its version, and what to do.

    It is not BusBroken: to try again changes nothing, so whoever runs on it ends.
    """

    def __init__(self, url: str, version: str) -> None:
        super().__init__(
            f"the nats-server at {address(url)} is {version}: strangers can crash or misuse one "
            f"older than {floor_text()}; install that or a newer one, and start the node again"
        )
        self.version = version


def server_version(client: Client) -> str:
    """What the server said of itself as it greeted, such as 2.15.1."""
    return str(client._server_info.get("version", ""))  # noqa: SLF001 - nobody else says it


def server_id(client: Client) -> str:
    """Of the server that a client is connected to, or was last; each start of one has another."""
    return str(client._server_info.get("server_id", ""))  # noqa: SLF001 - nobody else says it


def is_too_old(version: str) -> bool:
    """Whether a server of this version must not be used; of one without numbers nobody knows."""
    found = _NUMBERS.match(version)
    if found is None:
        return False
    *numbers, dash = found.groups()
    said = tuple(map(int, numbers))
    # What came before a release, such as 2.12.6-RC.1, may lack what that mends.
    return said < OLDEST or (said == OLDEST and bool(dash))


def is_unnumbered(version: str) -> bool:
    """Whether a server says a version that compares with none, as one built by hand does."""
    return bool(version) and _NUMBERS.match(version) is None


def refuse_old_server(client: Client, url: str) -> str:
    """The version of the server that a client is connected to; raises ServerTooOld."""
    version = server_version(client)
    if is_too_old(version):
        raise ServerTooOld(url, version)
    return version


def floor_text() -> str:
    """The oldest version that may be used, for people."""
    return ".".join(map(str, OLDEST))
