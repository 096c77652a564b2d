"""Laws of keys: how roots follow each other, and what stays believed as keys come and end.

A tree's keys change at random, and nodes hear of it now and then. Planted faults break the laws.
"""

from __future__ import annotations

import dataclasses
from random import Random

import pytest

from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    KeysRefused,
    Stamp,
    changed_record,
    completed,
    renewed,
    request_of,
    signs_alone,
    unbelieved,
)
from relay.core.records import trust
from relay.core.records.trust import RootsRefused, RootWalk, Trust, TrustVerdict, recall, walk
from schemas.records.records import (
    API_NODE,
    GRANTS_MAX,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Source,
    encode_payload,
)
from schemas.records.roots import (
    FORERUNNERS_MAX,
    FORERUNNERS_MAX_BYTES,
    KeysBody,
    Roots,
    bare_keys,
    forerunners_of,
    keys_body,
    keys_envelope,
    keys_record,
    root_keys,
    signatures_of,
)
from schemas.records.signing import Envelope, Signer
from schemas.values import wire
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.refusals import RecordRefused

TREE = TreeId("t" * 26)
TERM = "00" * 8
SEEDS = 40


def replace(value, **changes):
    """The same value with other fields, of whichever sort it is."""
    how = wire.replace if isinstance(value, Roots) else dataclasses.replace
    return how(value, **changes)


def signer(random: Random) -> Signer:
    return Signer(TREE, KeyId(random_id(random.randbytes(16))), random.randbytes(32))


def publics(*signers: Signer) -> dict[KeyId, bytes]:
    return {one.key_id: one.public_key for one in signers}


class Centre:
    """A ring of keys that changes, with roots of which some are held by others."""

    def __init__(self, random: Random) -> None:
        self.random, self.generation = random, 1000
        self.ring = KeyRing(TREE, signer(random), (signer(random),))
        self.others: list[Signer] = []
        self.former: list[Signer] = []
        self.change(KeyChange())

    def tick(self) -> int:
        self.generation += 1
        return self.generation

    def change(self, change: KeyChange, signed_by: set[KeyId] | None = None) -> None:
        """Put a change in force, all signing who hold a root."""
        stamp = Stamp(self.tick(), TERM)
        named = signed_by or {one.key_id for one in (*self.former, self.ring.signing)}
        record = changed_record(self.ring, change, stamp, named, alone=True)
        made = (*change.made, *self.others, *((change.signing,) if change.signing else ()))
        ring = self.ring.prepare(*made)
        before = self.ring.signing
        self.ring = completed(ring, request_of(ring, record, made), stamp.generation)
        if self.ring.signing != before:
            self.former.append(before)
        # Whoever holds a root keeps it to himself.
        mine = {one.key_id for one in self.others}
        self.ring = replace(
            self.ring, roots=tuple(it for it in self.ring.roots if it.key_id not in mine)
        )

    def rotate(self) -> None:
        self.change(KeyChange(signing=signer(self.random)))

    def revoke(self) -> None:
        made, key = signer(self.random), self.ring.signing.key_id
        self.change(KeyChange(signing=made, revoked=key))

    def other_roots(self) -> None:
        here = tuple(signer(self.random) for _ in range(self.random.randint(0, 2)))
        least = 0 if here else 1
        self.others += (
            others := [signer(self.random) for _ in range(self.random.randint(least, 3))]
        )
        keys = publics(*here, *others)
        threshold = self.random.randint(1, len(keys))
        self.change(KeyChange(roots=keys, threshold=threshold, made=here))

    def step(self) -> None:
        self.random.choice((self.rotate, self.rotate, self.revoke, self.other_roots))()

    @property
    def message(self) -> Envelope:
        assert self.ring.message is not None
        return self.ring.message

    @property
    def record(self) -> KeysRecord:
        return keys_record(self.message)

    def signed(self, by: Signer, generation: int) -> tuple[Envelope, NodeRecord]:
        record = NodeRecord(
            Source(API_NODE, TREE, "", "/n"), generation, TERM, "", NodePath(("n",)), "U"
        )
        return by.seal("node", encode_payload(record)), record


