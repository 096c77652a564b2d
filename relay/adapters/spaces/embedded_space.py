"""The embedded space: Kubernetes objects in a JetStream key-value bucket, no cluster needed.

One entry per object, with the fields that each manager said beside it; a large one lies in parts,
and counts as written when its entry is. An object's resourceVersion is its entry's revision. Of
several changes of one object a watcher that lags sees the last. A write names the revision it is
based on, so it may be based on what was last seen: if that was outdated, it is read and done again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

from nats.aio.client import Client

from relay.adapters.spaces import bucket_values as kv
from relay.adapters.spaces.bucket import ALONE, Bucket, BucketEntry, Kept
from relay.adapters.spaces.bucket_values import Parts
from relay.adapters.spaces.read_cache import ReadCache
from relay.adapters.spaces.whole_follow import follow_whole, kinds_served
from relay.objects import stored_object as rules
from relay.objects.serving import Serving, needs_namespace, no_namespace
from relay.objects.stored_object import CreationTracker, StoredObject
from relay.ports import Clock, Dice
from relay.space_errors import NOT_FOUND, UNAVAILABLE, Conflict, ResumeTooOld, SpaceError
from relay.space_port import Absence, Interests, Kind, Labels, Listing, Object, ObjectChange, Tell
from schemas.content import blobs
from schemas.kind_check import parse_own_kind
from schemas.objects.objects import DEFINITIONS, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.faults import InvalidObject
from schemas.values.identity import random_id
from schemas.values.refusals import CodecError

ATTEMPTS_MAX = 16
RESUME_SECONDS_MAX = 3600
_IDENTITY = "identity"
_OBJECTS = "o"


@dataclass(frozen=True, slots=True)
class _Found:
    """What lies at an object's key: the object unless there is none, and the entry's place."""

    stored: StoredObject | None
    revision: int
    parts: Parts | None = None
    # Whether it was read just now; else it may be outdated.
    fresh: bool = True


class EmbeddedSpace:
    """Implements relay.space_port.Space on a bucket; the connection is the caller's to close."""

    def __init__(
        self,
        connection: Client,
        bucket: str,
        clock: Clock,
        dice: Dice,
        *,
        domain: str = "",
        kept: Kept = ALONE,
        as_written: bool = False,
    ) -> None:
        """One that keeps what is `as_written` keeps nulls that a server would prune.

        `kept` says at how many servers it lies, and how it is written there.
        """
        self._bucket = Bucket(connection, bucket, domain, kept)
        self._seen = ReadCache(lambda: connection.stats["reconnects"])
        self._clock = clock
        self._dice = dice
        self._serving = Serving()
        self._as_written = as_written
        # Its identity, once that is noted in its settings, too.
        self._noted = ""
        # The newest revision that could be read as it was opened.
        self._read_to = 0

    async def make(self) -> None:
        """Make the bucket if it is missing; raises SpaceError."""
        await self._bucket.open()

    async def open(self) -> None:
        """Make the bucket if it is missing and learn the kinds defined in it; raises SpaceError."""
        await self._bucket.open()
        # Before anybody writes, which would hide that the newest is gone.
        self._read_to = await self._bucket.last_readable()
        await self._bucket.sweep(self._clock.now().wall_ms)
        await self._learn_kinds()

    async def identity(self) -> str:
        entry = await self._bucket.read(_IDENTITY)
        if entry is None or entry.broken:
            await self._bring_identity(entry)
            entry = await self._bucket.read(_IDENTITY)
        if entry is None or entry.broken:
            said = f"the bucket {self._bucket.name} lost its identity: restore a backup"
            raise SpaceError("InternalError", said)
        identity = entry.value.decode()
        if identity != self._noted:
            await self._bucket.note(_IDENTITY, identity)
            self._noted = identity
        return identity

    async def _bring_identity(self, entry: BucketEntry | None) -> None:
        """Write the identity of a new bucket, or that which a damaged one had."""
        identity = await self._bucket.noted(_IDENTITY)
        if identity:
            # What is missing beside it was not deleted.
            await self._bucket.mark_loss()
        elif entry is None and not await self._bucket.mended_at():
            identity = random_id(self._dice.entropy(16))
        else:
            return
        revision = entry.revision if entry is not None else 0
        await self._bucket.write(_IDENTITY, blobs.compress(identity.encode()), revision)

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:  # noqa: ARG002 - the port's
        definitions = await self.list(*DEFINITIONS)
        return kinds_served(definitions.objects)

    async def follow(self, interests: Interests, tell: Tell) -> None:
        await follow_whole(self, interests, self._clock, tell)

    async def revision(self) -> str:
        return self._position(await self._bucket.last_told(f"{_OBJECTS}.>"))

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        revision = self._position(await self._bucket.last_revision())
        kinds = f"{token(group)}.{resource}" if resource else "*.*"
        found = dict[ObjectKey, Object]()
        where = token(namespace) if namespace else "*"
        async with aclosing(self._bucket.list(f"{_OBJECTS}.{kinds}.{where}.*")) as entries:
            async for entry in entries:
                key, stored = key_from(entry.key), None if entry.deleted else _decoded(entry)
                found.pop(key, None)
                if stored and (
                    selector is None or selector.matches(rules.labels_of(stored.object))
                ):
                    found[key] = rules.at_revision(stored, entry.revision)
        return Listing(tuple(found[key] for key in sorted(found)), revision)

    async def watch(self, since: str) -> AsyncGenerator[ObjectChange, None]:
        position, seen_ms = await self._resume(since)
        births = CreationTracker(position)
        while True:
            await self._check_known(position, seen_ms)
            pattern = f"{_OBJECTS}.>"
            async with aclosing(self._bucket.follow(pattern, position + 1)) as entries:
                async for entry in entries:
                    seen_ms = self._clock.now().wall_ms
                    if entry:
                        position = entry.revision
                        self._seen.outdate(entry.key, position)
                        change = _change(entry, births, f"{position}.{seen_ms}")
                        if change.kind != "deleted":
                            self._serving = self._serving.extended_by([change.object])
                        yield change

    async def get(self, key: ObjectKey) -> Object | None:
        found = await self._find(key)
        return rules.at_revision(found.stored, found.revision) if found.stored else None

    async def absence(self, keys: Collection[ObjectKey]) -> Absence:
        """What has no deletion in a bucket that lost nothing was deleted long ago."""
        deleted, present, lost = set[ObjectKey](), set[ObjectKey](), set[ObjectKey]()
        mended_at = await self._bucket.mended_at()
        for key in keys:
            path = path_of(key)
            entry = await self._bucket.read(path)
            if entry is not None and not entry.broken:
                (deleted if entry.deleted else present).add(key)
            elif entry is not None or mended_at or await self._bucket.keeps(path):
                lost.add(key)
        return Absence(
            frozenset(deleted), frozenset(present), frozenset(lost), self._read_to, mended_at
        )

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        key = await self._admitted(obj)
        said, obj = obj, self._serving.wished(obj)
        surely = create_only or dry_run or bool(obj["metadata"].get("resourceVersion"))
        for attempt in range(ATTEMPTS_MAX):
            found = await self._find(key, fresh=surely or attempt > 0)
            if found.stored and create_only:
                return rules.at_revision(found.stored, found.revision)
            if found.stored is None:
                await self._need_namespace(key)
            changed = self._changed(key, found, obj, manager, force=force, said=said)
            if dry_run:
                return self._previewed(key, found, changed)
            kept = await self._keep(key, found, changed)
            if kept is not None:
                self._serving = self._serving.extended_by([kept])
                return kept
        raise self._contended(key)

    def _previewed(self, key: ObjectKey, found: _Found, changed: StoredObject) -> Object:
        rules.check_size(key, len(rules.encode(changed)), kv.VALUE_MAX_BYTES)
        return rules.at_revision(changed, found.revision if found.stored else 0)

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        return await self._revised(key, partial(rules.with_status, status=status))

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        await self._revised(key, partial(rules.disowned, uid=uid, managers=managers, marks=marks))

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        return await self._revised(key, partial(rules.with_labels, labels=labels, manager=manager))

    async def _revised(
        self, key: ObjectKey, change: Callable[[ObjectKey, StoredObject, int], StoredObject]
    ) -> Object:
        """Change the object, made anew while others are faster; raises SpaceError."""
        for attempt in range(ATTEMPTS_MAX):
            found = await self._find(key, fresh=attempt > 0)
            if found.stored is None:
                raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
            changed = change(key, found.stored, found.revision)
            kept = await self._keep(key, found, changed)
            if kept is not None:
                return kept
        raise self._contended(key)

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:  # noqa: ARG002 - the port's
        key = await self._admitted(obj)
        found = await self._find(key, fresh=True)
        if found.stored is None:
            raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
        wish, whole = self._serving.wished(obj), self._serving.made_whole
        changed = rules.replaced(key, found.stored, found.revision, wish, whole)
        if dry_run:
            return self._previewed(key, found, changed)
        kept = await self._keep(key, found, changed)
        if kept is None:
            # Somebody was faster: it is not the version that was named.
            raise Conflict(rules.CONFLICT, f"{key}: it changed just now: read it again")
        return kept

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        for _ in range(ATTEMPTS_MAX):
            found = await self._find(key)
            if found.stored is None:
                return False
            rules.check_uid(key, found.stored, uid)
            if await self._write(key, found, rules.encode(found.stored), deleted=True):
                if key.group_resource == DEFINITIONS:
                    await self._learn_kinds_after(key)
                return True
        raise self._contended(key)

    async def close(self) -> None:
        """Nothing of its own to give back."""

    async def _find(self, key: ObjectKey, *, fresh: bool = True) -> _Found:
        path = path_of(key)
        seen = None if fresh else self._seen.at(path)
        if seen is not None:
            return _Found(rules.decode(seen.value), seen.revision, fresh=False)
        with _of(key):
            entry = await self._bucket.read(path)
        if entry is None:
            return _Found(None, 0)
        stored = None if entry.deleted or entry.broken else _decoded(entry)
        if stored and entry.parts is None:
            self._seen.keep(path, entry.value, entry.revision)
        return _Found(stored, entry.revision, entry.parts)

    def _changed(
        self,
        key: ObjectKey,
        found: _Found,
        wish: Object,
        manager: str,
        *,
        force: bool,
        said: Object,
    ) -> StoredObject:
        nulls = self._as_written and self._serving.brings(said)
        return rules.applied(
            key,
            found.stored,
            found.revision,
            wish,
            manager,
            uid=rules.uid_from(self._dice.entropy(16)),
            now_ms=self._clock.now().wall_ms,
            force=force,
            whole=self._made_whole,
            as_written=partial(self._serving.as_written, wish=said) if nulls else None,
        )

    def _made_whole(self, key: ObjectKey, said: Object) -> Object:
        """As it is kept; raises SpaceError if it is of our kinds and says what they do not have."""
        whole = self._serving.made_whole(key, said)
        try:
            parse_own_kind({field: value for field, value in whole.items() if field != "status"})
        except InvalidObject as error:
            raise SpaceError(rules.INVALID, str(error)) from error
        return whole

    async def _keep(self, key: ObjectKey, found: _Found, changed: StoredObject) -> Object | None:
        """Write what changed, if anything did; None if someone else wrote meanwhile, or may."""
        if changed is found.stored:
            return rules.at_revision(changed, found.revision) if found.fresh else None
        encoded = rules.encode(changed)
        rules.check_size(key, len(encoded), kv.VALUE_MAX_BYTES)
        revision = await self._write(key, found, encoded)
        return rules.at_revision(changed, revision) if revision else None

    async def _write(
        self, key: ObjectKey, found: _Found, encoded: bytes, *, deleted: bool = False
    ) -> int | None:
        """Replace what was found; None if someone else did meanwhile."""
        path = path_of(key)
        self._seen.forget(path)
        with _of(key):
            revision = await self._bucket.write(
                path,
                blobs.compress(encoded),
                found.revision,
                token=random_id(self._dice.entropy(16)),
                former=found.parts,
                deleted=deleted,
            )
        if revision and not deleted:
            self._seen.keep(path, encoded, revision)
        return revision

    async def _admitted(self, obj: Object) -> ObjectKey:
        """The key of an object of a kind that is served; raises SpaceError."""
        rules.admit(obj)
        try:
            return self._serving.admitted(obj)
        except SpaceError:
            # Someone else may have defined it meanwhile.
            await self._learn_kinds()
            return self._serving.admitted(obj)

    async def _need_namespace(self, key: ObjectKey) -> None:
        """What was last seen of a Namespace will do: one that goes takes this with it."""
        namespace = needs_namespace(key)
        if namespace is not None and (await self._find(namespace, fresh=False)).stored is None:
            raise no_namespace(key)

    async def _learn_kinds(self) -> None:
        definitions = await self.list(*DEFINITIONS)
        self._serving = Serving().extended_by(definitions.objects)

    async def _learn_kinds_after(self, deleted: ObjectKey) -> None:
        try:
            await self._learn_kinds()
        except SpaceError as error:
            said = f"{deleted}: it is deleted, and what is defined still could not be read"
            raise SpaceError(error.reason, said) from error

    def _position(self, revision: int) -> str:
        return f"{revision}.{self._clock.now().wall_ms}"

    async def _resume(self, since: str) -> tuple[int, int]:
        """Revision and the time it was known at; a bare resourceVersion's time is looked up."""
        revision, _, wall_ms = since.partition(".")
        if not revision.isdigit() or (wall_ms and not wall_ms.isdigit()):
            raise _too_old(since)
        if wall_ms:
            return int(revision), int(wall_ms)
        return int(revision), await self._bucket.written_at(int(revision)) or 0

    async def _check_known(self, position: int, seen_ms: int) -> None:
        """Deletions since `position` are surely kept only for a time; raises ResumeTooOld."""
        last = await self._bucket.last_revision()
        fresh = self._clock.now().wall_ms - seen_ms <= RESUME_SECONDS_MAX * 1000
        if position > last or (position < last and not fresh):
            raise _too_old(str(position))

    def _contended(self, key: ObjectKey) -> Conflict:
        said = f"{key}: changed by others at each of {ATTEMPTS_MAX} attempts: try again"
        return Conflict(rules.CONFLICT, said)


