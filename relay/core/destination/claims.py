"""One writer per object: which placement's copy of an object an edge keeps.

Of one object wanted by several placements from one source, the highest source revision counts, and
before it what is under a rollout: that goes no further than its gates. From different sources the
placement with the first key, and others that say something else of it are told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from relay.core.destination.customized_forms import CustomizedForm, Forms
from schemas.content.blobs import Reference
from schemas.content.manifest import (
    CLEANED,
    CREATE_ONLY,
    ON_REMOVAL_BITS,
    WANT_MULTI,
    WANT_SINGLETON,
    ManifestEntry,
    removal_word,
)
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import SourceObject
from schemas.values.identity import ContentHash, MailKey

_WANTED_BACK = WANT_SINGLETON | WANT_MULTI


@dataclass(frozen=True, slots=True)
class Claim:
    """A placement in force here asks for an object."""

    placement: MailKey
    entry: ManifestEntry
    form: CustomizedForm | None = None
    # If the object is sealed.
    sealed_under: SealingKey | None = None
    # Under a rollout.
    gated: bool = False

    @property
    def address(self) -> ContentHash:
        """The address of what it becomes here."""
        return self.entry.identity if self.form is None else self.form.address


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """What an edge shall hold of one object."""

    key: ObjectKey
    reference: Reference
    order: int
    # Those of `schemas.content.manifest`.
    flags: int
    # Who asks for just this; nobody if it is implied: a Namespace that others need.
    placements: tuple[str, ...]
    # What it becomes here, if it is customized.
    form: CustomizedForm | None = None
    # If it is sealed, and what its plain bytes are known by.
    sealed_under: SealingKey | None = None
    mark: str = ""
    # The object of the source that says this, if known.
    source_object: SourceObject | None = None
    # By their numbers, the fields that nobody said.
    unsaid: tuple[int, ...] = ()
    # Its number, which no other wish for the object has: how many were taken back before it.
    wish: int = 0

    @property
    def identity(self) -> ContentHash:
        """The address of what was sent, as its entry has it."""
        return ContentHash(self.mark) if self.mark else self.reference.address

    @property
    def address(self) -> ContentHash:
        """The address of what is applied."""
        return self.form.address if self.form is not None else self.identity

    @property
    def on_removal(self) -> str:
        """What who asks for it says becomes of it once nobody does; "" if nothing."""
        return removal_word(self.flags)

    @property
    def create_only(self) -> bool:
        return bool(self.flags & CREATE_ONLY)


@dataclass(frozen=True, slots=True)
class ObjectDecision:
    """What is wanted of one object, and who gets which part in it."""

    wanted: DesiredObject
    # The placements that lost it, and to whom.
    losers: Mapping[MailKey, MailKey]
    # The one of those that want it back under which it counts; None if none does.
    booked: MailKey | None

    def numbered(self, wish: int) -> ObjectDecision:
        """The same, with the number of its wish."""
        if wish == self.wanted.wish:
            return self
        return replace(self, wanted=replace(self.wanted, wish=wish))

    def is_equivalent(self, other: ObjectDecision) -> bool:
        """Whether no one's report differs for it: who else asks for the object is not said."""
        mine, others = self.wanted, other.wanted
        same = mine.address == others.address and mine.create_only == others.create_only
        return same and (self.losers, self.booked) == (other.losers, other.booked)


@dataclass(slots=True)
class ClaimDelta:
    """What a round of choosing changed."""

    # By placement, the objects of which something else is to be said.
    to_report: dict[MailKey, dict[ObjectKey, None]] = field(default_factory=dict)
    # Objects that are wanted now and were not, or the reverse.
    added_or_removed: list[ObjectKey] = field(default_factory=list)
    # Whether something else is wanted.
    wants: bool = False


