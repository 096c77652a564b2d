"""What the centre decides, without its errands: nothing before it was told, in force once kept."""

import asyncio

import pytest

from controllers.core.inventory.registry import Registry, RegistryWork, target_key
from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.removal import hold_objects
from controllers.core.translation.placements import Placements
from controllers.core.translation.translate import IssuedDelta
from relay.ports import BusBroken
from relay.space_errors import AnotherSpace
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.records.signed_records import EncodedBody
from schemas.values.identity import TreeId, random_id
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import Centre, config, config_key, holds, placement, target

TREE = TreeId(random_id(b"a tree of tests "))

CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")


def keyed(*objects):
    return {BUILT_IN_KINDS.key_of(obj): obj for obj in objects}


def placements(*, readable=True):
    """The ledger holds shop with configmap a; the space was not listed yet."""
    first = Placements("space", {})
    first.listed(keyed(config("a"), placement()))
    (work,) = first.next(["shop"])
    head = work.draft.stamped(5)
    entries = work.translation.entries if readable else None
    return Placements("space", {"shop": IssuedDelta(work.translation.gates, entries, head=head)})


def test_nothing_is_decided_before_the_space_was_listed_whole():
    seen = placements()
    assert seen.next(["shop"]) == []
    # Were it taken for known, the placement that nobody has shown yet would go.
    seen.known = True
    (work,) = seen.next(["shop"])
    assert work.draft is None
    registry = Registry("space", TREE, {})
    assert registry.next([target_key("s1")], 0) == RegistryWork()


def test_of_what_is_gone_nothing_is_remembered():
    seen = Placements("space", {})
    seen.listed(keyed(config("a"), placement()))
    seen.next(["shop"])
    seen.listed({})
    assert not any(cleaned._known for cleaned in seen.cleaned.values())
    registry = Registry("space", TREE, {})
    for named in (target("s1", "/r/s1"), target("s2", "/r/s1")):
        key = target_key(named["metadata"]["name"])
        registry.put(key, named)
    assert registry.deleted(target_key("s1")) == {target_key("s1"), target_key("s2")}
    registry.deleted(target_key("s2"))
    assert not registry._hanging


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
        seen = Placements("space", {})
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


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_record_that_the_ledger_did_not_take_is_in_force_nowhere(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    issuer = (await centre.controllers()).issuer
    before = dict(issuer.records)

    async def broken(_blobs, _envelopes):
        raise BusBroken("the disk is full")

    centre.relay.publish = broken
    head = centre.relay.delta("shop")
    with pytest.raises(BusBroken):
        await issuer.issue(
            [Draft("delta", head, EncodedBody(b"body", None))], delete=[head.source.key]
        )
    assert dict(issuer.records) == before


async def test_a_space_that_becomes_another_one_ends_the_run_and_deletes_nothing(centre):
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
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task((await centre.controllers()).run())
            await centre.relay.until(holds("a"))
            Switching.broken.set()

    with pytest.raises(ExceptionGroup) as ended:
        await until_it_ends()
    assert ended.group_contains(AnotherSpace)
    assert centre.relay.delta("shop")
