"""The former contents of what was aborted or undone, written back at the centre."""

from __future__ import annotations

from collections.abc import Callable

from leafcast.ask.asked_space import refusal_of
from leafcast.ask.session import CallFailed, Session
from leafcast.changes.forms import JUDGE_SECONDS, RESTORE
from leafcast.cli.apply.judged_batch import JudgedBatch, kept
from relay.space_errors import Conflict, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.values.wording import namespace_first


async def restore(session: Session, placement: str, done: Callable[[str], None]) -> int:
    """Have the former contents of what is rejected written at the centre; how many objects.

    All are judged before the first is written. Raises CallFailed, which says what was done.
    """
    answer = await session.call(RESTORE, seconds=JUDGE_SECONDS, placement=placement)
    if "refused" in answer:
        raise _failure(session, ObjectKey(*answer["key"]), refusal_of(answer["refused"]))
    objects = [(ObjectKey(*key), fate) for key, fate in answer["objects"]]
    if not objects:
        return 0
    async with kept(JudgedBatch(session, answer["batch"])) as batch:
        async for number, outcome in batch.written():
            key, fate = objects[number]
            if isinstance(outcome, SpaceError):
                failed = _failure(session, key, outcome)
                text = f"{failed.message}; {number} of {len(objects)} objects are restored"
                raise CallFailed("rollout", failed.code, text, failed.remedy)
            done(f"{_title(key)} {_FATES.get(fate, fate)}")
    return len(objects)


_FATES = {"left": "was added, and is left: delete it yourself if nobody needs it"}


def _failure(session: Session, key: ObjectKey, error: SpaceError) -> CallFailed:
    if isinstance(error, Conflict):
        text = f"{_title(key)}: somebody changed it meanwhile"
        return CallFailed("rollout", "Conflict", text, "look at it, and try again")
    return CallFailed("rollout", error.reason, f"{_title(key)}: {session.why(error)}", "")


def _title(key: ObjectKey) -> str:
    return namespace_first(str(key))
