"""What takes long of a translation is done before it, in turns: who is dear waits alone."""

import asyncio
import itertools
from types import SimpleNamespace

import pytest

from controllers.core.access.keyring import Keyring
from controllers.core.translation import clean_objects
from controllers.core.translation.placements import Placements
from controllers.core.translation.preparing import prepare, waiting
from controllers.core.workloads import collectors as collectors_room
from controllers.core.workloads import health_rules as health_room
from controllers.core.workloads import transforms as transforms_room
from controllers.core.workloads.customizers import Customizers
from controllers.work_queue import PlacementQueues
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.preparation import (
    PREPARED_SECONDS_MAX,
    SHARE_SECONDS,
    WALKS_MAX,
    Preparation,
)
from relay.core.instant import Instant
from relay.shell.evaluator import CelEvaluator
from schemas.content.blobs import PROGRAM
from schemas.objects.annotations import DEPENDS_ON, HEALTH
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.values.identity import TreeId, random_id
from tests.unit.centre_world import config, config_key, placement

RING = Keyring(TreeId(random_id(b"a tree of tests ")), (b"m" * 32,))
STEP_SECONDS = 0.01


def collector(name, *columns):
    select = [{"name": f"c{at}", "def": text} for at, text in enumerate(columns)]
    form = {"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "StatusCollector"}
    return {**form, "metadata": {"name": name}, "spec": {"select": select}}


def placements(*objects):
    seen = Placements("space", {}, keys_of=RING.keys)
    seen.listed({BUILT_IN_KINDS.key_of(obj): obj for obj in objects})
    return seen


def collecting(name, namespace, count, *collectors):
    clause = {"namespaces": [namespace], "statusCollectors": list(collectors)}
    objects = [config(f"c{at:03}", namespace) for at in range(count)]
    return placement(name, clause), *objects


class Evaluations:
    """How often blank rows were evaluated."""

    def __init__(self, monkeypatch):
        self.count = 0
        evaluate = CelEvaluator.blanks_and_steps

        def counted(evaluator, program, plain):
            self.count += 1
            return evaluate(evaluator, program, plain)

        monkeypatch.setattr(CelEvaluator, "blanks_and_steps", counted)


class SlowClock:
    """Time goes on by what is evaluated, and by nothing else."""

    def __init__(self, evaluations):
        self._evaluations = evaluations

    def now(self):
        return Instant(self._evaluations.count * STEP_SECONDS, 0)


@pytest.fixture
def evaluations(monkeypatch):
    return Evaluations(monkeypatch)


def test_what_was_prepared_is_not_done_again_in_the_translation(evaluations):
    seen = placements(collector("a", "obj.kind"), *collecting("shop", "shop", 20, "a"))
    steps = sum(1 for _ in prepare(seen, "shop", lambda _name: True))
    assert steps >= evaluations.count == 20
    [work] = seen.next(["shop"])
    assert len(work.translation.entries) == 20
    assert evaluations.count == 20


def test_nothing_is_evaluated_for_what_is_not_sealed(evaluations):
    seen = placements(collector("a", "obj.kind"), *collecting("shop", "shop", 5, "a"))
    assert any(True for _ in prepare(seen, "shop", lambda _name: False))
    assert evaluations.count == 0


def test_blank_rows_of_a_placement_take_so_many_steps_and_the_rest_are_only_counted(
    evaluations, monkeypatch
):
    monkeypatch.setattr(clean_objects, "BLANK_STEPS_MAX", 2_000)
    seen = placements(collector("a", "obj.kind"), *collecting("shop", "shop", 50, "a"))
    [work] = seen.next(["shop"])
    assert len(work.translation.entries) == 50
    evaluated = evaluations.count
    assert 0 < evaluated < 20
    [reference] = work.translation.collectors
    assert reference.kind == PROGRAM
    # The same of the same: nothing is issued anew.
    seen.issued([work], [work.draft.stamped(5)])
    assert seen.next(["shop"]) == []
    assert evaluations.count == evaluated
    fresh = placements(collector("a", "obj.kind"), *collecting("shop", "shop", 50, "a"))
    [again] = fresh.next(["shop"])
    assert again.translation.programs == work.translation.programs
    assert evaluations.count == 2 * evaluated


async def test_a_dear_placement_delays_itself_and_not_the_others(evaluations):
    seen = placements(
        collector("a", "obj.kind"),
        *collecting("dear", "dear", 250, "a"),
        *collecting("shop", "shop", 2),
    )
    preparation, names = Preparation(SlowClock(evaluations)), frozenset({"dear", "shop"})
    assert await preparation.prepare(seen, names, lambda _name: True) == {"dear"}
    assert evaluations.count == 100
    # It goes on where it was, and comes to an end.
    rounds = 0
    while await preparation.prepare(seen, frozenset({"dear"}), lambda _name: True):
        rounds += 1
        assert evaluations.count <= 250
    assert (rounds, evaluations.count) == (1, 250)
    assert not preparation._walks
    assert PREPARED_SECONDS_MAX > SHARE_SECONDS > STEP_SECONDS


async def test_all_else_goes_on_between_the_steps(evaluations):
    seen = placements(collector("a", "obj.kind"), *collecting("shop", "shop", 50, "a"))
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await Preparation(SlowClock(evaluations)).prepare(seen, frozenset({"shop"}), lambda _name: True)
    counting.cancel()
    assert turns >= 25


def test_what_goes_from_one_placement_to_another_waits_for_both():
    def clause(*names, **annotations):
        return {"namespaces": ["shop"], "objectNames": list(names)}

    later = placement("later", clause("d"))
    later["metadata"]["annotations"] = {DEPENDS_ON: "takes"}
    seen = placements(
        config("a"), config("b"), config("c"), config("d"),
        placement("gives", clause("a", "b")),
        placement("takes", clause("c")),
        placement("other", clause("c", "d")),
        later,
    )  # fmt: skip
    works = seen.next(["gives"])
    seen.issued(works, [work.draft.stamped(5) for work in works])
    seen.put(config_key("x"), config("x"))
    key = BUILT_IN_KINDS.key_of(placement())
    for name, said in (("gives", clause("a")), ("takes", clause("b", "c"))):
        seen.put(key.__class__(key.group, key.resource, "", name), placement(name, said))
    names = frozenset({"gives", "takes", "other", "later"})
    assert waiting(seen, ["takes"], names) == names
    assert waiting(seen, ["gives"], frozenset({"gives", "other"})) == {"gives"}


class CastingClock:
    """Time goes on with each look at an object, and something may happen then."""

    def __init__(self, monkeypatch, seconds):
        self.looks, self.then, self.keys = 0, lambda: None, []
        casting = Customizers.casting

        def counted(customizers, key, obj):
            self.looks += 1
            self.keys.append(key)
            self.then()
            return casting(customizers, key, obj)

        monkeypatch.setattr(Customizers, "casting", counted)
        self._seconds = seconds

    def now(self):
        return Instant(self.looks * self._seconds, 0)


async def rounds_of(preparation, seen, names, between=lambda: None):
    """In how many rounds all of these are prepared."""
    for number in range(1, 100):
        if not await preparation.prepare(seen, names, lambda _name: True):
            return number
        between()
    return None


def shop_key(name):
    return ObjectKey("edge.kubestellar.io", "edgeplacements", "", name)


async def test_very_many_that_share_an_object_are_prepared_in_the_end(monkeypatch):
    names = frozenset(f"p{at:02}" for at in range(40))
    own = [config("own", name) for name in names]
    clauses = {n: {"namespaces": ["all", n], "objectNames": ["shared", "own"]} for n in names}
    seen = placements(
        config("shared", "all"), *own, *(placement(n, clause) for n, clause in clauses.items())
    )
    clock = CastingClock(monkeypatch, PREPARED_SECONDS_MAX / 20)
    preparation = Preparation(clock)
    assert await rounds_of(preparation, seen, names) > 2
    # Each once, and the shared one is looked at by all.
    assert clock.looks <= 2 * 2 * len(names)
    assert not preparation._walks


async def test_who_changed_while_it_waited_is_prepared_anew(monkeypatch):
    clause = {"namespaces": ["shop"]}
    seen = placements(placement("shop", clause), *(config(f"c{at:02}") for at in range(30)))
    clock, names = CastingClock(monkeypatch, PREPARED_SECONDS_MAX / 20), frozenset({"shop"})
    preparation = Preparation(clock)
    assert await preparation.prepare(seen, names, lambda _name: True) == names
    first = clock.keys[0]
    preparation.changed(seen.put(first, config("c00", value="news")))
    clock.keys.clear()
    assert await rounds_of(preparation, seen, names)
    assert first in clock.keys
    assert not preparation._walks


async def test_what_changes_all_the_time_holds_nothing_back_for_ever(monkeypatch):
    seen = placements(placement("shop", {"namespaces": ["shop"]}), config("a"), config("b"))
    clock, names = CastingClock(monkeypatch, 2 * SHARE_SECONDS), frozenset({"shop"})
    preparation = Preparation(clock)
    clock.then = lambda: preparation.changed(seen.put(config_key("a"), config("a")))
    assert await rounds_of(preparation, seen, names) < WALKS_MAX
    clock.then = lambda: None
    assert await rounds_of(preparation, seen, names) == 1


async def test_what_waits_together_does_not_go_out_apart_though_one_of_it_is_asked_for(monkeypatch):
    def clause(*names):
        return {"namespaces": ["shop"], "objectNames": list(names)}

    names = [f"c{at:02}" for at in range(30)]
    seen = placements(
        config("x"), *map(config, names),
        placement("gives", clause("x")), placement("takes", clause("c00")),
        placement("other", clause("y")),
    )  # fmt: skip
    works = seen.next(["gives"])
    seen.issued(works, [work.draft.stamped(5) for work in works])
    seen.put(shop_key("gives"), placement("gives", clause("none")))
    seen.put(shop_key("takes"), placement("takes", clause("x", *names)))
    preparation = Preparation(CastingClock(monkeypatch, PREPARED_SECONDS_MAX / 20))
    both = frozenset({"gives", "takes"})
    sealed = lambda _name: True  # noqa: E731
    assert await preparation.prepare(seen, both, sealed) == both
    assert await preparation.prepare(seen, frozenset({"gives", "other"}), sealed) == {"gives"}
    assert await rounds_of(preparation, seen, both)


async def test_what_is_selected_meanwhile_and_not_read_yet_is_waited_for(monkeypatch):
    seen = placements(
        config("a"), config("b"),
        placement("shop", {"namespaces": ["shop"], "objectNames": ["a"]}),
    )  # fmt: skip
    seen.workloads.thin([config_key("b")])
    clock, names = CastingClock(monkeypatch, 0.0), frozenset({"shop"})
    preparation = Preparation(clock)
    spec = {"namespaces": ["shop"], "objectNames": ["b"]}
    clock.then = lambda: seen.put(shop_key("shop"), placement("shop", spec))
    assert await preparation.prepare(seen, names, lambda _name: True) == names
    # If it cannot be read either, that is said.
    assert await preparation.prepare(seen, names, lambda _name: True) == frozenset()


def test_what_is_forgotten_between_two_steps_and_stays_is_prepared_all_the_same(evaluations):
    seen = placements(
        collector("a", "obj.kind"), collector("b", "obj.data"),
        *collecting("shop", "shop", 1, "a", "b"),
    )  # fmt: skip
    for _ in prepare(seen, "shop", lambda _name: True):
        # As if a Denatured had the same object.
        for cleaned in seen.cleaned.values():
            cleaned.forget(config_key("c000"))
    assert evaluations.count == 2


def test_health_expressions_of_very_many_objects_are_read_once_each(monkeypatch):
    objects = [config(f"c{at}") for at in range(600)]
    for at, obj in enumerate(objects):
        obj["metadata"]["annotations"] = {HEALTH: f"obj.data.key == '{at}'"}
    seen = placements(placement(), *objects)
    [work] = seen.next(["shop"])
    seen.issued([work], [work.draft.stamped(5)])
    monkeypatch.setattr(
        "relay.objects.health_rules.CompiledExpression",
        lambda *_: pytest.fail("it was compiled again"),
    )
    assert seen.next(["shop"]) == []


class LateClock:
    """Each look at it comes a turn later."""

    def __init__(self):
        self._looks = 0

    def now(self):
        self._looks += 1
        return Instant(self._looks * 1.0, 0)


async def test_what_is_read_at_a_start_is_read_in_turns_and_once(monkeypatch):
    read = list[str]()
    parse = collectors_room.parse_wish

    def counted(obj):
        read.append(obj["metadata"]["name"])
        return parse(obj)

    for room in (collectors_room, transforms_room, health_room):
        monkeypatch.setattr(room, "parse_wish", counted)
    spec = {"apiGroup": "", "resource": "configmaps"}
    objects = [collector(f"s{at}", "obj.kind") for at in range(10)]
    objects += [
        {
            "apiVersion": "control.kubestellar.io/v1alpha1",
            "kind": "CustomTransform",
            "metadata": {"name": f"t{at}"},
            "spec": {**spec, "remove": [f"$.data.x{at}"]},
        }
        for at in range(10)
    ]
    objects += [
        {
            "apiVersion": "leafcast.io/v1alpha1",
            "kind": "HealthRule",
            "metadata": {"name": f"h{at}"},
            "spec": {**spec, "healthy": f"obj.data.x == '{at}'"},
        }
        for at in range(10)
    ]
    first = {BUILT_IN_KINDS.key_of(obj): obj for obj in objects}
    clock = LateClock()
    translator = PlacementTranslator(
        SimpleNamespace(
            listen=lambda _listener: None, records={}, keys=None, continuity=lambda _space: None
        ),
        SimpleNamespace(),
        SimpleNamespace(),
        clock,
        PlacementQueues(clock, finalizing=False),
        lambda *_: None,
    )
    between = list[int]()

    async def look():
        while True:
            between.append(len(read))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    await translator.ready(first)
    looking.cancel()
    assert len(read) == 30
    assert max(b - a for a, b in itertools.pairwise(between)) == 1
    translator.workloads.listed({**first}, {})
    assert len(read) == 30