class Node:
    """Believes what it hears; `trust` may be one with a planted fault."""

    def __init__(self, trust: type[Trust], pinned: Roots) -> None:
        self.trust = trust(TREE, pinned)

    def hear(self, message: Envelope) -> None:
        self.trust.follow(message)
        self.trust.adopt(keys_record(message))

    def judge(self, envelope: Envelope, record: NodeRecord) -> TrustVerdict:
        return self.trust.judge(envelope, record)


# The laws: each raises AssertionError for a fault that it is about.


def followed(trust: type[Trust], seed: int) -> None:
    """Who was away, and who has only the first pin, follows to the newest roots."""
    centre = Centre(Random(seed))
    first = replace(centre.ring.pinned, since=0)
    often, away = Node(trust, first), Node(trust, first)
    for _ in range(12):
        centre.step()
        often.hear(centre.message)
        if centre.random.random() < 0.3:
            away.hear(centre.message)
    for node in (often, away, Node(trust, first)):
        node.hear(centre.message)
        assert replace(node.trust.roots, since=0) == replace(centre.ring.pinned, since=0)


def stays(trust: type[Trust], seed: int) -> None:
    """What a key signed before it was rotated away stays believed, what it signs later is not."""
    centre = Centre(Random(seed))
    node = Node(trust, replace(centre.ring.pinned, since=0))
    old = centre.ring.signing
    before, late = centre.signed(old, centre.tick()), centre.tick() + 10**6
    centre.rotate()
    node.hear(centre.message)
    assert node.judge(*before) is TrustVerdict.BELIEVED
    assert node.judge(*centre.signed(old, late)) is TrustVerdict.OUT_OF_SCOPE
    assert node.judge(*centre.signed(centre.ring.signing, late)) is TrustVerdict.BELIEVED
    # A thief of the new key cannot sign for the time before it.
    early = centre.signed(centre.ring.signing, before[1].generation)
    assert node.judge(*early) is TrustVerdict.OUT_OF_SCOPE
    assert unbelieved(centre.record, {"k": before[1]}, {"k": before[0]}) == []  # type: ignore[dict-item]


def revoked(trust: type[Trust], seed: int) -> None:
    """Nothing that a revoked key signed is believed anew, and what is held stays."""
    centre = Centre(Random(seed))
    node = Node(trust, replace(centre.ring.pinned, since=0))
    stolen = centre.ring.signing
    before = centre.signed(stolen, centre.tick())
    centre.revoke()
    for _ in range(centre.random.randint(0, 3)):
        centre.rotate()
    node.hear(centre.message)
    assert node.judge(*before) is TrustVerdict.REVOKED_KEY
    assert node.trust.recalls(before[0]) is TrustVerdict.BELIEVED
    assert unbelieved(centre.record, {"k": before[1]}, {"k": before[0]}) == ["k"]  # type: ignore[dict-item]
    forged = replace(before[0], signature=bytes(64))
    assert node.trust.recalls(forged) is TrustVerdict.FORGED


def by_both(trust: type[Trust], seed: int) -> None:
    """Other roots are believed by a threshold of those before and of their own, by no less."""
    random = Random(seed)
    centre = Centre(random)
    centre.other_roots()
    known = replace(centre.ring.pinned, since=0)
    holders = [one for one in (*centre.ring.roots, *centre.others) if one.key_id in known.keys]
    fresh = [signer(random) for _ in range(random.randint(1, 3))]
    threshold = random.randint(1, len(fresh))
    roots = KeyChange(roots=publics(*fresh), threshold=threshold)
    stamp = Stamp(centre.tick(), TERM)
    payload = encode_payload(changed_record(centre.ring, roots, stamp, (), alone=True))
    for _ in range(6):
        old = random.sample(holders, random.randint(0, len(holders)))
        new = random.sample(fresh, random.randint(0, len(fresh)))
        if not old and not new:
            continue
        signatures = {one.key_id: one.seal("keys", payload).signature for one in (*old, *new)}
        message = keys_envelope(payload, signatures)
        enough = len(old) >= known.threshold and len(new) >= threshold
        node = Node(trust, known)
        reason = hearing(node, message)
        assert reason == ("" if enough else "ThresholdNotMet"), f"{len(old)}, {len(new)}"
        assert enough or node.trust.roots == known


def hearing(node: Node, message: Envelope) -> str:
    """Why a node does not believe a message; empty if it does."""
    try:
        node.hear(message)
    except RootsRefused as refused:
        return refused.reason
    return ""