class ObjectOwnership:
    """All claims at one destination, and what is chosen of them.

    A change costs what it touches: the objects that differ, and who else claims these.
    """

    def __init__(self) -> None:
        self.wanted: dict[ObjectKey, DesiredObject] = {}
        self.booked: dict[MailKey, dict[ObjectKey, None]] = {}
        self._chosen: dict[ObjectKey, ObjectDecision] = {}
        self._by_object: dict[ObjectKey, dict[MailKey, Claim]] = {}
        self._by_placement: dict[MailKey, dict[ObjectKey, Claim]] = {}
        self._stale: dict[ObjectKey, None] = {}
        self._taken_back = 0

    def put(
        self,
        placement: MailKey,
        entries: Iterable[ManifestEntry],
        forms: Forms = MappingProxyType({}),
        sealed_under: SealingKey | None = None,
        *,
        gated: bool = False,
    ) -> Iterable[ObjectKey]:
        """Set what a placement claims, instead of what it did; names the objects that differ."""
        former = self._by_placement.pop(placement, {})
        claims = {
            entry.key: Claim(placement, entry, forms.get(entry.key), sealed_under, gated)
            for entry in entries
        }
        if claims:
            self._by_placement[placement] = claims
        differ = {key: None for key, claim in claims.items() if former.get(key) != claim}
        for key in differ:
            self._by_object.setdefault(key, {})[placement] = claims[key]
        for key in [key for key in former if key not in claims]:
            differ[key] = None
            claimers = self._by_object[key]
            del claimers[placement]
            if not claimers:
                del self._by_object[key]
        self._stale |= differ
        return differ

    def of(self, placement: MailKey) -> Mapping[ObjectKey, Claim]:
        """What a placement claims, by object."""
        return self._by_placement.get(placement, {})

    def on(self, key: ObjectKey) -> Collection[MailKey]:
        """The placements that claim an object."""
        return self._by_object.get(key, {}).keys()

    def winner_over(self, placement: MailKey, key: ObjectKey) -> MailKey | None:
        """To whom the placement lost an object; None if it did not."""
        chosen = self._chosen.get(key)
        return chosen.losers.get(placement) if chosen else None

    def resolve(self) -> ClaimDelta:
        """Choose again where claims differ."""
        moved = ClaimDelta()
        for key in sorted(self._stale):
            former, claims = self._chosen.get(key), self._by_object.get(key)
            chosen = self._chosen_anew(key, former)
            self._set(key, former, chosen)
            if former is None or chosen is None:
                if former is chosen:
                    continue
                moved.added_or_removed.append(key)
            elif former.is_equivalent(chosen):
                moved.wants = moved.wants or former.wanted != chosen.wanted
                continue
            moved.wants = True
            for placement in (*(former.losers if former else ()), *(claims or ())):
                moved.to_report.setdefault(placement, {})[key] = None
        self._stale = {}
        return moved

    def assert_invariants(self) -> None:
        """Assert that both directions agree, and that what is not stale was chosen."""
        pairs = {(p, key) for p, claims in self._by_placement.items() for key in claims}
        assert pairs == {(p, key) for key, claims in self._by_object.items() for p in claims}
        for key in self._by_object.keys() | self._chosen.keys():
            claims, chosen = self._by_object.get(key), self._chosen.get(key)
            if key not in self._stale:
                number = chosen.wanted.wish if chosen else 0
                assert chosen == (choose(key, claims.values()).numbered(number) if claims else None)
            assert self.wanted.get(key) == (chosen.wanted if chosen else None)
        booked = {(p, key) for p, keys in self.booked.items() for key in keys}
        assert booked == {(c.booked, key) for key, c in self._chosen.items() if c.booked}

    def _chosen_anew(self, key: ObjectKey, former: ObjectDecision | None) -> ObjectDecision | None:
        """What is chosen of an object now; its wish keeps its number while it says the same."""
        claims = self._by_object.get(key)
        chosen = choose(key, claims.values()) if claims else None
        if former is not None:
            if chosen is not None and chosen.wanted.address == former.wanted.address:
                return chosen.numbered(former.wanted.wish)
            self._taken_back += 1
        return chosen.numbered(self._taken_back) if chosen is not None else None

    def _set(
        self, key: ObjectKey, former: ObjectDecision | None, chosen: ObjectDecision | None
    ) -> None:
        if former is not None and former.booked is not None:
            booked = self.booked[former.booked]
            del booked[key]
            if not booked:
                del self.booked[former.booked]
        if chosen is None:
            self._chosen.pop(key, None)
            self.wanted.pop(key, None)
            return
        self._chosen[key] = chosen
        self.wanted[key] = chosen.wanted
        if chosen.booked is not None:
            self.booked.setdefault(chosen.booked, {})[key] = None


def choose(key: ObjectKey, claims: Collection[Claim]) -> ObjectDecision:
    """Choose one content of an object; the order of its claims, at least one, does not matter.

    The object is create-only if all that ask for it say so; what they want returned adds up.
    """
    first = min(claims, key=lambda claim: (claim.placement, _source(claim)))
    source = _source(first)
    same = [claim for claim in claims if _source(claim) == source]
    best = max(same, key=_claim_rank)
    others = [c for c in claims if _source(c) != source and c.address != best.address]
    flags = CREATE_ONLY if all(claim.entry.flags & CREATE_ONLY for claim in same) else 0
    for claim in same:
        flags |= claim.entry.flags & (_WANTED_BACK | ON_REMOVAL_BITS)
    asking = (claim.placement for claim in same if claim.entry.flags & _WANTED_BACK)
    losers = {claim.placement: first.placement for claim in others}
    placements = tuple(sorted({str(claim.placement) for claim in claims} - losers.keys()))
    entry = best.entry
    sealed = best.sealed_under if entry.mark else None
    wanted = DesiredObject(
        key,
        entry.reference,
        entry.order,
        flags,
        placements,
        best.form,
        sealed,
        entry.mark,
        entry.source_object,
        entry.unsaid,
    )
    return ObjectDecision(wanted, losers, min(asking, default=None))


def _claim_rank(claim: Claim) -> tuple[int | str | tuple[int, ...], ...]:
    """Gates, what is sent whole, the revision; the rest only makes all who choose agree."""
    entry, made = claim.entry, claim.form.address if claim.form is not None else ""
    return (
        claim.gated,
        not entry.flags & CLEANED,
        entry.revision,
        entry.address,
        made,
        entry.size,
        entry.flags,
        entry.order,
        entry.mark,
        entry.created_s,
        entry.uid,
        entry.unsaid,
    )


def _source(claim: Claim) -> str:
    """One key in one space is one object, also when it is re-created with another uid."""
    return claim.entry.space
