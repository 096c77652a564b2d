"""Rollouts that are deleted, or whose content was taken back: what the centre does about both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from controllers.centre import Controllers
from controllers.core.translation.stranded import objects_text
from controllers.restoring import NotRestorable, read_restoration
from leafcast.ask.api import Api, ApiError
from leafcast.ask.asked_space import key_form, refusal_form
from leafcast.centre.centre import Centre, running, within
from leafcast.changes import restorations
from leafcast.changes.forms import RESTORE
from leafcast.changes.restorations import RestoredObject
from leafcast.changes.space_pair import SpacePair
from leafcast.daemon.tree_facts import listed
from leafcast.daemon.verbs.changes import ChangeVerbs
from schemas.objects.objects import ObjectKey
from schemas.records.placements import bare_name, kind_of, meant

SETTLED_SECONDS_MAX = 10.0

Json = dict[str, Any]
OBJECTS_MAX = 2_000
"""So many objects a command restores at a time."""
RestoredOf = Callable[[str], Awaitable[Sequence[RestoredObject]]]
"""What is to be written of a placement; raises ApiError, BusBroken."""


def register_rollout_ends(api: Api, centre: Centre) -> None:
    """Answer the verb about this tree."""

    async def release(placement: str) -> Json:
        """Let a placement follow its space again whose Rollout was deleted; what that sends.

        `{placement, released, news}`; nothing is released of one that follows it already. Raises
        ApiError if there is none, or a Rollout steers it.
        """
        controllers = running(centre.controllers)
        await settle(controllers)
        translator = controllers.translator
        placements = translator.placements
        there = translator.workloads.objects
        name = meant(placement, there)
        if name not in there:
            remedy = f"there are: {listed(there)}" if there else "there are none yet: apply one"
            what = f'there is no {kind_of(name).kind} "{bare_name(name)}"'
            raise ApiError("NotFound", what, remedy)
        if (rollout := translator.workloads.rollouts.of(name)) is not None:
            said = f'rollout "{rollout}" steers it, and lets it out by its waves'
            raise ApiError("Steered", said, f"see: leafcast rollout status {rollout}")
        stranded, rejections = placements.gone.get(name), placements.rejections
        if stranded is None and rejections.of(name) is None:
            return {"placement": name, "released": False, "news": ""}
        # What was aborted or undone goes out by a word of its own.
        rejected = rejections.objects.get(name, ())
        news = stranded.news if stranded is not None else objects_text(rejected)
        translator.release(name)
        await settle(controllers)
        return {"placement": name, "released": True, "news": news}

    api.register("release", release)


async def kept_back(controllers: Controllers, rollouts: Iterable[str]) -> list[Json]:
    """Which of these keep back what their placements want: deleted now, they would freeze them.

    Each as `{rollout, placement, phase, revision, destinations or null, news}`.
    """
    await settle(controllers)
    known = controllers.translator.workloads.rollouts
    return [_form(controllers, name) for name in rollouts if known.keeps_back(name)]


def _form(controllers: Controllers, rollout: str) -> Json:
    """What one keeps back of its placement."""
    translator = controllers.translator
    placement = translator.workloads.rollouts.specs[rollout].placement.placement
    state = translator.workloads.rollouts.state_of(placement)
    return {
        "rollout": rollout,
        "placement": placement,
        "phase": state.phase if state is not None else "Waiting",
        "revision": state.revision if state is not None else 0,
        "destinations": controllers.summarizer.lacking(placement),
        "news": translator.placements.news(placement),
    }


async def settle(controllers: Controllers) -> None:
    """Wait, for a bounded time, until the ledger says what the space holds."""
    await within(SETTLED_SECONDS_MAX, controllers.translator.caught_up())


def register_restoring(
    api: Api, restored_of: RestoredOf, spaces: SpacePair, changes: ChangeVerbs
) -> None:
    """Answer the verb about what is to be written of a placement."""

    async def restore(placement: Any) -> Json:
        """Judge what of a placement is rejected: `{batch, objects: [[key, fate]]}`.

        `fate` is restored, deleted or left; `batch` is "" if nothing is rejected. An object that
        the space would not write is told as `{key, refused}`. Raises ApiError where its former
        content cannot be read, or it is another one now.
        """
        if not isinstance(placement, str):
            raise ApiError("Invalid", f"{placement!r} names no placement", "say its name")
        async with changes.judging():
            restored = await restored_of(placement)
            refusal = await restorations.refusal_of(spaces, restored)
            if refusal is not None:
                key, error = refusal
                return {"key": key_form(key), "refused": refusal_form(error)}
            size = sum(len(str(each.object)) for each in restored)
            batch = restorations.batch_of(spaces, restored, size)
            name = changes.batches.keep(batch) if restored else ""
            objects = [[key_form(each.key), each.fate] for each in restored]
            return {"batch": name, "objects": objects}

    api.register(RESTORE, restore)


async def restored_objects(controllers: Controllers, placement: str) -> list[RestoredObject]:
    """What is to be written of a placement that rejects some; raises ApiError."""
    await settle(controllers)
    return [
        await _restored(controllers, placement, key) for key in _rejected(controllers, placement)
    ]


def _rejected(controllers: Controllers, placement: str) -> tuple[ObjectKey, ...]:
    """What of a placement is rejected; raises ApiError."""
    rejections = controllers.translator.placements.rejections
    if rejections.is_unreadable(placement):
        remedy = "change its objects; leafcast rollout retry lets out what the centre says"
        raise ApiError("Lost", "what was taken back cannot be read any more", remedy)
    if rejections.told(placement) is None:
        return ()
    return tuple(rejections.objects.get(placement, ()))[:OBJECTS_MAX]


async def _restored(controllers: Controllers, placement: str, key: ObjectKey) -> RestoredObject:
    try:
        restoration = await read_restoration(controllers, placement, key)
    except NotRestorable as error:
        raise ApiError("NotRestorable", error.message, error.remedy) from error
    return RestoredObject(key, restoration.object, restoration.uid)