LAWS = (followed, stays, revoked, by_both)


@pytest.mark.parametrize("law", LAWS)
def test_the_law_holds(law):
    for seed in range(SEEDS):
        law(Trust, seed)


# Planted faults, one for each rule.


class NewRootsOnly(Trust):
    """Other roots are believed by their own word alone."""

    def follow(self, envelope: Envelope) -> None:
        offered = trust.roots_of(keys_record(envelope))
        assert offered is not None
        RootWalk(self.tree, offered).follow(envelope)
        self.roots = offered


class FormerRootsOnly(Trust):
    """Other roots are believed by the word of those before, whether they agree or not."""

    def follow(self, envelope: Envelope) -> None:
        record = keys_record(envelope)
        signed = trust.signers_of(self.tree, envelope, self.roots)
        if len(signed) < self.roots.threshold:
            raise RootsRefused("ThresholdNotMet", "")
        self.roots = trust.roots_of(record) or self.roots


class OneIsEnough(Trust):
    """One signature counts as all."""

    def follow(self, envelope: Envelope) -> None:
        self.roots = replace(self.roots, threshold=1)
        Trust.follow(self, envelope)


class NoForerunners(Trust):
    """Forerunners are passed over."""

    def follow(self, envelope: Envelope) -> None:
        Trust.follow(self, bare_keys(envelope))


class RevokedBelieved(Trust):
    """A key that is listed as revoked may sign what it could."""

    def adopt(self, record: KeysRecord) -> None:
        former = self.granted
        Trust.adopt(self, record)
        for key, grant in self.granted.items():
            if grant.is_revoked:
                kinds = former[key].kinds if key in former else ("node",)
                self.granted[key] = wire.replace(grant, kinds=kinds or ("node",))


class LastNotChecked(Trust):
    """The end of a grant is not looked at."""

    def adopt(self, record: KeysRecord) -> None:
        Trust.adopt(self, record)
        self.granted = {k: wire.replace(it, last=2**63 - 1) for k, it in self.granted.items()}


class FirstNotChecked(Trust):
    """The beginning of a grant is not looked at."""

    def adopt(self, record: KeysRecord) -> None:
        Trust.adopt(self, record)
        self.granted = {k: wire.replace(it, first=0) for k, it in self.granted.items()}


class ForgottenWithKey(Trust):
    """What is in force ends with the key that signed it."""

    def adopt(self, record: KeysRecord) -> None:
        Trust.adopt(self, record)
        self.granted = {k: it for k, it in self.granted.items() if "ask" in it.kinds}

    def recalls(self, envelope: Envelope) -> TrustVerdict:
        known = envelope.key_id in self.granted
        return Trust.recalls(self, envelope) if known else TrustVerdict.UNKNOWN_KEY


MUTANTS = (
    NewRootsOnly,
    FormerRootsOnly,
    OneIsEnough,
    NoForerunners,
    RevokedBelieved,
    LastNotChecked,
    FirstNotChecked,
    ForgottenWithKey,
)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_fault_breaks_a_law(mutant):
    assert any(broken(law, mutant, seed) for law in LAWS for seed in range(10)), mutant.__doc__


def broken(law, mutant: type[Trust], seed: int) -> bool:
    try:
        law(mutant, seed)
    except (AssertionError, RootsRefused):
        return True
    return False


# The walk, and what it refuses.


@pytest.fixture
def centre():
    return Centre(Random(7))


def refusal(pinned: Roots, message: Envelope) -> RootsRefused:
    with pytest.raises(RootsRefused) as refused:
        walk(TREE, pinned, message)
    return refused.value


def test_each_step_of_a_walk_leads_to_the_next_version(centre):
    pinned = centre.ring.pinned
    for _ in range(3):
        centre.other_roots()
    on_the_way = RootWalk(TREE, pinned)
    for one in (*forerunners_of(centre.message), centre.message):
        on_the_way.follow(one)
        on_the_way.assert_invariants()
    assert on_the_way.roots.version == 4


