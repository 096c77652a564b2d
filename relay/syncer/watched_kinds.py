"""What a syncer follows of its space, kind by kind, and which kinds it can act on now."""

from __future__ import annotations

from collections.abc import Iterable

from relay.ports import Interest, Interests, Kind, Served, Synced, Unserved
from relay.syncer.wish import any_trees
from schemas.missing_rights import reported
from schemas.objects import ObjectKey

KindName = tuple[str, str]


class WatchedKinds:
    """The kinds that objects of ours are of: which are served, listed, or out of reach."""

    def __init__(self) -> None:
        self.interests = Interests(())
        self.begun = False
        self._lost = ""
        self._selector = any_trees()
        self._served: dict[KindName, Kind] = {}
        self._synced: set[KindName] = set()
        self._unserved: dict[KindName, str] = {}
        self._since: dict[KindName, str] = {}

    def want(self, keys: Iterable[ObjectKey]) -> None:
        """Follow the kinds of these objects, and no others."""
        kinds = {key.group_resource for key in keys}
        self.interests.set(Interest(*kind, self._selector) for kind in kinds)

    @property
    def synced(self) -> bool:
        """Whether all that is followed was told of, and is within reach."""
        kinds = {item.group_resource for item in self.interests.wanted or ()}
        return self.begun and kinds <= self._synced and not any(map(self._trouble, kinds))

    def serves(self, served: Served) -> set[KindName]:
        """Take what the space serves now; the kinds that came or changed."""
        now = {kind.group_resource: kind for kind in served.kinds}
        changed = {name for name, kind in now.items() if self._served.get(name) != kind}
        self._served = now
        return changed

    def listed(self, kind: KindName) -> bool:
        """The kind is told of; whether it was out of reach before."""
        self._since.pop(kind, None)
        return self._unserved.pop(kind, None) is not None

    def unserved(self, told: Unserved, now: str) -> KindName:
        """The kind cannot be told of now, for people."""
        kind = told.interest.group_resource
        since = self._since.setdefault(kind, now)
        self._unserved[kind] = f"{reported(told.reason, told.message)}; since {since}"
        return kind

    def unready(self) -> str:
        """What keeps the space, or a kind of it, from being told of; "" if nothing does."""
        if not self.begun:
            return "it is not read yet"
        kinds = sorted(item.group_resource for item in self.interests.wanted or ())
        return next(filter(None, map(self._trouble, kinds)), "")

    def lose(self, why: str) -> None:
        """Another space answers: nothing may be done to it, until the one that was does again."""
        self._lost = why

    def told_all(self, synced: Synced) -> set[KindName]:
        """The kinds that may be acted on from now on."""
        now = {item.group_resource for item in synced.wanted or ()}
        fresh, self._synced = now - self._synced, now
        if self._lost:
            self._lost, fresh = "", now
        self.begun = True
        return fresh

    def may_act(self, key: ObjectKey) -> bool:
        """Whether objects of this kind can be applied now; one not served is told so by trying."""
        kind = key.group_resource
        return kind in self._synced and not self.trouble(key)

    def trouble(self, key: ObjectKey) -> str:
        """What keeps a kind that is served out of reach; "" if nothing does."""
        return self._trouble(key.group_resource)

    def _trouble(self, kind: KindName) -> str:
        is_served = kind in self._served or not self._served
        return self._lost or (self._unserved.get(kind, "") if is_served else "")
