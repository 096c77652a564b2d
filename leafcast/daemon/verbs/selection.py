"""The verb `selection`: what placements select and lack now, and which placements carry an object.

What the space holds when the question comes is taken into account first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from controllers.centre import Controllers
from controllers.core.ledger.destination_counts import count_destinations
from controllers.core.rollout.empty_waves import empty_waves
from controllers.core.status.empty_selectors import empty_selectors
from controllers.core.translation.translate import alternatives_of
from controllers.core.workloads.unread_kinds import KINDS_LACKED
from leafcast.ask.api import Api, ApiError
from leafcast.ask.session import SELECTION_OBJECTS_MAX
from leafcast.centre.centre import Centre, running, within
from relay.ports import Clock
from schemas.objects.objects import ObjectKey
from schemas.records.properties import CLUSTER_NAME
from schemas.records.records import LocationRecord, Profile
from schemas.values.faults import told_once

SEEN_SECONDS_MAX = 5.0
KNOWN_SECONDS_MAX, LOOK_SECONDS = 0.5, 0.02
"""How long what was written just now is waited for, and how often it is looked for."""


def register_selection(api: Api, centre: Centre, clock: Clock) -> None:
    """Answer the verb `selection` about this tree."""

    async def selection(
        placements: list[str] | None = None,
        objects: list[list[str]] | None = None,
        written: list[list[str]] | None = None,
        properties: list[str] | None = None,
        rollouts: list[str] | None = None,
    ) -> dict[str, Any]:
        """`placements` has a form for each that is named and there (see `selection_form`).

        `carried` has for each object (group, resource, namespace, name) the placements that select
        it, `rejected` the Rollout, or "", by which it stays as it was. `written` are objects that
        were written just now, each with its resourceVersion: then no more than these are waited
        for, and briefly. `unsaid` are those of the `properties` that no destination has. `waves`
        has for each of the `rollouts`, and of those that steer the placements, which of its waves
        are of nobody, if any are. Raises ApiError if the centre does not know its space yet.
        """
        if len(objects or ()) > SELECTION_OBJECTS_MAX:
            remedy = f"ask for {SELECTION_OBJECTS_MAX} at a time"
            raise ApiError("TooLarge", f"{len(objects or ())} objects are asked for", remedy)
        controllers = running(centre.controllers)
        if written is None:
            await until_seen(controllers)
        else:
            known = {ObjectKey(*key): revision for *key, revision in written}
            await _until_known(controllers, known, clock)
        there = controllers.translator.workloads.objects
        resolver = controllers.translator.workloads.resolver
        return {
            "placements": [
                {
                    "name": name,
                    **selection_form(controllers, name),
                    "nowhere": _selects_nowhere(controllers, name),
                    "empty": list(_empty_selectors(controllers, name)),
                }
                for name in placements or ()
                if name in there
            ],
            "carried": [resolver.selecting(ObjectKey(*key)) for key in objects or ()],
            "rejected": [_rejecting(controllers, ObjectKey(*key)) for key in objects or ()],
            "waves": _empty_waves(controllers, placements or (), rollouts or ()),
            "unsaid": sorted(_unsaid(controllers, properties or ())),
        }

    api.register("selection", selection)


def _unsaid(controllers: Controllers, names: Iterable[str]) -> set[str]:
    """Those of these properties that no destination has; none while there is no destination."""
    left, places = set(names) - {CLUSTER_NAME}, 0
    for record in controllers.issuer.records.values() if left else ():
        if isinstance(record, Profile):
            places += 1
            left.difference_update(record.properties)
        if isinstance(record, Profile | LocationRecord):
            left.difference_update(record.annotations, record.labels)
        if not left:
            break
    return left if places else set()


def _rejecting(controllers: Controllers, key: ObjectKey) -> str:
    """The Rollout that rejects what the centre says of an object; "" if none does."""
    translator = controllers.translator
    placements, workloads = translator.placements, translator.workloads
    for name in workloads.resolver.selecting(key):
        if key in placements.rejections.objects.get(name, ()):
            return workloads.rollouts.of(name) or ""
    return ""


def _selects_nowhere(controllers: Controllers, name: str) -> bool:
    """Whether it selects no destination there is now, and does not say that it may."""
    placement = controllers.translator.workloads.placements.get(name)
    if placement is None or placement.spec.readiness.allow_empty:
        return False
    meant = alternatives_of(placement.spec)
    return not count_destinations(controllers.issuer.records.values(), meant)


def _empty_selectors(controllers: Controllers, name: str) -> tuple[str, ...]:
    """Selectors of destinations that match nobody, while others of the placement do."""
    placement = controllers.translator.workloads.placements.get(name)
    if placement is None or placement.spec.readiness.allow_empty:
        return ()
    places = controllers.translator.places
    return empty_selectors(alternatives_of(placement.spec), lambda each: places.takes_any((each,)))


def _empty_waves(
    controllers: Controllers, placements: Iterable[str], rollouts: Iterable[str]
) -> dict[str, str]:
    """Which waves of Rollouts are of nobody, by the placements as they are now."""
    workloads, places = controllers.translator.workloads, controllers.translator.places
    found = {}
    for name in sorted({*rollouts, *workloads.rollouts.steering(placements)}):
        spec = workloads.rollouts.specs.get(name)
        placement = workloads.placements.get(spec.placement.placement) if spec else None
        if spec is not None and placement is not None:
            meant = alternatives_of(placement.spec)
            found[name] = empty_waves(spec, partial(places.takes_any, meant))
    return {name: said for name, said in found.items() if said}


def selection_form(controllers: Controllers, name: str) -> dict[str, Any]:
    """How many objects a placement selects, what it lacks, what of it acts here."""
    workloads = controllers.translator.workloads
    lack, placement = workloads.lack(name), workloads.placements.get(name)
    return {
        "mayBeEmpty": placement is not None and placement.spec.readiness.allow_empty,
        "selected": workloads.resolver.count(name),
        "lack": lack.message if lack else "",
        # A server serves what a definition defines somewhat later.
        "lacksKind": lack is not None and lack.reason in KINDS_LACKED,
        "undenatured": controllers.translator.undenatured_text(name),
        "unreturned": told_once(controllers.summarizer.unreturned(name)),
    }


async def _until_known(
    controllers: Controllers, written: Mapping[ObjectKey, str], clock: Clock
) -> None:
    """Wait until these are known; raises ApiError."""
    until = clock.now().seconds + KNOWN_SECONDS_MAX
    while not controllers.translator.knows(written):
        if clock.now().seconds >= until:
            raise not_read()
        await clock.sleep(LOOK_SECONDS)


async def until_seen(controllers: Controllers) -> None:
    """Wait until the controllers have seen what the space holds now; raises ApiError."""
    if not await within(SEEN_SECONDS_MAX, controllers.translator.seen()):
        raise not_read()


def not_read() -> ApiError:
    """That the centre does not know its spaces yet."""
    return ApiError("NotReady", "the centre has not read its objects yet", "ask again in a moment")
