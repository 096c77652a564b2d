"""The placement translator's decision: from a placement's object set to its delta.

One changed object costs its own blob and one chunk of the manifest. An object that cannot be sent
becomes a fault that names it, keeps its last good content, and holds up no other.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from controllers.core.access.keyring import IN_CLEAR, PlacementKeys
from controllers.core.ledger.ledger import Draft, same, values_of
from controllers.core.rollout.rejection import differences, still_rejected
from controllers.core.translation.clean_objects import CleanObjects, ObjectRefused, blanks_within
from controllers.core.translation.entries import entry_of, removal_said, settled
from controllers.core.translation.stored_arms import Entries, RejectedArms, StoredArm, WishedArm
from schemas.api.placement import EdgePlacementSpec
from schemas.api.policy import BindingPolicySpec
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.content.sealing import SealingKey, mark
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HealthProgram
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Dependency,
    Gate,
    Source,
)
from schemas.records.signed_records import EncodedBody
from schemas.reports.collectors import WHOLE, Blanks, Program, program_set
from schemas.reports.upsync import UpsyncClause
from schemas.values.faults import Fault
from schemas.values.identity import ContentHash
from schemas.values.wire import replace

HINTS_MAX = 4

Others = Mapping[ContentHash, Entries]
"""Contents by the addresses of their manifests."""
GatesOf = Callable[[Reference], tuple[Gate, ...]]
"""Who gets what, if this manifest is the target."""


@dataclass(frozen=True, slots=True)
class DeltaContent:
    """Who gets what of a placement, and what of it is in the store.

    Its **target** is what its space wanted last. A rollout may give some destinations, or all,
    other content: that of other arms.
    """

    # Who gets which content.
    gates: tuple[Gate, ...]
    # Those of the target; None if its manifest could not be read.
    entries: Entries | None
    # The blobs of its manifest that are in the store.
    kept: frozenset[ContentHash] = frozenset()
    # Content of objects that is not, and that no object shows again.
    lost: frozenset[ContentHash] = frozenset()
    # What is collected, and the names and ids of what collects it, if known.
    collectors: tuple[Reference, ...] = ()
    programs: frozenset[tuple[str, str]] | None = None
    # The other arms of the gates that could be read, by the addresses of their manifests.
    others: Others = field(default_factory=dict)
    # Whether a gate gives anyone the target.
    aimed: bool = True
    # What it waits for.
    after: tuple[Dependency, ...] = ()
    # What the target is sealed under, and the keys of all arms as its body brings them.
    sealed_under: SealingKey | None = None
    wrapped: bytes = b""

    @property
    def in_force(self) -> list[Entries]:
        """The contents that someone gets, as far as they are known."""
        mine = [self.entries] if self.aimed and self.entries is not None else []
        return [*mine, *self.others.values()]

    @property
    def knows_all(self) -> bool:
        """Whether these are all."""
        arms = {gate.arm for gate in self.gates if gate.arm is not None}
        return self.entries is not None and len(self.others) + self.aimed >= len(arms)


@dataclass(frozen=True, slots=True)
class IssuedDelta(DeltaContent):
    """A placement as the ledger has it."""

    head: DeltaHead = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Translation(DeltaContent):
    """What a placement comes to: its content and its delta."""

    entries: Entries
    faults: tuple[Fault, ...] = ()
    # None if the ledger says it already.
    draft: Draft | None = None
    # The target, and what of it the store lacks though no draft brings it.
    root: Reference | None = None
    unsent: Mapping[ContentHash, bytes] = field(default_factory=dict)
    upsync: tuple[UpsyncClause, ...] = ()
    # What the space wants in fact, if the target keeps something else, and where it does.
    wish: WishedArm | None = None
    # Which objects the faults are of.
    refused: Mapping[ObjectKey, Fault] = field(default_factory=dict)

    @property
    def arm(self) -> StoredArm:
        """The target once the store has it."""
        return StoredArm(self.entries, self.kept, self.sealed_under, self.upsync)

    def issued(self, head: DeltaHead) -> IssuedDelta:
        """The same once the ledger has it."""
        content = {it.name: getattr(self, it.name) for it in dataclasses.fields(DeltaContent)}
        return IssuedDelta(**content, head=head)


def alternatives_of(spec: EdgePlacementSpec | BindingPolicySpec) -> tuple[Alternative, ...]:
    """Who is meant: whom one of the selectors matches, by Locations or by the SyncTarget itself."""
    if isinstance(spec, BindingPolicySpec):
        return tuple(Alternative(OVER_SYNC_TARGET, item) for item in spec.cluster_selectors)
    return tuple(Alternative(OVER_LOCATION, item) for item in spec.location_selectors)


@dataclass(frozen=True, slots=True)
class Steering:
    """What a rollout makes of a target."""

    # Without gates nothing is issued yet.
    gates_of: GatesOf
    # The last one, which the store has.
    target: StoredArm | None = None


@dataclass(frozen=True, slots=True)
class DeltaRules:
    """What a delta says beside objects."""

    # What destinations send back beside counts: rows, and objects of their own.
    collectors: Mapping[ObjectKey, tuple[Program, ...]] = field(default_factory=dict)
    upsync: tuple[UpsyncClause, ...] = ()
    # Who gets the content when; without it all at once.
    steering: Steering | None = None
    # What it waits for.
    after: tuple[Dependency, ...] = ()
    keys: PlacementKeys = IN_CLEAR
    # What was aborted or undone.
    rejected: RejectedArms | None = None
    # The flag of what becomes of copies that are wanted no more.
    on_removal: int = 0
    # How well the objects of some kinds count.
    health: tuple[HealthProgram, ...] = ()


PLAIN_RULES = DeltaRules()


def translate(
    head: DeltaHead,
    selected: Mapping[ObjectKey, int],
    objects: Mapping[ObjectKey, Mapping[str, Any]],
    cleaned: CleanObjects,
    before: IssuedDelta | None = None,
    held: AbstractSet[ObjectKey] = frozenset(),
    rules: DeltaRules = PLAIN_RULES,
) -> Translation:
    """Say a placement's object set as a delta.

    `head` tells the source and who is meant; `held` names objects that stay as they were although
    they are no longer selected.
    """
    refused, said = dict[ObjectKey, Fault](), dict[ObjectKey, ManifestEntry]()
    for key in sorted(selected):
        try:
            casting = cleaned.customizers.casting(key, objects[key])
            flags = selected[key] | (removal_said(objects[key]) or rules.on_removal) | cleaned.flag
            said[key] = entry_of(head.source.space, key, objects[key], flags, cleaned, casting)
        except ObjectRefused as error:
            refused[key] = error.fault
    lost = before.lost if before else frozenset[ContentHash]()
    shown = _Shown(objects, cleaned, said, lost, rules.keys.marking)
    # What cannot be said stays as it was.
    stays = held | (selected.keys() - said.keys())
    wished = _wished(shown, stays, rules)
    if wished.rejected is not None:
        shown = dataclasses.replace(
            shown, said={key: entry for key, entry in said.items() if key not in wished.left}
        )
    old = wished.old or _target_before(before, rules.steering)
    entries = _those(stays | wished.left, old.entries)
    sealed_under = _key_for(old, shown, rules, may_change=not entries)
    entries |= shown.entries(sealed_under, old)
    if wished.rejected is not None and not entries:
        # Nothing is nothing, whatever it would be sealed under.
        sealed_under = None
    upsync = wished.upsync
    manifest = build_manifest(entries.values(), upsync, sealed_under)
    head, gates = _steered(head, manifest[0].reference, before, rules.steering)
    target = Translation(
        gates,
        entries,
        frozenset(blob.reference.address for blob in manifest),
        lost,
        others=_others(gates, manifest[0].reference, before),
        aimed=any(gate.arm == manifest[0].reference for gate in gates),
        after=rules.after,
        sealed_under=sealed_under,
        wrapped=rules.keys.wrapped,
        faults=tuple(refused.values()),
        root=manifest[0].reference,
        upsync=upsync,
        wish=wished.rejected,
        refused=refused,
    )
    drafted = _drafted(head, target, manifest, shown, before, rules)
    return dataclasses.replace(drafted, unsent={**drafted.unsent, **wished.unsent})


@dataclass(frozen=True, slots=True)
class _Wished:
    """What a space wants, where something of it may be rejected."""

    upsync: tuple[UpsyncClause, ...]
    # What was to go out last, if something was rejected.
    old: StoredArm | None = None
    # The objects that stay as that says.
    left: frozenset[ObjectKey] = frozenset()
    # What is to be remembered, and what of that the store lacks.
    rejected: WishedArm | None = None
    unsent: Mapping[ContentHash, bytes] = field(default_factory=dict)


def _wished(shown: _Shown, stays: AbstractSet[ObjectKey], rules: DeltaRules) -> _Wished:
    """What of a wish was rejected before, and is still: it is compared under its former key."""
    if rules.rejected is None:
        return _Wished(rules.upsync)
    wish, target, needs = rules.rejected
    entries = {**_those(stays, wish.entries), **shown.entries(wish.sealed_under, wish)}
    left = still_rejected(
        differences(entries), differences(wish.entries), differences(target.entries), needs
    )
    # What comes up stays as it was, if the wish for another was rejected and is the same.
    upsync = target.upsync if set(rules.upsync) == set(wish.upsync) else rules.upsync
    if not left and set(upsync) == set(rules.upsync):
        return _Wished(rules.upsync, target)
    blobs_stored = build_manifest(entries.values(), rules.upsync, wish.sealed_under)
    addresses = frozenset(blob.reference.address for blob in blobs_stored)
    arm = StoredArm(entries, addresses, wish.sealed_under, rules.upsync)
    unsent = [blob for blob in blobs_stored if blob.reference.address not in wish.kept]
    told = WishedArm(blobs_stored[0].reference, arm, tuple(sorted(left)))
    return _Wished(upsync, target, left, told, values_of(*unsent))


def _those(keys: Iterable[ObjectKey], entries: Entries) -> dict[ObjectKey, ManifestEntry]:
    return {key: entries[key] for key in keys if key in entries}


def _key_for(
    old: StoredArm, shown: _Shown, rules: DeltaRules, *, may_change: bool
) -> SealingKey | None:
    """What the target is sealed under: the newest key, unless something keeps the former one.

    What no object shows cannot be sealed anew; and what a rollout lets out is no other content for
    having another key.
    """
    newest = rules.keys.newest
    if not old.kept or old.sealed_under == newest:
        return newest
    if not may_change:
        return old.sealed_under
    if rules.steering is None or shown.entries(old.sealed_under, old) != old.entries:
        return newest
    return old.sealed_under


@dataclass(frozen=True, slots=True)
class _Shown:
    """The objects that can be sent, and what is `said` of each in clear."""

    objects: Mapping[ObjectKey, Mapping[str, Any]]
    cleaned: CleanObjects
    said: Entries
    # What the store lost is sealed anew: it may have come out otherwise in the past.
    lost: AbstractSet[ContentHash]
    marking: bytes
    # What was sealed for it, by address.
    sealed: dict[ContentHash, StoredBlob] = field(default_factory=dict)

    def entries(self, key: SealingKey | None, old: StoredArm) -> Entries:
        """What the manifest lists of them, sealed under a key."""
        known = old.entries if old.sealed_under == key else {}
        found: dict[ObjectKey, ManifestEntry] = {}
        for name in self.said:
            before, listed = known.get(name), self.cleaned.listed[name]
            if before is None or self.lost or not listed.is_settled(before, self.marking):
                entry = settled(self._entry(name, key, before), old.entries.get(name))
                listed.settled, listed.marking = entry, self.marking
                found[name] = entry
            else:
                found[name] = before
        return found

    def blobs(
        self, entries: Entries, key: SealingKey | None, there: set[ContentHash]
    ) -> Iterator[StoredBlob]:
        """What these entries lead to and the store lacks."""
        for name in sorted(self.said):
            for reference in entries[name].references:
                if reference.address in there:
                    continue
                there.add(reference.address)
                if reference.address in self.sealed:
                    yield self.sealed[reference.address]
                elif reference.kind != blobs.CUSTOMIZER:
                    yield self.cleaned.blob(name, self.objects[name], reference.kind, key)
                elif by := self.cleaned.customizers.casting(name, self.objects[name]).customizer:
                    yield by

    def blanks(self, name: ObjectKey, program: Program) -> tuple[Blanks, int]:
        """What blank rows of an object are made of, and in how many steps that is said."""
        return self.cleaned.blanks(name, self.objects[name], program)

    def _entry(
        self, name: ObjectKey, key: SealingKey | None, known: ManifestEntry | None
    ) -> ManifestEntry:
        entry = self.said[name]
        if key is None:
            return entry
        by = self.cleaned.customizers.casting(name, self.objects[name]).customizer
        sealed = _sealed_customizer(blobs.open_stored(by), key) if by is not None else None
        customizer = self._keep(sealed) if sealed is not None else None
        kind = entry.reference.kind
        marked = mark(self.marking, ContentHash(entry.address))
        own = known.reference if known is not None and known.mark == marked else None
        if own is None or own.kind != kind or own.address in self.lost:
            own = self._keep(self.cleaned.blob(name, self.objects[name], kind, key))
        return replace(
            entry, address=own.address, size=own.size, mark=marked, customizer=customizer
        )

    def _keep(self, blob: StoredBlob) -> Reference:
        self.sealed[blob.reference.address] = blob
        return blob.reference


@lru_cache(maxsize=256)
def _sealed_customizer(plain: bytes, key: SealingKey) -> StoredBlob:
    """A Customizer, which many objects may have."""
    return key.store(blobs.CUSTOMIZER, plain)


def _drafted(
    head: DeltaHead,
    target: Translation,
    manifest: Sequence[StoredBlob],
    shown: _Shown,
    before: IssuedDelta | None,
    rules: DeltaRules,
) -> Translation:
    """The translation with its delta, unless the ledger says that already."""
    entries = target.entries
    found = rules.collectors.items()
    asked = {key: programs for key, programs in found if key in entries or key == WHOLE}
    sealed = asked if target.sealed_under is not None else {}
    blanks: dict[ObjectKey, dict[Program, Blanks]] = defaultdict(dict)
    shown_and_sealed = {key: sealed[key] for key in shown.said.keys() & sealed.keys()}
    for key, program, said in blanks_within(shown_and_sealed, shown.blanks):
        blanks[key][program] = said
    named = frozenset((each.name, each.id) for listed in asked.values() for each in listed)
    named |= {(f"HealthRule {each.name}", each.id) for each in rules.health}
    programs = [program_set(asked, blanks, rules.health)] if asked or rules.health else []
    collectors = tuple(blob.reference for blob in programs)
    if before is not None and not target.aimed and before.programs == named:
        # What they look at in a content that nobody gets is no news.
        programs, collectors = [], before.collectors
    kept = frozenset(blob.reference.address for blob in (*manifest, *programs))
    target = dataclasses.replace(target, kept=kept, collectors=collectors, programs=named)
    addressed = {it.address for key in shown.said for it in entries[key].references}
    again = target.lost & addressed if target.aimed else frozenset[ContentHash]()
    # What was to go out last, which the store has.
    there = rules.steering.target if rules.steering is not None else None
    if rules.rejected is not None:
        there = rules.rejected.target
    known = (before.kept if before else frozenset()) | (there.kept if there else frozenset())
    body = DeltaBody((), target.gates, collectors, rules.keys.wrapped, rules.after)
    says = before is not None and not again and _says(before, head, body)
    if says and (target.aimed or manifest[0].reference.address in known):
        return target
    stored = [b for b in (*programs, *manifest) if b.reference.address not in known]
    last = before.entries if before is not None else None
    old = [*(before.in_force if before else ()), last or {}, there.entries if there else {}]
    held = {it.address for each in old for entry in each.values() for it in entry.references}
    stored += shown.blobs(entries, target.sealed_under, held - again)
    if says or not target.gates:
        # Nobody gets it yet; but its revision may begin when its objects are others already.
        return dataclasses.replace(target, unsent=values_of(*stored))
    loses = before is not None and _loses(before, target, head)
    draft = _draft(head, body, stored, before, loses=loses)
    return dataclasses.replace(target, draft=draft, lost=target.lost - again)


def _target_before(before: IssuedDelta | None, steering: Steering | None) -> StoredArm:
    if steering is not None and steering.target is not None:
        return steering.target
    if before is None or before.entries is None:
        return StoredArm({}, frozenset())
    return StoredArm(before.entries, before.kept, before.sealed_under)


def _steered(
    head: DeltaHead, target: Reference, before: IssuedDelta | None, steering: Steering | None
) -> tuple[DeltaHead, tuple[Gate, ...]]:
    """The gates, and the head that says since when they are a rollout's.

    What was reported of the delta before the first of its steps is as it was.
    """
    if steering is None:
        return head, (Gate(target),)
    began = (before.head.rollout_since or before.head.generation) if before is not None else 0
    return replace(head, rollout_since=max(began, 1)), steering.gates_of(target)


def _others(
    gates: Iterable[Gate], target: Reference, before: IssuedDelta | None
) -> dict[ContentHash, Entries]:
    """The contents of the other arms, as far as they are known."""
    if before is None:
        return {}
    known = dict(before.others)
    if before.entries is not None:
        known |= dict.fromkeys(before.kept & _roots(before.gates), before.entries)
    return {root: known[root] for root in _roots(gates) - {target.address} if root in known}


def _roots(gates: Iterable[Gate]) -> frozenset[ContentHash]:
    return frozenset(gate.arm.address for gate in gates if gate.arm is not None)


def _loses(before: IssuedDelta, after: Translation, head: DeltaHead) -> bool:
    """Whether someone may lose an object by a step from these gates to those.

    Which arm each one has, nobody need ask: who goes from any to any other may. What was there and
    cannot be read may go; who is meant no more loses all.
    """
    if not before.knows_all or before.head.alternatives != head.alternatives:
        return True
    had = set[ObjectKey]().union(*before.in_force)
    return not after.knows_all or any(
        not had <= entries.keys() for entries in after.in_force or [{}]
    )


def bare_head(source: Source, alternatives: tuple[Alternative, ...]) -> DeltaHead:
    """A delta's head to be translated: who says it, and who is meant."""
    return DeltaHead(
        source,
        generation=0,
        term="",
        trace="",
        body_hash=b"",
        alternatives=alternatives,
        last_loss=0,
    )


