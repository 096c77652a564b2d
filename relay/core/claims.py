"""One writer per object: which placement's copy of an object an edge keeps.

Of one object wanted by several placements from one source, the highest source revision counts; from
different sources the placement first by (priority, key), and the others are told (design.md, §4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.blobs import Reference
from schemas.chunks import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON, ManifestEntry
from schemas.identity import MailKey
from schemas.objects import ObjectKey

_WANTED_BACK = WANT_SINGLETON | WANT_MULTI


@dataclass(frozen=True, slots=True)
class Claim:
    """A placement in force here asks for an object; a higher priority goes first."""

    placement: MailKey
    priority: int
    entry: ManifestEntry


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an edge shall hold of one object; `flags` are those of schemas.chunks.

    `placements` ask for just this. Without any it is implied: a Namespace that others need.
    """

    key: ObjectKey
    reference: Reference
    order: int
    flags: int
    placements: tuple[str, ...]

    @property
    def create_only(self) -> bool:
        return bool(self.flags & CREATE_ONLY)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Wanted objects, and for each loser the placement that it lost an object to."""

    wanted: dict[ObjectKey, Wanted]
    losers: dict[tuple[MailKey, ObjectKey], MailKey]


def resolve_claims(claims: Iterable[Claim]) -> Resolved:
    """Choose one content per object; the order of the claims does not matter.

    The object is create-only if all that ask for it say so; what they want returned adds up.
    """
    by_key: dict[ObjectKey, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(claim.entry.key, []).append(claim)
    resolved = Resolved({}, {})
    for key in sorted(by_key):
        _choose(key, by_key[key], resolved)
    return resolved


def _choose(key: ObjectKey, claims: list[Claim], resolved: Resolved) -> None:
    first = min(claims, key=lambda claim: (-claim.priority, claim.placement, _source(claim)))
    source = _source(first)
    same = [claim for claim in claims if _source(claim) == source]
    best = max(same, key=lambda claim: _newness(claim.entry))
    flags = CREATE_ONLY if all(claim.entry.flags & CREATE_ONLY for claim in same) else 0
    for claim in same:
        flags |= claim.entry.flags & _WANTED_BACK
    placements = tuple(sorted({str(claim.placement) for claim in same}))
    entry = best.entry
    resolved.wanted[key] = Wanted(key, entry.reference, entry.order, flags, placements)
    for claim in claims:
        if _source(claim) != source:
            resolved.losers[claim.placement, key] = first.placement


def _newness(entry: ManifestEntry) -> tuple[int | str, ...]:
    """The revision; the rest only makes the choice the same for all who choose."""
    return (entry.revision, entry.address, entry.size, entry.flags, entry.order, entry.enc)


def _source(claim: Claim) -> str:
    """One key in one space is one object, also when it is re-created with another uid."""
    return claim.entry.space
