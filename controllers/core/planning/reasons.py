"""Why something becomes of an object at a destination, in words; and which fields it is about."""

from __future__ import annotations

from collections.abc import Mapping

from controllers.core.planning.copies import Copies
from controllers.core.planning.states import Delivery, PlannedState
from controllers.core.planning.verdicts import UNKNOWN, ObjectOutcome, PlanPosition, PlanSide
from relay.core.gates import Candidate, SelectedBy
from relay.objects.differences import differing_fields
from relay.objects.policies import holds_data
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import DEFINITIONS, NAMESPACES
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import kind_of
from schemas.records.records import Alternative, Profile
from schemas.values.identity import MailKey
from schemas.values.wording import namespace_first

Why = tuple[str, tuple[str, ...]]

_HOLDERS = frozenset({NAMESPACES, DEFINITIONS})


def _stays(verdict: ObjectOutcome) -> str:
    """Why a copy that is wanted no more is not deleted."""
    assert verdict.before is not None
    if verdict.before.on_removal == verdict.action:
        return f"{ON_REMOVAL}: {verdict.action}"
    return "it holds data" if holds_data(verdict.key) else "what is kept is in it"


class Reasons:
    """The reasons of one plan."""

    def __init__(self, before: PlannedState, after: PlannedState, copies: Copies) -> None:
        self._before, self._after = before, after
        self._copies = copies

    def of(self, verdict: ObjectOutcome, place: PlanPosition) -> Why:
        """Why a verdict is as it is, and the fields that differ or cannot be made."""
        match verdict.action:
            case "update":
                return self._update(verdict, place)
            case "create":
                return self._create(verdict, place), ()
            case "delete":
                stays = _kind(verdict) in _HOLDERS
                more = "; it stays if others' things are in it" if stays else ""
                return self._delete(verdict, place) + more, ()
            case "keep" | "orphan":
                return f"{self._delete(verdict, place)}; {_stays(verdict)}", ()
            case "frozen":
                return self._frozen(verdict)
            case "held":
                return verdict.why or self._after.placements[verdict.by].why_held, ()
            case "none":
                return self._nothing(verdict), ()

    def _update(self, verdict: ObjectOutcome, place: PlanPosition) -> Why:
        assert verdict.before is not None
        after = verdict.after
        if after is not None and self._copies.is_left_alone(verdict.key, after.reference):
            return "downsync-overwrite is false: it is left to its cluster from now on", ()
        if verdict.before.address.startswith(UNKNOWN):
            return "it was frozen here, and goes on", ()
        if after is not None and verdict.before.address == after.address:
            if verdict.before.on_removal != after.on_removal:
                return "", (f"metadata.annotations[{ON_REMOVAL}]",)
            return "it was left to its cluster, and is kept in step from now on", ()
        old = self._copies.at_place(verdict.key, verdict.before, place.before.profile)
        new = self._copies.at_place(verdict.key, verdict.after, place.after.profile)
        if old is None or new is None:
            return "its content is another", ()
        return "", differing_fields(old, new)

    def _create(self, verdict: ObjectOutcome, place: PlanPosition) -> str:
        assert verdict.after is not None
        if not verdict.after.placements:
            return "what is to lie in it needs it"
        key = MailKey(verdict.after.placements[0])
        delivery, former = self._after.placements[key], self._before.placements.get(key)
        was, now = place.before.profile, place.after.profile
        if now is None:
            return ""
        if was is None or was.source != now.source:
            return f"SyncTarget {now.source.name} is new at {now.path}"
        if former is None:
            return f"{delivery.title} is new"
        if key not in place.before.placements:
            return self._reached(delivery, former, place)
        if verdict.key in self._after.new:
            return f"it is new, and {delivery.title} selects it"
        return f"{delivery.title} selects it now"

    def _delete(self, verdict: ObjectOutcome, place: PlanPosition) -> str:
        assert verdict.before is not None
        was, now = place.before.profile, place.after.profile
        if was is None:
            return ""
        if now is None or was.source != now.source:
            return self._left(was)
        if not verdict.before.placements:
            return "nothing that lies in it is wanted any more"
        key = MailKey(verdict.before.placements[0])
        former, delivery = self._before.placements[key], self._after.placements.get(key)
        if delivery is None:
            return f"{former.title} is deleted"
        if key not in place.after.placements:
            return self._lost(former, delivery, place)
        if verdict.key in self._after.gone:
            return "it is deleted at the centre"
        return f"no longer selected by {delivery.title}"

    def _frozen(self, verdict: ObjectOutcome) -> Why:
        delivery = self._after.placements[verdict.by]
        failed = verdict.failed
        if failed is None:
            fault = delivery.faults[verdict.key][0]
            return f"{delivery.title} stays as it is everywhere: {fault}", ()
        if verdict.failing == verdict.key:
            return failed.message, (failed.field,) if failed.field else ()
        return f"frozen with {namespace_first(str(verdict.failing))}", ()

    def _nothing(self, verdict: ObjectOutcome) -> str:
        before, after = verdict.before, verdict.after
        if verdict.why:
            return verdict.why
        if verdict.failed is not None:
            what = namespace_first(str(verdict.failing))
            return f"it stays frozen: {verdict.failed.message} for {what}"
        if before is None and after is None:
            return "it is not meant for this destination"
        if after is None:
            return "downsync-overwrite is false: the copy stays"
        if before is None or before.address == after.address:
            return "it is as it should be"
        if after.create_only:
            return "createOnly: the copy that is there stays as it is"
        return "downsync-overwrite is false: the copy is left to its cluster"

    # Who is meant.

    def _left(self, was: Profile) -> str:
        """Why a destination is none any more at its place."""
        moved = self._after.profiles.get(was.source.key)
        if moved is not None:
            return f"SyncTarget {was.source.name} hangs at {moved.path} then"
        return f"SyncTarget {was.source.name} is deleted, or loses its place"

    def _reached(self, delivery: Delivery, former: Delivery, place: PlanPosition) -> str:
        found = _selecting(delivery.alternatives, place.after)
        if _selecting(former.alternatives, place.after) is None:
            return f"{_selectors(delivery)} of {delivery.title} match it now"
        if found is None or isinstance(found.by, Profile):
            return f"the labels of its SyncTarget match {delivery.title} now"
        return f"it is at Location {found.by.source.name}, which {delivery.title} selects"

    def _lost(self, former: Delivery, delivery: Delivery, place: PlanPosition) -> str:
        """Why a placement is not meant for a destination any more."""
        found, now = _selecting(former.alternatives, place.before), place.after.profile
        if found is None or now is None:
            return f"{delivery.title} is not meant for it any more"
        if _selecting(former.alternatives, place.after) is not None:
            return f"{_selectors(delivery)} of {delivery.title} do not match it any more"
        alternative, location = found
        target = f"SyncTarget {now.source.name}"
        if isinstance(location, Profile):
            return _unmatched(alternative.selector, now.labels, target)
        whose = f"Location {location.source.name}"
        present = self._after.locations.get(location.source.key)
        if present is None or present.instance_selector is None:
            return f"{whose} is deleted" if present is None else f"{whose} selects nothing"
        if not alternative.selector.matches(present.labels):
            return _unmatched(alternative.selector, present.labels, whose)
        told = _unmatched(present.instance_selector, now.labels, target)
        return f"{told}: it is not at {whose} any more"


def _kind(verdict: ObjectOutcome) -> tuple[str, str]:
    return verdict.key.group, verdict.key.resource


def _selectors(delivery: Delivery) -> str:
    return kind_of(delivery.name).selectors


def _selecting(alternatives: tuple[Alternative, ...], side: PlanSide) -> SelectedBy | None:
    """The first alternative that selects who hangs there, and by whose labels it does."""
    if side.profile is None:
        return None
    return Candidate(side.profile, lambda _: side.locations).chosen(alternatives)


def _unmatched(selector: LabelSelector, labels: Mapping[str, str], whose: str) -> str:
    """Which label keeps a selector from matching."""
    requirement = selector.unmet(labels)
    if requirement is None:
        return f"the labels of {whose} no longer match"
    if requirement.key in labels:
        said = f"{requirement.key}={labels[requirement.key]}"
        return f"label {said} of {whose} no longer matches"
    return f"{whose} has no label {requirement.key} any more"
