"""What a syncer has to do: the difference between what is wanted and what its record says it did."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from schemas import blobs, codec
from schemas.blobs import Reference
from schemas.chunks import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON, ManifestEntry
from schemas.identity import MailKey
from schemas.objects import ObjectKey, apply_order
from schemas.reports import Done

NAMESPACES = ("", "namespaces")
MADE_BY = "leafcast.io/made-by"
SYNCER = "leafcast-syncer"
# These are there in every cluster, and no one's to make or to remove.
BUILT_IN_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})


@dataclass(frozen=True, slots=True)
class Claim:
    """One placement's entry for one object; of claims from different sources one wins."""

    placement: MailKey
    priority: int
    entry: ManifestEntry


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object as it shall be, by whose wish; `flags` are those of schemas.chunks.

    Without placements it is implied: a Namespace that others' objects need.
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
class Apply:
    """Make the object as wanted."""

    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Prune:
    """Take back what was applied."""

    done: Done


Action = Apply | Prune


def resolve_wants(
    claims: Iterable[Claim],
) -> tuple[dict[ObjectKey, Wanted], dict[ObjectKey, list[Claim]]]:
    """One writer per object key, and the claims that lost to it.

    Claims of one source object (space, uid) go together: its highest revision counts. Between
    sources the highest priority wins, then the first placement key. The object is create-only if
    all that the winner's placements say so; what they want returned adds up.
    """
    by_key: dict[ObjectKey, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(claim.entry.key, []).append(claim)
    wanted, lost = {}, {}
    for key, rivals in by_key.items():
        first = min(rivals, key=_precedence)
        winners = [claim for claim in rivals if _source(claim) == _source(first)]
        wanted[key] = _joined(winners)
        losers = [claim for claim in rivals if _source(claim) != _source(first)]
        if losers:
            lost[key] = sorted(losers, key=_precedence)
    return wanted, lost


def with_namespaces(wanted: Mapping[ObjectKey, Wanted]) -> dict[ObjectKey, Wanted]:
    """The wants, and with them the Namespaces that they need and do not bring."""
    needed = {key.namespace for key in wanted} - {""} - BUILT_IN_NAMESPACES
    implied = (_implied(name) for name in sorted(needed))
    return {**{want.key: want for want in implied}, **wanted}


def namespace_object(name: str) -> dict[str, object]:
    """A Namespace as the syncer makes it, marked as its own."""
    metadata = {"name": name, "annotations": {MADE_BY: SYNCER}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def plan(
    wanted: Mapping[ObjectKey, Wanted],
    applied: Mapping[ObjectKey, Done],
    *,
    may_prune: bool,
    drifted: Collection[ObjectKey] = frozenset(),
) -> list[Action]:
    """Applies in ascending order, then prunes in descending order; nothing if all is done."""
    actions = [
        action
        for key in wanted.keys() | applied.keys()
        if (
            action := action_for(
                wanted.get(key), applied.get(key), may_prune=may_prune, drifted=key in drifted
            )
        )
    ]
    return sorted(actions, key=rank)


def action_for(
    want: Wanted | None, done: Done | None, *, may_prune: bool, drifted: bool = False
) -> Action | None:
    """What is to be done about one object; it depends on no other."""
    if want is None:
        return Prune(done) if done and may_prune else None
    if done is None or not done.uid or drifted:
        return Apply(want)
    same_content = want.create_only or done.address == want.reference.address
    same_claim = (done.placements, done.order) == (want.placements, want.order)
    return None if same_content and same_claim else Apply(want)


def rank(action: Action) -> tuple[int, int, ObjectKey]:
    """Sorts actions into the order in which they are carried out."""
    match action:
        case Apply(wanted):
            return (0, wanted.order, wanted.key)
        case Prune(done):
            return (1, -done.order, done.key)


def _precedence(claim: Claim) -> tuple[int, str, int, str, tuple[str, str]]:
    entry = claim.entry
    return (-claim.priority, claim.placement, -entry.revision, entry.address, _source(claim))


def _source(claim: Claim) -> tuple[str, str]:
    return (claim.entry.space, claim.entry.uid)


def _joined(claims: list[Claim]) -> Wanted:
    """The want of claims of one source."""
    newest = min(claims, key=lambda claim: (-claim.entry.revision, *_precedence(claim))).entry
    flags = CREATE_ONLY if all(claim.entry.flags & CREATE_ONLY for claim in claims) else 0
    for claim in claims:
        flags |= claim.entry.flags & (WANT_SINGLETON | WANT_MULTI)
    placements = tuple(sorted({claim.placement for claim in claims}))
    return Wanted(newest.key, newest.reference, newest.order, flags, placements)


def _implied(name: str) -> Wanted:
    plain = codec.canonical(namespace_object(name))
    reference = Reference(blobs.OBJECT, codec.address(blobs.OBJECT, plain), len(plain))
    key = ObjectKey(*NAMESPACES, "", name)
    return Wanted(key, reference, apply_order(*NAMESPACES), CREATE_ONLY, ())