def _says(before: IssuedDelta, head: DeltaHead, body: DeltaBody) -> bool:
    """Whether the ledger says this already, whatever content it named beside the manifest.

    That what it waits for is at a newer generation is no news: it only lets new content wait.
    """
    said = (before.gates, before.collectors, before.wrapped)
    if before.entries is None or said != (body.gates, body.collectors, body.key):
        return False
    if _whom(before.after) != _whom(body.after):
        return False
    return same(replace(head, body_hash=before.head.body_hash), before.head)


def _draft(
    head: DeltaHead,
    body: DeltaBody,
    stored: Iterable[StoredBlob],
    before: IssuedDelta | None,
    *,
    loses: bool,
) -> Draft:
    blobs_stored = tuple(stored)
    encoded = EncodedBody.of(replace(body, content=_content(body, blobs_stored)))
    full = replace(
        head,
        body_hash=hashlib.sha256(encoded.data).digest(),
        last_loss=before.head.last_loss if before else 0,
    )
    return Draft("delta", full, encoded, values_of(*blobs_stored), loses)


def _whom(after: Iterable[Dependency]) -> list[tuple[str, tuple[Alternative, ...]]]:
    return [(each.name, each.alternatives) for each in after]


def _content(body: DeltaBody, stored: Iterable[StoredBlob]) -> tuple[Reference, ...]:
    """The manifests and the collectors, and beside them what is new: all is fetched at once.

    The manifest leads there in any case, one step after the other; so a large change names nothing.
    """
    arms = (*(g.arm for g in body.gates if g.arm is not None), *body.collectors)
    arms = tuple(dict.fromkeys(arms))
    hints = tuple(
        blob.reference
        for blob in stored
        if blob.reference not in arms and blob.reference.kind != blobs.MANIFEST
    )
    return arms + hints if len(hints) <= HINTS_MAX else arms
