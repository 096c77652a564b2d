"""What the centre decides, without its errands: nothing before it was told, in force once kept."""

import asyncio

import pytest

from controllers.core.index import index_draft
from controllers.core.ledger import Ledger
from controllers.core.notes import Notes
from controllers.core.placements import Placements
from controllers.core.reading_back import ReadingBack
from controllers.core.recovery import Recalled
from controllers.core.registry import Registry, target_key
from controllers.core.removal import hold_objects
from controllers.core.translate import Issued, withdrawal
from controllers.following import AnotherSpace
from relay.adapters.spaces.memory_space import MemorySpace
from relay.core.tombstones import RETENTION_MS
from relay.ports import BusBroken
from schemas.identity import KeyId, TreeId, random_id
from schemas.objects import BUILT_IN_KINDS, ObjectKey
from schemas.records import encode_payload
from schemas.signing import Signer
from schemas.wire import replace
from tests.unit.centre_world import Centre, config, config_key, holds, placement, target

TREE = TreeId(random_id(b"a tree of tests "))

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")


def keyed(*objects):
    return {BUILT_IN_KINDS.key_of(obj): obj for obj in objects}


def placements(*, readable=True, notes=None):
    """The ledger holds shop with configmap a; the space was not listed yet."""
    first = Placements("space", {}, Notes())
    first.listed(keyed(config("a"), placement()))
    (work,) = first.next(["shop"])
    head = work.draft.stamped(5)
    entries = work.translation.entries if readable else None
    return Placements("space", {"shop": Issued(head, entries)}, notes or Notes())


def test_nothing_is_decided_before_the_space_was_listed_whole():
    seen = placements()
    assert seen.next(["shop"]) == []
    # Were it taken for known, the placement that nobody has shown yet would go.
    seen.known = True
    (work,) = seen.next(["shop"])
    assert work.draft.record.deleted
    registry = Registry("space", TREE, {}, Notes())
    assert registry.next([target_key("s1")]) == ([], {})


def test_a_tombstone_that_is_old_is_forgotten_and_its_namesake_comes_after_it():
    ledger, month = Ledger(TREE), RETENTION_MS
    heads = {name: placed(name).stamped(at) for at, name in enumerate(("shop", "gone"), start=5)}
    heads["late"] = replace(placed("late").stamped(month), deleted=True)
    heads["gone"] = replace(heads["gone"], deleted=True)
    for head in heads.values():
        ledger.remember("delta", head)
    assert ledger.old_tombstones(month) == []
    old = ledger.old_tombstones(month + 100)
    assert old == [heads["gone"].source.key]
    ledger.forget(old)
    assert set(ledger.records) == {heads["shop"].source.key, heads["late"].source.key}
    (again,) = ledger.stamp([placed("gone")], 0)
    assert again.generation > max(head.generation for head in heads.values())


def placed(name):
    seen = Placements("space", {}, Notes())
    seen.listed(keyed(config("a"), placement(name)))
    (work,) = seen.next([name])
    return work.draft


def test_placements_that_the_ledger_holds_no_more_are_forgotten():
    ledger = Ledger(TREE)
    gone, kept, there = (placed(name).stamped(5) for name in ("gone", "kept", "there"))
    gone, kept = (replace(head, deleted=True) for head in (gone, kept))
    for head in (kept, there):
        ledger.remember("delta", head)
    issued = {head.source.name: Issued(head, {}) for head in (gone, kept, there)}
    seen = Placements("space", issued, Notes(), ledger.records)
    seen.forget_old()
    assert set(seen._issued) == {"kept", "there"}


def test_of_what_is_gone_nothing_is_remembered():
    seen = Placements("space", {}, Notes())
    seen.listed(keyed(config("a"), placement()))
    seen.next(["shop"])
    seen.listed({})
    assert not seen._cleaned._known
    registry = Registry("space", TREE, {}, Notes())
    for named in (target("s1", "/r/s1"), target("s2", "/r/s1")):
        key = target_key(named["metadata"]["name"])
        registry.put(key, named)
    assert registry.deleted(target_key("s1")) == {target_key("s1"), target_key("s2")}
    registry.deleted(target_key("s2"))
    assert not registry._hanging


def test_a_list_of_another_identity_is_not_believed():
    assert placements().believes("space")
    assert not placements().believes("another")
    assert not Registry("space", TREE, {}, Notes()).believes("another")


def test_what_nobody_can_tell_the_losses_of_stays_until_someone_accepts():
    seen = placements(readable=False)
    assert seen.next(seen.listed(keyed(config("b"), placement()))) == []
    assert "content" in seen.held["shop"]
    (work,) = seen.next(seen.accept("shop"))
    assert {key.name for key in work.translation.entries} == {"b"}
    assert not seen.held


def test_objects_are_held_when_no_namespace_is_seen_any_more():
    lost = frozenset({config_key("a")})
    kinds = {("", "configmaps")}
    assert hold_objects(lost, lost, kinds, lost).items == lost
    assert not hold_objects(lost, lost, kinds | {("", "namespaces")}, lost).items