def test_a_forerunner_that_is_missing_is_named(centre):
    pinned = centre.ring.pinned
    for _ in range(3):
        centre.other_roots()
    first, second = forerunners_of(centre.message)
    signatures = signatures_of(centre.message)
    for kept in ((), (second,)):
        message = keys_envelope(centre.message.payload, signatures, kept)
        refused = refusal(pinned, message)
        assert refused.reason == "RootsUnreachable"
        assert "this node knows version 1" in refused.detail
    message = keys_envelope(centre.message.payload, signatures, (first,))
    assert "knows version 2" in refusal(pinned, message).detail


def test_a_forerunner_that_is_altered_is_not_believed(centre):
    pinned = centre.ring.pinned
    centre.other_roots()
    centre.other_roots()
    (first,) = forerunners_of(centre.message)
    thief = signer(centre.random)
    record = wire.replace(keys_record(first), roots=root_keys(publics(thief)), threshold=1)
    payload = encode_payload(record)
    forged = thief.seal("keys", payload)
    altered = replace(first, payload=payload)
    for one in (forged, altered):
        message = keys_envelope(centre.message.payload, signatures_of(centre.message), (one,))
        refused = refusal(pinned, message)
        assert refused.reason == "ThresholdNotMet"
        assert next(iter(pinned.keys)) in refused.detail
    body = wire.encode(KeysBody((), (b"no message",)))
    assert refusal(pinned, replace(centre.message, body=body)).reason == "Unreadable"


def test_roots_do_not_go_back_and_no_version_is_said_twice(centre):
    old = centre.message
    centre.other_roots()
    assert refusal(centre.ring.pinned, old).reason == "KeysTooOld"
    assert refusal(replace(centre.ring.pinned, since=0), old).reason == "RootsWentBack"
    other = Centre(Random(8))
    thief = replace(centre.ring.pinned, keys=publics(*other.ring.roots), threshold=1, since=0)
    twice = wire.replace(other.record, version=centre.record.version)
    message = other.ring.roots[0].seal("keys", encode_payload(twice))
    assert walk(TREE, thief, message) == thief
    assert refusal(replace(centre.ring.pinned, since=0), message).reason == "ThresholdNotMet"


def test_a_record_of_the_roots_before_them_all_is_judged_by_the_pin(centre):
    """As of a tree that was made before roots could change."""
    pinned = replace(centre.ring.pinned, since=0)
    record = wire.replace(centre.record, roots=())
    message = centre.ring.roots[0].seal("keys", encode_payload(record))
    assert walk(TREE, pinned, message) == pinned
    centre.other_roots()
    assert refusal(replace(centre.ring.pinned, since=0), message).reason == "RootsWentBack"


def test_what_a_node_kept_it_recalls_by_roots_newer_or_older_than_the_pin(centre):
    first = centre.ring.pinned
    centre.other_roots()
    newer = centre.ring.pinned
    assert replace(recall(TREE, first, centre.message), since=0) == replace(newer, since=0)
    bare = bare_keys(centre.message)
    old = Centre(Random(7)).message
    assert recall(TREE, newer, old) == newer
    damaged = replace(bare, payload=old.payload)
    with pytest.raises(RootsRefused):
        recall(TREE, newer, damaged)


def test_two_names_of_one_root_do_not_count_twice(centre):
    root = centre.ring.roots[0]
    twin = Signer(TREE, KeyId("z" * 26), root.seed)
    with pytest.raises(KeysRefused, match="named twice"):
        centre.change(KeyChange(roots=publics(root, twin), threshold=2))


@pytest.mark.parametrize(("count", "threshold"), [(2, 3), (17, 1)])
def test_roots_that_cannot_be_are_refused_before_anything_changes(centre, count, threshold):
    before = centre.ring
    roots = publics(*(signer(centre.random) for _ in range(count)))
    with pytest.raises(KeysRefused):
        centre.change(KeyChange(roots=roots, threshold=threshold))
    assert centre.ring == before


# Bounds.


