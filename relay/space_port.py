"""What holds Kubernetes objects, as a protocol whose names tell the guarantee, and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from schemas.objects.objects import ObjectKey, texts_of
from schemas.objects.selectors import LabelSelector
from schemas.values.value import Value

Object = dict[str, Any]
"""A Kubernetes API object, as a mapping of JSON values."""
Labels = Mapping[str, str | None]
"""Labels to set, and those to take off, which are None."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects of a space, and its revision then."""

    objects: tuple[Object, ...]
    revision: str


@dataclass(frozen=True, slots=True)
class AsRead:
    """An object as it was read, to which a write of it is held; both "" where there was none."""

    uid: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object as a space serves it; `version` is the one that it prefers."""

    group: str
    version: str
    resource: str
    kind: str
    namespaced: bool
    # All that it serves.
    versions: tuple[str, ...] = ()
    # What it lets one do, as in Kubernetes' discovery.
    verbs: frozenset[str] = frozenset()
    # Whether somebody is to write the status of its objects.
    has_status: bool = False

    @property
    def group_resource(self) -> tuple[str, str]:
        """Its kind, whatever the version."""
        return self.group, self.resource


@dataclass(frozen=True, slots=True)
class Interest:
    """What to follow of one kind: all, a namespace, a name, or what a label selector takes."""

    group: str
    resource: str
    selector: LabelSelector | None = None
    # Objects may come as PartialObjectMetadata; a space may send them whole.
    metadata_only: bool = False
    namespace: str = ""
    # Only the object of this name.
    name: str = ""

    @property
    def group_resource(self) -> tuple[str, str]:
        """Its kind, whatever the version."""
        return self.group, self.resource

    def is_of(self, key: ObjectKey) -> bool:
        """Whether it is of the object's kind and place, whatever its labels are."""
        place = self.namespace in ("", key.namespace) and self.name in ("", key.name)
        return place and self.group_resource == key.group_resource

    def takes(self, key: ObjectKey, obj: Object) -> bool:
        """Whether an object is of interest."""
        matches = self.selector is None or self.selector.matches(texts_of(obj, "labels"))
        return self.is_of(key) and matches


class Interests:
    """What one follower of a space wants to hear of; it may change meanwhile. None: everything."""

    def __init__(self, wanted: Iterable[Interest] | None = ()) -> None:
        self.wanted = None if wanted is None else frozenset(wanted)
        self._moved = asyncio.Event()

    def set(self, wanted: Iterable[Interest]) -> None:
        """Want these from now on."""
        fresh = frozenset(wanted)
        if fresh != self.wanted:
            self.wanted = fresh
            self._moved.set()

    async def changed(self, known: frozenset[Interest] | None) -> frozenset[Interest] | None:
        """Wait until what is wanted is another than what is known. One waiter."""
        while self.wanted == known:
            self._moved.clear()
            await self._moved.wait()
        return self.wanted


@dataclass(frozen=True, slots=True)
class KindsServed:
    """All kinds that the space serves now."""

    kinds: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class ObjectsListed:
    """All objects of an interest (None: of the space), instead of what was told of it before."""

    interest: Interest | None
    objects: Mapping[ObjectKey, Object]
    revision: str = ""


class ObjectChange(Value, frozen=True):
    """One change of an object: for `deleted`, `object` is its last state as far as known.

    An object that a selector takes no more counts as deleted for its interest; so may one of which
    its interest was never told.
    """

    kind: Literal["added", "modified", "deleted"]
    key: ObjectKey
    object: Object
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Unserved:
    """An interest of which nothing can be told now; this says nothing about its objects."""

    interest: Interest
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ServerUnanswered:
    """Nobody answers, and why; "" once somebody does again. It says nothing about any object."""

    why: str


@dataclass(frozen=True, slots=True)
class Synced:
    """Each interest of these was told as Listed, or as Unserved; said again when they change."""

    wanted: frozenset[Interest] | None


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All that had happened at this revision was told, and that is all there is to say."""

    revision: str


@dataclass(frozen=True, slots=True)
class Absence:
    """Why objects are not there, as far as a space can tell."""

    # Somebody deleted these.
    deleted: frozenset[ObjectKey] = frozenset()
    # These are there: a list did not ask for them.
    present: frozenset[ObjectKey] = frozenset()
    # Nobody did: what was stored of these is damaged or lost.
    lost: frozenset[ObjectKey] = frozenset()
    # The number of the newest revision that can be read.
    read_to: int = 0
    # That at which what was damaged was left out, of late; 0 if nothing was.
    mended_at: int = 0


SpaceEvent = (
    KindsServed | ObjectsListed | ObjectChange | Unserved | ServerUnanswered | Synced | Bookmark
)
Tell = Callable[[SpaceEvent], Awaitable[None]]


class Space(Protocol):
    """What holds Kubernetes objects: a cluster, a kcp workspace, or the embedded space."""

    async def identity(self) -> str:
        """The id that this space keeps for its life; another space never has it."""
        ...

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        """All kinds served now; `complete` raises SpaceError while a group cannot be told."""
        ...

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """Tell of the space until cancelled: what is served, what there is, then each change.

        First Served, then each interest as Listed or Unserved, then Synced; after that changes as
        they happen, in the order of each object. What breaks is resumed, or listed again, here;
        an outage is waited out, with growing pauses. Raises AnotherSpace.
        """
        ...

    async def revision(self) -> str:
        """A mark of now, compared by `number_of`: a follower told of it was told all before it."""
        ...

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        """All objects of a resource (of the whole space if `resource` is empty)."""
        ...

    async def get(self, key: ObjectKey) -> Object | None: ...

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        """Make the object hold what `obj` says, as this manager's wish.

        Fields the manager said earlier and no longer says are removed, others' fields are kept,
        status is not touched. With `metadata.resourceVersion` or `uid` set, raises Conflict unless
        it is the present one. No write, and the same resourceVersion, if nothing differs. Without
        `force`, raises FieldConflict if others said fields that it would change. With `dry_run`
        nothing is written: the resourceVersion stays the held one's, and is missing from an object
        that is new. Raises SpaceError if the space refuses.
        """
        ...

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        """Replace the object's status, and nothing else; raises SpaceError (NotFound)."""
        ...

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        """Let these managers own no field of the object, and leave all of it as it is.

        Only the labels and annotations called as in `marks` go. Raises Conflict if it is another
        object than that of the uid, SpaceError (NotFound) if there is none.
        """
        ...

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        """Set these labels of the object, whoever said them, and take off those that are None.

        Nothing else changes; a label that is taken off is nobody's any more. Raises SpaceError
        (NotFound), and what the space refuses.
        """
        ...

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        """Make the object just what `obj` says, whoever said it before; its status stays.

        It is held to the `metadata.resourceVersion` that `obj` names: raises Conflict if it is
        another one now. What fields are left stay their managers'. With `dry_run` nothing is
        written. Raises SpaceError (NotFound), and what the space refuses.
        """
        ...

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        """Delete it; False if there is none. Raises Conflict if the uid is another."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class FinalizingSpace(Space, Protocol):
    """A space in which an object with finalizers stays, terminating, until they are taken off."""

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None:
        """Take a finalizer off the object of this uid, whoever set it; raises SpaceError."""
        ...


@runtime_checkable
class RecordingSpace(Space, Protocol):
    """A space that keeps a record of what was deleted, for a while."""

    async def absence(self, keys: Collection[ObjectKey]) -> Absence:
        """Why these objects are not there, as far as it can tell; raises SpaceError."""
        ...
