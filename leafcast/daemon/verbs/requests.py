"""The verbs that write what a person asks of a Rollout, or says of an edge by its SyncTarget."""

from __future__ import annotations

import json
from typing import Any

from leafcast.ask.api import ApiError, verb
from leafcast.ask.asked_space import refusal_form
from leafcast.ask.maintenance import MAINTAIN
from leafcast.ask.rollouts import REQUEST, is_asked_for
from leafcast.changes.forms import BATCH_OBJECTS_MAX
from leafcast.changes.restorations import ROLLOUT_MANAGER
from leafcast.changes.space_pair import SpacePair
from relay.ports import Clock
from relay.space_errors import Conflict, SpaceError
from relay.space_port import Object
from relay.waiting import some_at_once
from schemas.api.rollout_request import read_rollout_request
from schemas.objects.annotations import ROLLOUT_REQUEST
from schemas.objects.objects import ObjectKey
from schemas.records.maintenance import (
    MAINTENANCE,
    MAINTENANCE_REASON,
    REASON_MAX_CHARACTERS,
    SECONDS_MAX,
    Maintenance,
)
from schemas.values import names
from schemas.values.faults import Faulty
from schemas.values.groups import DENATURED_GROUP, GROUP, VERSION

MAINTENANCE_MANAGER = "leafcast-maintenance"
"""Whose the annotations are that say that a person works at a place."""
ATTEMPTS_MAX = 5
"""So often a request is written on a Rollout that others write at the same moment."""

Json = dict[str, Any]


class RequestVerbs:
    """Writes annotations on objects that are there, as of a person."""

    def __init__(self, spaces: SpacePair, clock: Clock) -> None:
        self._spaces = spaces
        self._clock = clock

    @verb(REQUEST)
    async def request(self, rollout: Any, request: Any) -> Json:
        """Ask a Rollout for something, once: `{}`, or `{refused}`; raises ApiError."""
        text = json.dumps(request)
        try:
            read_rollout_request(text)
        except Faulty as error:
            message = f"what is asked of rollout/{rollout}: {error}"
            raise ApiError("Invalid", message, "use leafcast rollout") from error
        key = ObjectKey(DENATURED_GROUP, "rollouts", "", _name(rollout))
        for attempt in range(ATTEMPTS_MAX):
            try:
                await self._request_once(key, text)
            except SpaceError as error:
                # It was changed between reading and writing: another request may be the reason.
                if not isinstance(error, Conflict) or attempt + 1 == ATTEMPTS_MAX:
                    return {"refused": refusal_form(error)}
            else:
                break
        return {}

    async def _request_once(self, key: ObjectKey, text: str) -> None:
        """Write on the very version that has no other request; raises ApiError, SpaceError."""
        obj = await self._spaces.workloads.get(key)
        if obj is None:
            raise _not_there(key, "leafcast rollout list")
        if is_asked_for(obj):
            message = f"rollout/{key.name}: an earlier request is not handled yet"
            raise ApiError("Conflict", message, "try again in a moment")
        wish = _annotated(obj["apiVersion"], obj["kind"], key.name, {ROLLOUT_REQUEST: text})
        wish["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        await self._spaces.workloads.apply(wish, ROLLOUT_MANAGER)

    @verb(MAINTAIN)
    async def maintain(self, targets: Any, until_ms: Any, reason: Any = "") -> Json:
        """Say maintenance of these SyncTargets, or 0 to end it: `{}`, or `{refused}`.

        Raises ApiError, nothing being said, if one of them is not there.
        """
        said = _maintenance(until_ms, reason, self._clock.now().wall_ms)
        texts = {MAINTENANCE: said.until, MAINTENANCE_REASON: said.reason}
        annotations = texts if said.until_ms else {}
        inventory = self._spaces.inventory

        async def read(key: ObjectKey) -> Object:
            target = await inventory.get(key)
            if target is None:
                raise _not_there(key, "leafcast node list")
            return target

        async def write(target: Object) -> None:
            name, uid = target["metadata"]["name"], target["metadata"]["uid"]
            wish = _annotated(f"{GROUP}/{VERSION}", "SyncTarget", name, annotations)
            # One that was deleted meanwhile is not made anew.
            wish["metadata"]["uid"] = uid
            await inventory.apply(wish, MAINTENANCE_MANAGER)

        keys = _sync_targets(targets)
        try:
            await some_at_once(await some_at_once(keys, read), write)
        except SpaceError as error:
            return {"refused": refusal_form(error)}
        return {}


def _annotated(version: str, kind: str, name: str, annotations: dict[str, str]) -> Object:
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _sync_targets(targets: Any) -> list[ObjectKey]:
    """Raises ApiError."""
    if not isinstance(targets, list):
        raise ApiError("Invalid", "targets: not a list", "name SyncTargets")
    if len(targets) > BATCH_OBJECTS_MAX:
        message = f"{len(targets)} SyncTargets, at most {BATCH_OBJECTS_MAX} are taken"
        raise ApiError("TooLarge", message, "name fewer at a time")
    return [ObjectKey(GROUP, "synctargets", "", _name(target)) for target in targets]


def _maintenance(until_ms: Any, reason: Any, now_ms: int) -> Maintenance:
    """Raises ApiError."""
    if type(until_ms) is not int or not 0 <= until_ms <= now_ms + SECONDS_MAX * 1000:
        remedy = f"say ms since 1970, at most {SECONDS_MAX // 86_400} days from now"
        raise ApiError("Invalid", f"the end of maintenance {until_ms!r}", remedy)
    if not isinstance(reason, str) or not reason.isprintable():
        raise ApiError("Invalid", "the reason of maintenance is no text", "say it in one line")
    if len(reason) > REASON_MAX_CHARACTERS:
        message = f"the reason of maintenance has {len(reason)} letters"
        raise ApiError("Invalid", message, f"say it in {REASON_MAX_CHARACTERS} at most")
    return Maintenance(until_ms, reason)


def _name(name: Any) -> str:
    """Raises ApiError if it can be no object's."""
    if not isinstance(name, str) or names.subdomain_fault(name):
        raise ApiError("Invalid", f"{name!r} is no name of an object", "say its metadata.name")
    return name


def _not_there(key: ObjectKey, see: str) -> ApiError:
    message = f'{key.resource}.{key.group} "{key.name}" not found'
    return ApiError("NotFound", message, f"see: {see}")
