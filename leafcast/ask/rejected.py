"""What of a placement was aborted or undone, and its former content written back at the centre."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from leafcast.ask.rollouts import MANAGER
from leafcast.ask.session import USER_MANAGER, CallFailed, Session
from relay.space_errors import Conflict, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.values.wording import namespace_first

COUNTED_SECONDS, LOOK_SECONDS = 5.0, 0.1

_LEFT = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    }
)
"""What is not deleted though a revision added it: with it goes what nobody asked about."""

Form = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Write:
    """What is to be written of one object; None is to delete it."""

    key: ObjectKey
    object: Mapping[str, Any] | None
    uid: str

    @property
    def title(self) -> str:
        return namespace_first(str(self.key))

    @property
    def is_left(self) -> bool:
        """Whether it is to be deleted, and is of a kind with which more would go."""
        return self.object is None and self.key.group_resource in _LEFT


async def rejected_of(session: Session, rollout: ObjectKey) -> Form | None:
    """What a Rollout says is rejected, once it was counted; None if nothing is."""
    until = session.clock.now().seconds + COUNTED_SECONDS
    while True:
        obj = await session.workloads.get(rollout)
        said = ((obj or {}).get("status") or {}).get("rejected")
        if said is None or "objects" in said or session.clock.now().seconds > until:
            return said
        await session.clock.sleep(LOOK_SECONDS)


async def restore(session: Session, placement: str, done: Callable[[str], None]) -> int:
    """Write the former contents of what is rejected at the centre; how many objects.

    All are judged before the first is written. Raises CallFailed, which says what was done.
    """
    found = await session.call("rejected", placement=placement)
    writes = [await _write(session, placement, key) for key in found.get("keys", ())]
    for write in writes:
        await _put(session, write, dry_run=True)
    for number, write in enumerate(writes):
        if write.is_left:
            done(f"{write.title} was added, and is left: delete it yourself if nobody needs it")
            continue
        try:
            await _put(session, write, dry_run=False)
        except CallFailed as failed:
            said = f"{failed.message}; {number} of {len(writes)} objects are restored"
            raise CallFailed("rollout", failed.code, said, failed.remedy) from failed
        done(f"{write.title} {'deleted' if write.object is None else 'restored'}")
    return len(writes)


async def _write(session: Session, placement: str, key: list[str]) -> _Write:
    answer = await session.call("rejected-restore", placement=placement, key=key)
    return _Write(ObjectKey(*key), answer["object"], answer["uid"])


async def _put(session: Session, write: _Write, *, dry_run: bool) -> None:
    """Write one object, unless somebody changed it meanwhile; raises CallFailed."""
    try:
        if write.object is None:
            if not dry_run:
                await session.workloads.delete(write.key, write.uid)
            return
        await _written(session, dict(write.object), dry_run=dry_run)
    except Conflict as error:
        said = f"{write.title}: somebody changed it meanwhile"
        raise CallFailed("rollout", "Conflict", said, "look at it, and try again") from error
    except SpaceError as error:
        said = f"{write.title}: {session.why(error)}"
        raise CallFailed("rollout", error.reason, said, "") from error


async def _written(session: Session, obj: dict[str, Any], *, dry_run: bool) -> None:
    """Write an object as a whole: of what there is that very version, whoever said its fields."""
    if obj["metadata"].get("resourceVersion"):
        await session.workloads.replace(obj, MANAGER, dry_run=dry_run)
    else:
        await session.workloads.apply(obj, USER_MANAGER, dry_run=dry_run)
