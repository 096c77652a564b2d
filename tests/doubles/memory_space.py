"""A space in memory: what the embedded space does without its server, for tests and simulation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection
from functools import partial

from relay.adapters.spaces.whole_follow import follow_whole, kinds_served
from relay.objects import stored_object as rules
from relay.objects.serving import Serving, needs_namespace, no_namespace
from relay.objects.stored_object import CreationTracker, StoredObject
from relay.ports import Clock, Dice
from relay.space_errors import NOT_FOUND, ResumeTooOld, SpaceError
from relay.space_port import Absence, Interests, Kind, Labels, Listing, Object, ObjectChange, Tell
from schemas.objects.objects import DEFINITIONS, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.identity import random_id
from schemas.values.value import Value

DELETIONS_KEPT_SECONDS = 3600.0


class _Entry(Value, frozen=True):
    """An object at a revision, or where it was deleted at some time."""

    stored: StoredObject
    revision: int
    deleted_at: float | None = None


class MemorySpace:
    """Implements relay.space_port.Space; it lives as long as the process."""

    def __init__(self, clock: Clock, dice: Dice, *, as_written: bool = False) -> None:
        """One that keeps what is `as_written` keeps nulls that a server would prune."""
        self._as_written = as_written
        self._clock = clock
        self._dice = dice
        self._serving = Serving()
        self._identity = random_id(dice.entropy(16))
        self._entries: dict[ObjectKey, _Entry] = {}
        self._revision = 0
        self._forgotten = 0
        self.damaged: set[ObjectKey] = set()
        self._mended_at = 0
        self._watchers: list[_Watcher] = []

    async def identity(self) -> str:
        return self._identity

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        definitions = await self.list(*DEFINITIONS)
        return kinds_served(definitions.objects)

    async def follow(self, interests: Interests, tell: Tell) -> None:
        await follow_whole(self, interests, self._clock, tell)

    async def revision(self) -> str:
        return str(self._revision)

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        found = []
        for key, entry in sorted(self._entries.items()):
            if entry.deleted_at is not None or (namespace and key.namespace != namespace):
                continue
            if resource and key.group_resource != (group, resource):
                continue
            if selector is None or selector.matches(rules.labels_of(entry.stored.object)):
                found.append(rules.at_revision(entry.stored, entry.revision))
        return Listing(tuple(found), str(self._revision))

    async def absence(self, keys: Collection[ObjectKey]) -> Absence:
        entries = {key: self._entries.get(key) for key in keys}
        deleted = {key for key, entry in entries.items() if entry and entry.deleted_at is not None}
        present = {key for key, entry in entries.items() if entry} - deleted
        lost = self.damaged.intersection(keys) - present
        found = frozenset(deleted), frozenset(present), frozenset(lost)
        return Absence(*found, self._revision, self._mended_at)

    def damage(self, key: ObjectKey) -> None:
        """Lose an object, as when the disk does; no watcher is told."""
        del self._entries[key]
        self.damaged.add(key)

    def copied(self) -> dict[ObjectKey, _Entry]:
        """All that it holds now, as a backup of its disk."""
        return dict(self._entries)

    def fall_back_to(self, copied: dict[ObjectKey, _Entry]) -> None:
        """Hold that again, and no more; no watcher is told."""
        self._entries = dict(copied)
        self._revision = max(entry.revision for entry in copied.values())

    def mended(self) -> None:
        """Take it that it was made anew of what could be read."""
        self._revision += 1
        self._mended_at = self._revision

    async def watch(self, since: str) -> AsyncGenerator[ObjectChange, None]:
        watcher = _Watcher(self._position(since))
        later = [entry for entry in self._entries.items() if entry[1].revision > watcher.position]
        for key, entry in sorted(later, key=lambda item: item[1].revision):
            watcher.note(key, entry)
        self._watchers.append(watcher)
        try:
            while True:
                yield await watcher.next()
        finally:
            self._watchers.remove(watcher)

    def present(self) -> dict[ObjectKey, Object]:
        """All that is there, as it is stored."""
        return {
            key: entry.stored.object
            for key, entry in self._entries.items()
            if entry.deleted_at is None
        }

    async def get(self, key: ObjectKey) -> Object | None:
        entry = self._present(key)
        return rules.at_revision(entry.stored, entry.revision) if entry else None

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        rules.admit(obj)
        key = self._serving.admitted(obj)
        said, obj = obj, self._serving.wished(obj)
        entry = self._present(key)
        if entry and create_only:
            return rules.at_revision(entry.stored, entry.revision)
        namespace = needs_namespace(key)
        if entry is None and namespace is not None and self._present(namespace) is None:
            raise no_namespace(key)
        changed = self._changed(key, entry, obj, manager, force=force, said=said)
        if dry_run:
            return rules.at_revision(changed, entry.revision if entry else 0)
        self._serving = self._serving.extended_by([changed.object])
        return self._keep(key, entry, changed)

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        entry = self._present(key)
        if entry is None:
            raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
        changed = rules.with_status(key, entry.stored, entry.revision, status)
        return self._keep(key, entry, changed)

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        entry = self._present(key)
        if entry is None:
            raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
        changed = rules.disowned(
            key, entry.stored, entry.revision, uid=uid, managers=managers, marks=marks
        )
        self._keep(key, entry, changed)

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        entry = self._present(key)
        if entry is None:
            raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
        changed = rules.with_labels(key, entry.stored, entry.revision, labels, manager)
        return self._keep(key, entry, changed)

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        rules.admit(obj)
        key = self._serving.admitted(obj)
        entry = self._present(key)
        if entry is None:
            raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
        wish = self._serving.wished(obj)
        whole = self._serving.made_whole
        changed = rules.replaced(key, entry.stored, entry.revision, wish, whole)
        if dry_run:
            return rules.at_revision(changed, entry.revision)
        return self._keep(key, entry, changed)

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        entry = self._present(key)
        if entry is None:
            return False
        rules.check_uid(key, entry.stored, uid)
        self._forget_old_deletions()
        self._put(key, entry.stored, self._clock.now().seconds)
        if key.group_resource == DEFINITIONS:
            self._serving = Serving().extended_by((await self.list(*DEFINITIONS)).objects)
        return True

    async def close(self) -> None:
        """Nothing to give back."""

    def _present(self, key: ObjectKey) -> _Entry | None:
        entry = self._entries.get(key)
        return entry if entry and entry.deleted_at is None else None

    def _changed(
        self,
        key: ObjectKey,
        entry: _Entry | None,
        wish: Object,
        manager: str,
        *,
        force: bool,
        said: Object,
    ) -> StoredObject:
        nulls = self._as_written and self._serving.brings(said)
        return rules.applied(
            key,
            entry.stored if entry else None,
            entry.revision if entry else 0,
            wish,
            manager,
            uid=rules.uid_from(self._dice.entropy(16)),
            now_ms=self._clock.now().wall_ms,
            force=force,
            whole=self._serving.made_whole,
            as_written=partial(self._serving.as_written, wish=said) if nulls else None,
        )

    def _keep(self, key: ObjectKey, entry: _Entry | None, changed: StoredObject) -> Object:
        if entry is None or changed is not entry.stored:
            entry = self._put(key, changed, None)
        return rules.at_revision(entry.stored, entry.revision)

    def _put(self, key: ObjectKey, stored: StoredObject, deleted_at: float | None) -> _Entry:
        self._revision += 1
        entry = self._entries[key] = _Entry(stored, self._revision, deleted_at)
        for watcher in self._watchers:
            watcher.note(key, entry)
        return entry

    def _position(self, since: str) -> int:
        position = int(since) if since.isdigit() else -1
        if not self._forgotten <= position <= self._revision:
            raise ResumeTooOld("Expired", f"changes since {since!r} are not known: list again")
        return position

    def _forget_old_deletions(self) -> None:
        horizon = self._clock.now().seconds - DELETIONS_KEPT_SECONDS
        for key, entry in list(self._entries.items()):
            if entry.deleted_at is not None and entry.deleted_at < horizon:
                del self._entries[key]
                self._forgotten = max(self._forgotten, entry.revision)


class _Watcher:
    """What one reader has still to be told: of each object only its latest state."""

    def __init__(self, position: int) -> None:
        self.position = position
        self._creations = CreationTracker(position)
        self._news: dict[ObjectKey, _Entry] = {}
        self._some = asyncio.Event()

    def note(self, key: ObjectKey, entry: _Entry) -> None:
        self._news.pop(key, None)
        self._news[key] = entry
        self._some.set()

    async def next(self) -> ObjectChange:
        while not self._news:
            self._some.clear()
            await self._some.wait()
        key = next(iter(self._news))
        entry = self._news.pop(key)
        shown = rules.at_revision(entry.stored, entry.revision)
        if entry.deleted_at is not None:
            self._creations.deleted(key)
            return ObjectChange("deleted", key, shown, str(entry.revision))
        return ObjectChange(
            self._creations.change(key, entry.stored), key, shown, str(entry.revision)
        )
