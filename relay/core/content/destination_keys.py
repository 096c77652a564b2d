"""What a destination opens with: the fleet keys of its profile, and what these lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from schemas.content.sealing import NotOpened, SealingKey, fleet_keys_for, unwrap_keys
from schemas.records.records import Profile
from schemas.values.identity import MailKey, TreeId

PrivateKeys = Callable[[], tuple[bytes, ...]]
"""The X25519 keys (32 bytes) that a node has now: of its nkey, and of the next one."""

NO_PROFILE = "no profile brought this node a key yet"
NOT_SEALED_TO = "its profile brings no key that opens here; it goes on when the next one does"


class DestinationKeys:
    """Keys come with profiles, and those that came stay: what cannot be opened takes none away."""

    def __init__(self, tree: TreeId, private_keys: PrivateKeys = tuple) -> None:
        self._tree = tree
        self._private_keys = private_keys
        self._fleet: tuple[bytes, ...] = ()
        self._profile: Profile | None = None

    def put_profile(self, profile: Profile | None) -> None:
        """Take who hangs here now."""
        self._profile = profile
        self._open_box()

    def keys(self, placement: MailKey, wrapped: bytes) -> Iterator[SealingKey]:
        """The keys that a placement's delta brings, newest first; raises NotOpened when asked."""
        if not wrapped:
            return
        if not self._fleet:
            self._open_box()
        if not self._fleet:
            raise NotOpened(NO_PROFILE if self._profile is None else NOT_SEALED_TO)
        for key in unwrap_keys(self._fleet, self._tree, placement, wrapped):
            yield SealingKey(self._tree, key)

    def _open_box(self) -> None:
        profile = self._profile
        if profile is None or not profile.fleet_key:
            return
        with suppress(NotOpened):
            found = fleet_keys_for(self._private_keys(), profile.public_key, profile.fleet_key)
            self._fleet = found or self._fleet
