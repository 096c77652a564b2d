"""What waits for a person's word, decided by labels: removals, and what nodes have newer.

What a restored centre knows in an older form stays at the nodes as they have it. To accept it means
that the centre's form is said again, and counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from controllers.centre import Controllers
from controllers.core.inventory.chosen import Chosen, ChosenRecords
from leafcast.ask.api import ApiError, verb
from leafcast.centre.centre import Centre, running
from leafcast.daemon.verbs.approvals import settle
from leafcast.daemon.verbs.orphans import Orphans
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import meant, placement_of, title
from schemas.records.records import DeltaHead, Record
from schemas.values.faults import InvalidObject
from schemas.values.identity import MailKey
from schemas.values.refusals import BadSelector

Json = dict[str, Any]


@dataclass(slots=True)
class _Decided:
    """What a selector decided, and what it left."""

    removals: list[str] = field(default_factory=list)
    newer: dict[MailKey, str] = field(default_factory=dict)
    # Placements with destinations that are not chosen, too.
    partly: set[str] = field(default_factory=set)

    def takes(self, chosen: Chosen, what: str) -> bool:
        if chosen is Chosen.PARTLY:
            self.partly.add(what)
        return chosen is Chosen.WHOLE


class ChosenRemovals:
    """The verbs `accept-chosen` and `accept-newer`; each raises BusBroken while it starts."""

    def __init__(self, centre: Centre, orphans: Orphans) -> None:
        self._centre = centre
        self._orphans = orphans

    @verb("accept-chosen")
    async def accept(self, selector: Mapping[str, Any]) -> Json:
        """Decide what has these labels: `{removals: [title], newer: [title], partly: [title]}`.

        `newer` are those that nodes had newer, and of which the centre's form counts now. `partly`
        are placements that are for others, too: they stay as they are. A selector without
        requirements is refused, as it would let go of all. Raises ApiError.
        """
        where = _read_selector(selector)
        controllers = running(self._centre.controllers)
        await settle(controllers)
        chosen, decided = ChosenRecords(controllers.issuer.records.values(), where), _Decided()
        _accept_removals(controllers, chosen, decided)
        _accept_inventory(controllers, chosen, decided)
        await self._take_newer(controllers, chosen, decided)
        if decided.newer:
            await controllers.issuer.say_again(decided.newer)
        await settle(controllers)
        return {
            "removals": sorted(decided.removals),
            "newer": sorted(decided.newer.values()),
            "partly": sorted(decided.partly),
        }

    @verb("accept-newer")
    async def accept_newer(self, placement: str) -> Json:
        """Have the centre's form of a placement count where nodes have a newer one.

        `{newer: [title]}`; raises ApiError if none has.
        """
        controllers = running(self._centre.controllers)
        await settle(controllers)
        name = meant(placement, controllers.translator.workloads.objects)
        key = controllers.translator.source(name).key
        if key not in controllers.issuer.records or key not in await self._orphans.keys():
            remedy = "`leafcast accept` without a name lists what is held"
            raise ApiError("NotHeld", f"nothing of {title(name)} waits for a word", remedy)
        await controllers.issuer.say_again([key])
        return {"newer": [title(name)]}

    async def _take_newer(
        self, controllers: Controllers, chosen: ChosenRecords, decided: _Decided
    ) -> None:
        for key in await self._orphans.keys():
            record = controllers.issuer.records.get(key)
            if record is None:
                continue
            what = record_title(record)
            if decided.takes(chosen.judge(record, _labels(controllers, record)), what):
                decided.newer[key] = what


def _read_selector(form: Mapping[str, Any]) -> LabelSelector:
    """A selector that says something; raises ApiError."""
    remedy = "write it as in env=prod"
    try:
        selector = LabelSelector.from_kubernetes(form)
    except (BadSelector, InvalidObject, ValueError, AttributeError, TypeError) as error:
        raise ApiError("Invalid", f"the selector: {error}", remedy) from error
    if selector.is_everything:
        raise ApiError("Invalid", "the selector: it says no label, and would take all", remedy)
    return selector


def record_title(record: Record) -> str:
    """A record as commands call it."""
    if isinstance(record, DeltaHead):
        return title(placement_of(record.source) or record.source.name)
    return f"{record.source.api.rpartition('/')[2].lower()}/{record.source.name}"


def _accept_removals(controllers: Controllers, chosen: ChosenRecords, decided: _Decided) -> None:
    translator = controllers.translator
    for name in list(translator.placements.held):
        record = controllers.issuer.records.get(translator.source(name).key)
        if record is not None and decided.takes(
            chosen.judge(record, _labels(controllers, record)), title(name)
        ):
            translator.accept_removals(name)
            decided.removals.append(title(name))


def _accept_inventory(controllers: Controllers, chosen: ChosenRecords, decided: _Decided) -> None:
    mailboxes = controllers.mailboxes
    waiting = {
        key: record
        for key, record in mailboxes.registry.waiting().items()
        if chosen.judge(record) is Chosen.WHOLE
    }
    if waiting:
        mailboxes.accept_removals(waiting)
        decided.removals += map(record_title, waiting.values())


def _labels(controllers: Controllers, record: Record) -> Mapping[str, str] | None:
    """The labels of a placement's object in the first space; None if it is not there."""
    name = placement_of(record.source)
    found = controllers.translator.workloads.placements.get(name) if name else None
    return found.metadata.labels if found is not None else None