@contextmanager
def _of(key: ObjectKey) -> Iterator[None]:
    """Name the object of which a server does not say what became."""
    try:
        yield
    except SpaceError as error:
        if error.reason != UNAVAILABLE:
            raise
        raise SpaceError(error.reason, f"{key}: {error.message}") from error


def _change(entry: BucketEntry, births: CreationTracker, revision: str) -> ObjectChange:
    key, stored = key_from(entry.key), _decoded(entry)
    shown = rules.at_revision(stored, entry.revision)
    if entry.deleted:
        births.deleted(key)
        return ObjectChange("deleted", key, shown, revision)
    return ObjectChange(births.change(key, stored), key, shown, revision)


def path_of(key: ObjectKey) -> str:
    """The bucket key of an object: five tokens, whatever characters its name has."""
    parts = (key.group, key.resource, key.namespace, key.name)
    return ".".join((_OBJECTS, *map(token, parts)))


def key_from(path: str) -> ObjectKey:
    """The object that a bucket key names; the inverse of `path_of`. Raises SpaceError."""
    try:
        group, resource, namespace, name = map(_text, path.split(".")[1:])
    except (ValueError, IndexError) as error:
        raise SpaceError("InternalError", f"the key {path!r} names no object") from error
    return ObjectKey(group, resource, namespace, name)


def token(text: str) -> str:
    """One legal token: dots as slashes, other strangers as `=` and two hex digits, "" as `_`."""
    if not text:
        return "_"
    return "".join(map(_letter, text.encode()))


def _letter(byte: int) -> str:
    letter = chr(byte)
    if letter == ".":
        return "/"
    return letter if byte < 128 and (letter.isalnum() or letter == "-") else f"={byte:02x}"


def _text(encoded: str) -> str:
    if encoded == "_":
        return ""
    raw = bytearray()
    at = 0
    while at < len(encoded):
        letter = encoded[at]
        raw.append(int(encoded[at + 1 : at + 3], 16) if letter == "=" else ord(letter))
        at += 3 if letter == "=" else 1
    return raw.decode().replace("/", ".")


def _decoded(entry: BucketEntry) -> StoredObject:
    try:
        return rules.decode(entry.value)
    except CodecError as error:
        said = f"{key_from(entry.key)}: its entry is unreadable: {error}"
        raise SpaceError("InternalError", said) from error


def _too_old(since: str) -> ResumeTooOld:
    return ResumeTooOld("Expired", f"changes since {since!r} are not known: list again")