def test_a_thousand_rotations_leave_a_bounded_message(monkeypatch):
    """Nobody signs here: the size is that of what would be signed."""
    monkeypatch.setattr(Signer, "public_key", property(lambda one: one.seed))
    monkeypatch.setattr(Envelope, "verify", lambda *_: True)
    monkeypatch.setattr(
        Signer, "seal", lambda one, kind, payload: Envelope(kind, one.key_id, payload, bytes(64))
    )
    centre = Centre(Random(1))
    for turn in range(1_000):
        made = signer(centre.random)
        if turn % 4:
            centre.change(KeyChange(signing=made), {made.key_id})
        else:
            centre.change(KeyChange(roots=publics(made), made=(made,)), {made.key_id})
        del centre.former[:]
        centre.generation += 90_000_000
    body = keys_body(centre.message)
    assert len(body.forerunners) == FORERUNNERS_MAX
    assert sum(map(len, body.forerunners)) <= FORERUNNERS_MAX_BYTES
    assert len(centre.record.grants) <= 32
    assert centre.record.version == 251


def test_of_too_many_keys_the_oldest_that_ended_go(centre):
    first = centre.ring.signing
    for _ in range(100):
        centre.rotate()
    assert len(centre.record.grants) == GRANTS_MAX
    before = centre.signed(first, 1001)
    assert unbelieved(centre.record, {"k": before[1]}, {"k": before[0]}) == ["k"]


# Requests that others sign.


def request_for(centre: Centre, change: KeyChange):
    made = (*change.made, *((change.signing,) if change.signing else ()))
    centre.ring = centre.ring.prepare(*made)
    stamp = Stamp(centre.tick(), TERM)
    record = changed_record(centre.ring, change, stamp, (), alone=False)
    return request_of(centre.ring, record, made)


def signed_too(request, *holders: Signer):
    new = {one.key_id: one.seal("keys", request.payload).signature for one in holders}
    return replace(request, signatures={**request.signatures, **new})


@pytest.fixture
def offline(centre):
    """Two of three roots sign, and all are elsewhere."""
    centre.others = [signer(centre.random) for _ in range(3)]
    centre.change(KeyChange(roots=publics(*centre.others), threshold=2))
    return centre


def test_a_request_is_in_force_once_enough_have_signed(offline):
    change = KeyChange(signing=signer(offline.random))
    assert not signs_alone(offline.ring, change)
    assert renewed(offline.ring, Stamp(offline.tick(), TERM)) is None
    request = request_for(offline, change)
    with pytest.raises(KeysRefused, match="no signature"):
        completed(offline.ring, request, offline.generation)
    one = signed_too(request, offline.others[0])
    with pytest.raises(RootsRefused, match="by 1 of the 2"):
        completed(offline.ring, one, offline.generation)
    ring = completed(offline.ring, signed_too(one, offline.others[2]), offline.tick() + 10**6)
    assert ring.signing == change.signing
    assert ring.roots == ring.prepared == ()


def test_a_request_is_void_once_the_keys_are_others(offline):
    old = signed_too(
        request_for(offline, KeyChange(signing=signer(offline.random))), *offline.others
    )
    offline.revoke()
    with pytest.raises(KeysRefused, match="changed since"):
        completed(offline.ring, old, offline.generation)


def test_a_request_that_comes_too_late_is_refused(offline):
    request = request_for(offline, KeyChange(signing=signer(offline.random)))
    request = signed_too(request, *offline.others)
    with pytest.raises(KeysRefused, match="too old"):
        completed(offline.ring, request, offline.generation + 31 * 24 * 3600 * 1000)


def test_a_request_of_another_tree_or_centre_is_refused(offline):
    request = signed_too(
        request_for(offline, KeyChange(signing=signer(offline.random))), *offline.others
    )
    with pytest.raises(KeysRefused, match="of tree"):
        completed(offline.ring, replace(request, tree=TreeId("x" * 26)), offline.generation)
    with pytest.raises(KeysRefused, match="is not here"):
        completed(replace(offline.ring, prepared=()), request, offline.generation)


def test_a_grant_of_its_own_kind_stays_as_it_is(centre):
    scoped = KeyGrant(KeyId("i" * 26), bytes(32), ("profile",), NodePath(("x",)))
    record = wire.replace(centre.record, grants=(*centre.record.grants, scoped))
    stamp = Stamp(centre.tick(), TERM)
    record = wire.replace(record, generation=stamp.generation)
    centre.ring = completed(centre.ring, request_of(centre.ring, record), stamp.generation)
    centre.rotate()
    assert scoped in centre.record.grants


def test_bytes_that_are_no_body_are_refused(centre):
    with pytest.raises(RecordRefused):
        signatures_of(replace(centre.message, body=b"\xc1"))
