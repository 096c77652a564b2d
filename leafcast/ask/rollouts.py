"""Rollouts as people meet them: found by name, and asked for something, once."""

from __future__ import annotations

import asyncio
import getpass
import json
from dataclasses import dataclass
from typing import Any

from leafcast.ask.asked_space import refusal_of
from leafcast.ask.session import CallFailed, Session
from relay.adapters.clock import SystemDice
from relay.space_port import Interest, Interests, Object, ObjectChange, ObjectsListed, SpaceEvent
from relay.waiting import work_group
from schemas.objects.annotations import ROLLOUT_REQUEST
from schemas.objects.objects import ObjectKey
from schemas.records.placements import EDGE_PLACEMENTS, KINDS, meant, short_title
from schemas.values.groups import DENATURED_GROUP as GROUP
from schemas.values.identity import random_id

REQUEST = "rollout-request"
"""The verb that writes on a Rollout what a person asks of it."""
HANDLED_SECONDS = 15.0
_VERB = "rollout"
_RESOURCE = "rollouts"
_MARK_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request: `Done`, `Refused` or `Ignored`, and why."""

    outcome: str
    message: str
    # Of which Rollout.
    rollout: str


async def rollout_named(session: Session, name: str) -> Object:
    """The Rollout of this name, or the one of the placement of this name; raises CallFailed.

    A placement may be said with its kind, as in `edgeplacement/shop`: then it is meant.
    """
    if "/" not in name and (obj := await session.workloads.get(_key(name))) is not None:
        return obj
    listed = await rollouts(session)
    of_placement = [it for it in listed if meant(name, [placement_of(it)]) == placement_of(it)]
    if of_placement:
        return min(of_placement, key=_age)
    known = ", ".join(sorted(str(it["metadata"]["name"]) for it in listed))
    remedy = f"there are: {known}" if known else "apply one: leafcast apply -f FILE"
    known_as = short_title(name.removeprefix(EDGE_PLACEMENTS.said("")))
    what = (
        f"no Rollout steers {known_as}" if "/" in name else f'rollouts.{GROUP} "{name}" not found'
    )
    raise CallFailed(_VERB, "NotFound", what, remedy)


async def rollouts(session: Session) -> list[Object]:
    """All Rollouts, by name."""
    listing = await session.workloads.list(GROUP, _RESOURCE)
    return sorted(listing.objects, key=lambda it: str(it["metadata"]["name"]))


def placement_of(rollout: Object) -> str:
    """The placement that a Rollout steers, as `schemas.records.placements` has it."""
    said = rollout["spec"]["placement"]
    kind = said.get("kind") or EDGE_PLACEMENTS.kind
    named = (it.named(str(said["name"])) for it in KINDS if it.kind == kind)
    return next(named, str(said["name"]))


def _age(rollout: Object) -> tuple[str, str]:
    """What to sort by: the older of two counts."""
    metadata = rollout["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])


async def ask_of(session: Session, name: str, action: str, **arguments: Any) -> RequestOutcome:
    """Have a request written on the Rollout, and wait until it is handled; raises CallFailed."""
    obj = await rollout_named(session, name)
    metadata = obj["metadata"]
    number = random_id(SystemDice().entropy(16))
    said = {"id": number, "action": action, "user": _user(), **arguments}
    key = _key(str(metadata["name"]))
    handled: asyncio.Future[RequestOutcome] = asyncio.get_running_loop().create_future()

    async def tell(event: SpaceEvent) -> None:
        now = event.objects.get(key) if isinstance(event, ObjectsListed) else None
        if isinstance(event, ObjectChange) and event.key == key:
            if event.kind == "deleted" and not handled.done():
                handled.set_exception(CallFailed(_VERB, "Gone", f"{_title(obj)} is gone", ""))
            now = event.object
        if (found := _outcome(now, number)) is not None and not handled.done():
            handled.set_result(found)

    interests = Interests([Interest(GROUP, _RESOURCE)])
    try:
        async with asyncio.timeout(HANDLED_SECONDS), work_group() as group:
            following = group.create_task(session.workloads.follow(interests, tell))
            answer = await session.call(REQUEST, rollout=key.name, request=said)
            if "refused" in answer:
                raise refusal_of(answer["refused"])
            await handled
            following.cancel()
    except TimeoutError as error:
        message = f"{_title(obj)}: the centre did not handle the request yet"
        remedy = f"it stays asked for; see: leafcast rollout status {metadata['name']}"
        raise CallFailed(_VERB, "Timeout", message, remedy) from error
    return handled.result()


def is_asked_for(rollout: Object) -> bool:
    """Whether a request waits on it that is not handled yet."""
    text = (rollout["metadata"].get("annotations") or {}).get(ROLLOUT_REQUEST)
    if not text:
        return False
    try:
        number = str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError):
        # Nobody can do what it says.
        return False
    # One that cannot be done is told of by its first letters.
    return all(_outcome(rollout, mark) is None for mark in (number, text[:_MARK_CHARACTERS]))


def _outcome(obj: Object | None, number: str) -> RequestOutcome | None:
    request = ((obj or {}).get("status") or {}).get("request") or {}
    if request.get("id") != number:
        return None
    name = str((obj or {})["metadata"]["name"])
    return RequestOutcome(str(request.get("outcome", "")), str(request.get("message", "")), name)


def _user() -> str:
    """Who asks, as the machine knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _title(obj: Object) -> str:
    return f"rollout/{obj['metadata']['name']}"


def _key(name: str) -> ObjectKey:
    return ObjectKey(GROUP, _RESOURCE, "", name)