def test_what_is_held_keeps_its_definition_unless_that_was_deleted():
    crd = ObjectKey(*CRDS, "", "widgets.example.com")
    other = ObjectKey(*CRDS, "", "others.example.com")
    widget = ObjectKey("example.com", "widgets", "shop", "w")
    always = {**keyed(config("a"), placement()), other: defines("others")}
    whole = {**always, crd: defines("widgets"), widget: {"metadata": {"name": "w"}}}

    def issued():
        seen = Placements("space", {}, Notes())
        (work,) = seen.next(seen.listed(whole))
        assert work.translation.entries.keys() == {config_key("a"), crd, widget}
        seen.issued([work], [work.draft.stamped(5)])
        return seen

    # Without it a cluster would lose what is held.
    for shown in ({**always, crd: defines("widgets")}, always):
        seen = issued()
        assert seen.next(seen.listed(shown)) == []
        assert "no widgets are seen any more" in seen.held["shop"]
        (work,) = seen.next(seen.accept("shop"))
        assert work.translation.entries.keys() == {config_key("a")}
    # A deletion is taken at its word.
    seen = issued()
    seen.listed({**always, crd: defines("widgets")})
    (work,) = seen.next(seen.deleted(crd) | {"shop"})
    assert work.translation.entries.keys() == {config_key("a"), widget}


def defines(plural):
    spec = {"group": "example.com", "names": {"plural": plural}}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def test_a_read_that_was_broken_off_begins_again_at_the_next_start():
    notes = Notes(generation=7)
    ledger = Ledger(TREE)
    assert ReadingBack(ledger, notes).lost
    assert ledger.highest == 7
    # The start issued something by now: that is not what was lost.
    ledger.raise_to(9)
    again = ReadingBack(ledger, notes)
    assert again.lost
    again.ended()
    assert not ReadingBack(ledger, notes).lost


def test_what_a_later_index_does_not_list_is_superseded_and_nothing_else():
    keys = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
    head = placements()._issued["shop"].head
    ledger = Ledger(TREE)
    ledger.remember("delta", head)
    index = index_draft(TREE, {}, 0)[0].stamped(9)
    shown = keys.seal("index", encode_payload(index))
    reading = ReadingBack(ledger, Notes())
    assert reading.indexes() == []
    reading.showed("emea", [Recalled(shown, index, "emea")])
    (found,) = reading.indexes()
    assert found.record == index
    assert reading.superseded(found, {}) == [head]
    assert reading.superseded(found, {head.source.key: head.generation}) == []
    # One that showed it first may not have its content yet; an older one may do, too.
    before = Recalled(shown, replace(index, generation=8), "apac")
    reading.showed("apac", [before, Recalled(shown, index, "apac")])
    told = [(item.record.generation, item.child) for item in reading.indexes()]
    assert told == [(9, "emea"), (9, "apac"), (8, "apac")]
    later = Recalled(shown, replace(index, generation=head.generation - 1), "emea")
    assert reading.superseded(later, {}) == []


def test_what_a_child_shows_in_part_counts_and_nothing_is_told_by_what_it_lacks():
    keys = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
    old, new, other = placed("shop").stamped(5), placed("shop").stamped(7), placed("lab").stamped(6)

    def shown(child, *heads):
        sealed = [(keys.seal("delta", encode_payload(head)), head) for head in heads]
        return [Recalled(envelope, head, child) for envelope, head in sealed]

    reading = ReadingBack(Ledger(TREE), Notes(generation=9), ["apac", "emea"])
    reading.showed("emea", shown("emea", new))
    assert reading.awaited == {"apac"}
    assert reading.partial == set()
    reading.go_on_without("apac")
    assert (reading.awaited, reading.partial) == (set(), {"apac"})
    # The newest of each key counts, whoever shows it; and what only the one in part has, too.
    reading.showed("apac", shown("apac", old, other), whole=False)
    assert [item.record for item in reading.restored()] == [other, new]
    # It may show more later, instead of what it showed before.
    assert reading.partial == {"apac"}
    reading.showed("apac", shown("apac", old))
    assert [item.record for item in reading.restored()] == [new]
    assert reading.partial == set()


def test_only_a_child_that_someone_goes_on_without_is_given_up_when_it_is_silent():
    reading = ReadingBack(Ledger(TREE), Notes(generation=9), ["apac"])
    reading.was_silent("apac")
    assert not reading.is_given_up("apac")
    reading.go_on_without("apac")
    # It may still show what it has, until it gives no answer.
    assert not reading.is_given_up("apac")
    reading.was_silent("apac")
    assert reading.is_given_up("apac")


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_tombstone_that_the_ledger_did_not_take_is_in_force_nowhere(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    issuer = centre.controllers().issuer
    told = []
    issuer.told = told.append

    async def broken(_blobs, _envelopes):
        raise BusBroken("the disk is full")

    centre.relay.publish = broken
    head = centre.relay.delta("shop")
    with pytest.raises(BusBroken):
        await issuer.issue([withdrawal(Issued(head, {}))])
    assert head.source.key in issuer.in_force
    assert not told


async def test_a_space_that_becomes_another_one_ends_the_run_and_withdraws_nothing(centre):
    await centre.apply(config("a"), placement())

    class Switching(MemorySpace):
        """Becomes another space, with nothing in it, once it is listed again."""

        broken = asyncio.Event()

        async def watch(self, since):
            await self.broken.wait()
            self._identity, self._entries = "another", {}
            return
            yield

    centre.wds.__class__ = Switching

    async def until_it_ends():
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            group.create_task(centre.controllers().run())
            await centre.relay.until(holds("a"))
            Switching.broken.set()

    with pytest.raises(ExceptionGroup) as ended:
        await until_it_ends()
    assert ended.group_contains(AnotherSpace)
    assert not centre.relay.delta("shop").deleted


def test_what_came_back_without_its_body_concerns_nobody_and_hinders_nothing():
    head = placements()._issued["shop"].head
    bare = Placements("space", {"shop": Issued(head, {})}, Notes())
    (work,) = bare.next(bare.listed(keyed(config("b"), placement())))
    assert {key.name for key in work.translation.entries} == {"b"}
