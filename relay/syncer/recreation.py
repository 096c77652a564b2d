"""Whether an object that cannot be changed is replaced by a new one, and why not.

Somebody has to ask for it: the object by its annotation, or whoever deleted the source's object and
created it anew. Nothing is deleted before the server would take the new one.
"""

from __future__ import annotations

from relay.objects.allocation_refusals import without_title
from relay.objects.policies import Policies, may_be_recreated, on_removal
from relay.space_errors import SpaceError
from relay.space_port import Object, Space
from relay.syncer.object_marks import (
    DENIED,
    INVALID,
    MANAGER,
    is_unchangeable,
    of_this,
    speaks_of_change,
)
from schemas.objects.annotations import DELETE, ON_IMMUTABLE, ON_REMOVAL
from schemas.objects.source_objects import SourceObject
from schemas.reports.reports import Done

# What a trial does not tell: a webhook takes part in none, or what the old object has is asked for.
_UNTOLD = ("dry run", "dry-run", "dryRun", "already allocated")
_NEVER = "; never recreated: undo the change, or delete it there"
_KEPT = f"; its {ON_REMOVAL} keeps it, so it is not replaced: undo the change, or delete it there"
_THERE_BEFORE = "; it was there before, so it is not replaced"
_REMEDY = (
    f"; delete it at the centre and create it anew, or annotate it with {ON_IMMUTABLE}: recreate"
)
_OLDER = "; the centre's object is older than the one it was made from"


async def check_replacement(
    space: Space,
    wish: Object,
    policies: Policies,
    done: Done,
    source: SourceObject | None,
    refused: SpaceError,
) -> None:
    """Return if the object of this record is to be replaced by what is wished.

    Raises what it was refused for, with the reason why it is not replaced and what to do.
    """
    told = is_unchangeable(refused.reason, refused.message)
    if not told and not _may_be_told_by_trial(refused):
        raise refused
    if said := _reason_against(policies, done, source):
        raise _adding(refused, said) if told else refused
    trial = await _trial(space, wish)
    if trial is None or (told and any(words in trial.message for words in _UNTOLD)):
        return
    if not told:
        raise refused
    raise _adding(
        refused, f"; not replaced, as a new one is refused, too: {without_title(trial.message)}"
    )


def source_after(done: Done, source: SourceObject | None) -> SourceObject | None:
    """The object of the source that one was made from which this content was applied to now."""
    known = done.made_from
    if known is None or (source is not None and source.space != known.space):
        return source
    return known


def _may_be_told_by_trial(refused: SpaceError) -> bool:
    """Whether that is refused which a new object would be allowed.

    Who denies each change, for a time, allows new objects, too: that is not to be passed by.
    """
    if DENIED in refused.message:
        return speaks_of_change(refused.message)
    return refused.reason == INVALID


def _reason_against(policies: Policies, done: Done, source: SourceObject | None) -> str:
    """What keeps the object from being replaced, and what to do; "" if nothing does."""
    if not may_be_recreated(done.key):
        return _NEVER
    if not policies.recreate and not _is_made_anew(done, source):
        return _OLDER + _REMEDY if _is_made_anew_before(done, source) else _REMEDY
    if not done.made or not done.uid:
        return _THERE_BEFORE
    if on_removal(done.key, done.on_removal, done.asked) != DELETE:
        return _KEPT
    return ""


def _is_made_anew(done: Done, source: SourceObject | None) -> bool:
    known = done.made_from
    return source is not None and known is not None and source.succeeds(known)


def _is_made_anew_before(done: Done, source: SourceObject | None) -> bool:
    known = done.made_from
    return source is not None and known is not None and known.succeeds(source)


async def _trial(space: Space, wish: Object) -> SpaceError | None:
    """Why the server would not take the object as a new one; None if it would."""
    try:
        await space.apply(of_this(wish, ""), MANAGER, create_only=True, dry_run=True)
    except SpaceError as error:
        return error
    return None


def _adding(refused: SpaceError, said: str) -> SpaceError:
    return SpaceError(refused.reason, f"{without_title(refused.message)}{said}")
