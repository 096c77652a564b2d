"""What of an object's health depends on its cluster: by what there is, and how long it waited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from relay.objects.awaited import (
    DEFAULT_INGRESS_CLASS,
    Awaited,
    default_class,
    has_address,
    ingress_class,
    late_classes,
    says_it_waits,
    service_class,
)
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Object, Space
from relay.syncer.observed import ObservedState
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.values.wire import replace

ADDRESS_GRACE_SECONDS = 60.0
OPERATOR_GRACE_SECONDS = 60.0
METRICS_GRACE_SECONDS = 300.0
LOOK_SECONDS = 2.0
"""Between two looks at what is waited for; of the cluster itself, FACTS_SECONDS."""
FACTS_SECONDS = 20.0
_STORAGE = ("storage.k8s.io", "storageclasses")
_INGRESSES = ("networking.k8s.io", "ingresses")
_INGRESS_CLASSES = ("networking.k8s.io", "ingressclasses")
_SERVICES, _EVENTS = ("", "services"), ("", "events")
_API_SERVICES = ("apiregistration.k8s.io", "apiservices")
_AT_WORK = "its operator has said nothing of it yet"


@dataclass(slots=True)
class _Waiting:
    """An object that waits, as it was seen, and as it was judged last."""

    sight: ObservedState
    judged: ObservedState
    # The monotonic second at which it was first seen to wait.
    since: float


class Surroundings:
    """Judges objects by their cluster, again whenever that or the time makes a difference."""

    def __init__(
        self,
        space: Space,
        clock: Clock,
        has_status: Callable[[ObjectKey], bool],
        judged: Callable[[ObjectKey, ObservedState], Awaitable[None]],
    ) -> None:
        self._space = space
        self._clock = clock
        self._has_status = has_status
        self._judged = judged
        self._waiting: dict[ObjectKey, _Waiting] = {}
        # What the cluster has, as far as it was asked, and when.
        self._known: dict[tuple[str, str, str], bool] = {}
        self._asked: dict[tuple[str, str, str], float] = {}
        self._begun = asyncio.Event()

    def judge(self, key: ObjectKey, sight: ObservedState) -> ObservedState:
        """The same, with its health as the cluster lets it be."""
        awaits = sight.awaits
        if awaits is None or sight.ending or not self._concerns(key, awaits):
            self._waiting.pop(key, None)
            return sight
        held = self._waiting.get(key)
        since = held.since if held is not None else self._clock.now().seconds
        judged = self._verdict(key, sight, awaits, since)
        self._waiting[key] = _Waiting(sight, judged, since)
        self._begun.set()
        return judged

    def forget(self, key: ObjectKey) -> None:
        """The object is gone, or not looked after any more."""
        self._waiting.pop(key, None)

    async def run(self) -> None:
        """Judge again those that wait, as time goes by and their cluster changes."""
        while True:
            self._begun.clear()
            if not self._waiting:
                await self._begun.wait()
            for key in list(self._waiting):
                await self._look(key)
            await self._clock.sleep(LOOK_SECONDS)

    def _concerns(self, key: ObjectKey, awaits: Awaited) -> bool:
        if awaits.what != "operator":
            return True
        return key.group_resource not in _BUILT_IN and self._has_status(key)

    async def _look(self, key: ObjectKey) -> None:
        held = self._waiting.get(key)
        if held is None or held.sight.awaits is None:
            return
        awaits = held.sight.awaits
        if awaits.what != "operator":
            await self._ask(key, awaits, held.sight.uid)
        if self._waiting.get(key) is not held:
            # It was seen anew meanwhile.
            return
        judged = self._verdict(key, held.sight, awaits, held.since)
        if judged != held.judged:
            held.judged = judged
            await self._judged(key, judged)

    def _verdict(
        self, key: ObjectKey, sight: ObservedState, awaits: Awaited, since: float
    ) -> ObservedState:
        now = self._clock.now()
        age = now.seconds - since
        if awaits.since_ms:
            age = max(age, (now.wall_ms - awaits.since_ms) / 1000)
        known = self._known.get(_about(key, awaits))
        match awaits.what:
            case "consumer" if known:
                return _well(sight)
            case "address" if known is False and age >= ADDRESS_GRACE_SECONDS:
                return _well(sight)
            case "metrics" if known is False:
                return _well(sight)
            case "metrics" if age < METRICS_GRACE_SECONDS:
                return replace(sight, health="progressing")
            case "operator" if age < OPERATOR_GRACE_SECONDS:
                return replace(sight, health="progressing", reason=_AT_WORK)
            case _:
                return sight

    async def _ask(self, key: ObjectKey, awaits: Awaited, uid: str) -> None:
        """Learn of the cluster what the object waits for, unless that was asked lately."""
        about, now = _about(key, awaits), self._clock.now().seconds
        if now - self._asked.get(about, -FACTS_SECONDS) < FACTS_SECONDS:
            return
        self._asked[about] = now
        match awaits.what:
            case "consumer":
                self._known[about] = await self._waits_for_pod(key, awaits, uid)
            case "address":
                self._known[about] = await self._is_given(key, awaits)
            case _:
                self._known[about] = await self._is_measured(awaits)

    async def _waits_for_pod(self, key: ObjectKey, awaits: Awaited, uid: str) -> bool:
        classes = await self._listed(_STORAGE)
        if classes is not None:
            return awaits.of in late_classes(classes)
        events = await self._listed(_EVENTS, key.namespace)
        return any(says_it_waits(event, uid) for event in events or ())

    async def _is_given(self, key: ObjectKey, awaits: Awaited) -> bool:
        """Whether some object of the class has an address; who gave it will give this one one."""
        kind, class_of = (
            (_INGRESSES, ingress_class)
            if key.group_resource == _INGRESSES
            else (_SERVICES, service_class)
        )
        others = await self._listed(kind)
        if others is None:
            others = await self._listed(kind, key.namespace)
        alike = {awaits.of}
        if kind == _INGRESSES:
            classes = await self._listed(_INGRESS_CLASSES) or []
            by_default = f"ingress/{default_class(classes, DEFAULT_INGRESS_CLASS)}"
            alike |= {"ingress/", by_default} if awaits.of in ("ingress/", by_default) else set()
        return any(has_address(one) and class_of(one) in alike for one in others or ())

    async def _is_measured(self, awaits: Awaited) -> bool:
        services = await self._listed(_API_SERVICES)
        if services is not None:
            return any(one["spec"].get("group") == awaits.of for one in services)
        try:
            kinds = await self._space.kinds()
        except SpaceError:
            return True
        return any(kind.group == awaits.of for kind in kinds)

    async def _listed(self, kind: tuple[str, str], namespace: str = "") -> list[Object] | None:
        """All objects of a kind; None if they are not to be known."""
        try:
            return list((await self._space.list(*kind, namespace=namespace)).objects)
        except SpaceError:
            return None


def _about(key: ObjectKey, awaits: Awaited) -> tuple[str, str, str]:
    """What the cluster's answer is known again by."""
    return awaits.what, awaits.of, key.namespace


def _well(sight: ObservedState) -> ObservedState:
    return replace(sight, health="healthy", reason="")


_BUILT_IN = BUILT_IN_KINDS.group_resources
