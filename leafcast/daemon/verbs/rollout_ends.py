"""Rollouts that are deleted: what each keeps back, and the verb that lets its placement go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from controllers.centre import Controllers
from controllers.core.translation.stranded import objects_text
from leafcast.ask.api import Api, ApiError
from leafcast.centre.centre import Centre, running
from leafcast.daemon.tree_facts import listed
from relay.ports import BusBroken, SpaceError
from schemas.records.placements import bare_name, kind_of, meant

SETTLED_SECONDS_MAX = 10.0

Json = dict[str, Any]


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
    with suppress(TimeoutError, BusBroken, SpaceError):
        async with asyncio.timeout(SETTLED_SECONDS_MAX):
            await controllers.translator.caught_up()
