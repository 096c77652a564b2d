"""Batches that were judged: written once, part by part, and forgotten by bounds."""

import asyncio
import base64
import json
import threading
import zlib
from contextlib import AsyncExitStack

import nats.errors
import pytest

from leafcast.ask.api import ApiError
from leafcast.changes import batches
from leafcast.changes.batches import Batch, Batches
from leafcast.changes.deletions import batch_of, kept_back, with_contents
from leafcast.changes.forms import ApplyBatch, TooLargeBatch, apply_text, pack, unpack
from leafcast.changes.judge import BatchJudgement
from leafcast.changes.space_pair import SpacePair
from leafcast.daemon.verbs import changes
from leafcast.daemon.verbs.changes import APPLIES_AT_ONCE, JUDGED_MAX
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import HandClock, SeededDice
from tests.doubles.changing_daemon import ChangingDaemon, Paused
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import config, placement

SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def paused():
    return Paused()


@pytest.fixture
def kept(clock, paused):
    return Batches(lambda: paused, clock, SeededDice())


def step(outcome=None, error=None, after=lambda: None):
    async def write():
        after()
        if error is not None:
            raise error
        return outcome

    return write


def one_by_one(*steps, size=1, **how):
    return Batch([[each] for each in steps], size, **how)


async def whole(kept, name):
    """All results of a batch, and how many parts they came in."""
    results, parts = [], 0
    while True:
        answer = await kept.write(name, {})
        results += answer["results"]
        parts += 1
        if answer["done"]:
            return results, parts


async def test_a_batch_is_written_once_and_its_name_is_good_for_nothing_then(kept):
    name = kept.keep(one_by_one(step({"a": 1})))
    assert await whole(kept, name) == ([{"after": {"a": 1}}], 1)
    for late in (name, "another", None, [], 7):
        with pytest.raises(ApiError, match="nobody judged this batch"):
            await kept.write(late, {})


async def test_what_takes_long_is_answered_for_in_parts_and_held_till_the_last(kept, clock, paused):
    def wait():
        clock.ahead += batches.PART_SECONDS + 1

    name = kept.keep(one_by_one(*[step({"n": n}, after=wait) for n in range(3)]))
    results, parts = await whole(kept, name)
    assert [result["after"]["n"] for result in results] == [0, 1, 2]
    assert parts == 3
    assert paused.said == [*[("hold", name)] * 3, ("release", name)]


async def test_what_is_large_is_answered_for_in_parts(kept):
    large = {"text": "x" * batches.PART_BYTES}
    assert (await whole(kept, kept.keep(one_by_one(step(large), step(large)))))[1] == 2


@pytest.mark.parametrize(("goes_on", "written"), [(True, 3), (False, 2)])
async def test_after_a_refusal_a_batch_goes_on_only_if_it_says_so(kept, goes_on, written):
    refused = step(error=SpaceError("Forbidden", "no"))
    name = kept.keep(one_by_one(step({}), refused, step({}), goes_on=goes_on))
    results, _ = await whole(kept, name)
    assert len(results) == written
    assert results[1]["refused"]["reason"] == "Forbidden"


async def test_what_a_person_confirmed_is_let_go_before_anything_goes_out(kept, paused):
    name = kept.keep(one_by_one(step({})))
    answer = await kept.write(name, {"shop": 80})
    assert answer["warning"] == ""
    assert paused.said == [("hold", name), ("confirm", {"shop": 80}), ("release", name)]


@pytest.mark.parametrize("ended", [False, True])
async def test_what_a_person_confirmed_does_not_count_if_the_change_was_cut_short(
    kept, paused, ended
):
    def end():
        kept.end(name)

    cut = step({}, after=end) if ended else step(error=SpaceError("Forbidden", "no"))
    name = kept.keep(one_by_one(cut, step({})))
    assert (await kept.write(name, {"shop": 80}))["done"]
    assert {word for word, _ in paused.said} == {"hold", "release"}


async def test_while_the_centre_starts_it_is_written_and_what_is_held_then_is_said(clock):
    def starting():
        raise BusBroken("the centre is starting")

    kept = Batches(starting, clock, SeededDice())
    answer = await kept.write(kept.keep(one_by_one(step({}))), {"shop": 80})
    assert answer["results"] == [{"after": {}}]
    assert answer["warning"] == "the centre is starting; try again in a moment"


async def test_what_its_command_left_half_written_goes_out_and_is_forgotten(kept, clock, paused):
    def wait():
        clock.ahead += batches.PART_SECONDS + 1

    name = kept.keep(one_by_one(step({}, after=wait), step({})))
    assert not (await kept.write(name, {}))["done"]
    clock.ahead += batches.FORGOTTEN_SECONDS + 1
    with pytest.raises(ApiError, match="nobody judged this batch"):
        await kept.write(name, {})
    assert paused.said == [("hold", name), ("release", name)]


async def test_a_batch_that_is_ended_while_it_is_written_is_written_no_further(kept, paused):
    name = kept.keep(one_by_one(step({}, after=lambda: kept.end(name)), step({})))
    answer = await kept.write(name, {})
    assert answer["done"]
    assert answer["results"] == [{"after": {}}]
    assert {word for word, _ in paused.said} == {"hold", "release"}


@pytest.mark.parametrize("size", [1, batches.BYTES_MAX // 4])
async def test_of_too_many_those_that_nobody_asks_for_give_way_and_else_a_new_one(
    kept, clock, size
):
    most = batches.BATCHES_MAX if size == 1 else 4
    names = [kept.keep(one_by_one(step({}), size=size)) for _ in range(most)]
    with pytest.raises(ApiError, match="too many changes wait"):
        kept.keep(one_by_one(step({}), size=size))
    clock.ahead += batches.IDLE_SECONDS + 1
    kept.page(names[0], 0)
    kept.keep(one_by_one(step({}), size=size))
    with pytest.raises(ApiError, match="nobody judged this batch"):
        kept.page(names[1], 0)
    assert (await whole(kept, names[0]))[1] == 1


async def test_a_batch_that_is_being_written_is_written_by_no_other_at_once(kept):
    written = []
    steps = [step({}, after=lambda n=n: written.append(n)) for n in range(20)]
    name = kept.keep(one_by_one(*steps))

    async def waited():
        await begun.wait()

    begun = asyncio.Event()
    waiting = kept.keep(one_by_one(waited))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(kept.write(waiting, {}))
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="another question has this batch written"):
            await kept.write(waiting, {})
        assert (await whole(kept, name))[1] == 1
        begun.set()
    assert first.result()["done"]
    assert written == list(range(20))


async def test_what_takes_long_in_a_single_step_stays_held(kept, paused, monkeypatch):
    monkeypatch.setattr(batches, "HOLD_AGAIN_SECONDS", 0.0)

    async def until_held_again():
        while len(paused.said) < 3:
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        answer = await kept.write(kept.keep(one_by_one(until_held_again)), {})
    assert answer["done"]
    assert paused.said[-1][0] == "release"


async def test_a_defect_in_a_step_loses_nothing_of_what_was_written_beside_it(kept):
    broken = step(error=RuntimeError("no such thing"))
    name = kept.keep(one_by_one(step({"a": 1}), broken, step({"b": 2}), goes_on=True))
    (first, second, third), _ = await whole(kept, name)
    assert (first, third) == ({"after": {"a": 1}}, {"after": {"b": 2}})
    assert "RuntimeError: no such thing" in second["refused"]["message"]


@pytest.mark.parametrize("error", [TimeoutError(), BusBroken("x"), nats.errors.TimeoutError()])
async def test_of_a_step_that_no_server_answered_it_is_said_that_nobody_knows(kept, error):
    name = kept.keep(one_by_one(step({"n": 1}), step(error=error)))
    *_, unknown = (await kept.write(name, {}))["results"]
    said = "the server of the space did not answer: whether it was written is not known"
    assert unknown["refused"]["reason"] == "ServiceUnavailable"
    assert unknown["refused"]["message"] == said


async def test_a_batch_for_which_idle_ones_make_no_room_ends_none(kept, clock):
    names = [kept.keep(one_by_one(step({}), size=batches.BYTES_MAX // 4)) for _ in range(4)]
    clock.ahead += batches.IDLE_SECONDS + 1
    kept.page(names[0], 0)
    for size, code in [(batches.BYTES_MAX, "Busy"), (batches.BYTES_MAX + 1, "TooLarge")]:
        with pytest.raises(ApiError) as refused:
            kept.keep(one_by_one(step({}), size=size))
        assert refused.value.code == code
    assert [kept.page(name, 0) for name in names] == [""] * 4


@pytest.fixture
async def spaces(clock):
    space = MemorySpace(clock, SeededDice())
    for obj in (SHOP, config("a"), config("b"), placement()):
        await space.apply(obj, "me")
    return SpacePair(space, MemorySpace(clock, SeededDice()))


async def test_what_a_namespace_holds_goes_before_it_though_nobody_named_it(spaces, kept):
    named = {ObjectKey("", "namespaces", "", "shop"): ""}
    targets = await with_contents(spaces, named)
    assert [target.key.resource for target in targets] == ["configmaps", "configmaps", "namespaces"]
    await whole(kept, kept.keep(batch_of(spaces, targets, 1)))
    left = (await spaces.workloads.list()).objects
    assert [obj["kind"] for obj in left] == ["EdgePlacement"]


@pytest.mark.parametrize(
    "key",
    [ObjectKey("", "namespaces", "", "shop"), ObjectKey("", "configmaps", "shop", "a")],
    ids=str,
)
async def test_what_came_in_the_place_of_an_object_is_refused_with_all_that_it_holds(spaces, key):
    with pytest.raises(SpaceError) as refused:
        await with_contents(spaces, {key: "another"})
    assert refused.value.reason == "Conflict"


async def test_what_a_rollout_keeps_back_of_a_placement_that_goes_too_is_no_question(spaces):
    rollout = {"apiVersion": "leafcast.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
    await spaces.workloads.apply(rollout | {"spec": {"placement": {"name": "shop"}}}, "me")
    of_rollout = ObjectKey("leafcast.io", "rollouts", "", "r")
    of_placement = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")

    async def keeping(rollouts):
        return [{"rollout": name, "placement": "shop"} for name in rollouts]

    alone = await with_contents(spaces, {of_rollout: ""})
    assert len(await kept_back(alone, keeping)) == 1
    both = await with_contents(spaces, {of_rollout: "", of_placement: ""})
    assert await kept_back(both, keeping) == []
    neither = await with_contents(spaces, {of_placement: ""})
    assert list(await kept_back(neither, keeping)) == []


async def test_a_batch_of_more_than_a_page_is_told_page_by_page(clock):
    daemon = ChangingDaemon(MemorySpace(clock, SeededDice()), MemorySpace(clock, SeededDice()))
    maps = [config(f"c{at}", value="x" * 900_000) for at in range(4)]
    form = {"namespace": None, "unread": False, "placing": None, "create_namespaces": True}
    loaded = [
        {"object": obj, "origin": "m.yaml", "line": at, "notes": []} for at, obj in enumerate(maps)
    ]
    answer = await daemon.call("apply-judge", batch=pack({**form, "loaded": loaded}), dry=True)
    names = [it["wish"]["key"][-1] for it in unpack(answer["page"])]
    batch, page = answer["batch"], 0
    while answer["more"]:
        page += 1
        answer = await daemon.call("changes-read", batch=batch, page=page)
        names += [it["wish"]["key"][-1] for it in unpack(answer["page"])]
    assert page
    assert names == ["shop", "c0", "c1", "c2", "c3"]
    assert len(json.dumps(answer)) < 2_000_000


def test_what_opens_into_too_many_values_is_refused_before_it_is_read():
    bomb = base64.b64encode(zlib.compress(b"[" + b"[]," * 2_000_000 + b"[]]")).decode()
    with pytest.raises(TooLargeBatch, match="2000000 values"):
        unpack(bomb)
    text = {"table": '"a\\",[' * 600_000}
    assert unpack(pack(text)) == text


async def test_more_changes_than_are_judged_at_a_time_are_busy(clock):
    daemon = ChangingDaemon(MemorySpace(clock, SeededDice()), MemorySpace(clock, SeededDice()))
    async with AsyncExitStack() as stack:
        for _ in range(JUDGED_MAX):
            await stack.enter_async_context(daemon.verbs.judging())
        key = ["", "configmaps", "shop", "a"]
        questions = {
            "apply-judge": {"batch": "", "dry": True},
            "delete-judge": {"objects": [[*key, ""]]},
            "label-judge": {"objects": [key], "labels": {"a": "b"}},
        }
        for verb, arguments in questions.items():
            assert (await daemon.call(verb, **arguments))["code"] == "Busy"
    assert (await daemon.call("label-judge", **questions["label-judge"]))["refused"]


async def test_few_batches_are_opened_at_a_time_and_the_others_wait(clock, monkeypatch):
    opened, most, free = 0, 0, asyncio.Event()

    async def judging(*_):
        nonlocal opened, most
        opened += 1
        most = max(most, opened)
        if opened == APPLIES_AT_ONCE:
            free.set()
        await free.wait()
        opened -= 1
        return BatchJudgement()

    monkeypatch.setattr(changes, "judge", judging)
    daemon = ChangingDaemon(MemorySpace(clock, SeededDice()), MemorySpace(clock, SeededDice()))
    batch = apply_text(ApplyBatch([]))
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(daemon.call("apply-judge", batch=batch, dry=True)) for _ in range(6)
        ]
    assert most == APPLIES_AT_ONCE
    assert all(task.result()["more"] is False for task in asked)


async def test_what_is_told_of_a_batch_is_put_together_beside_the_loop(clock, monkeypatch):
    threads, real = [], changes.writing.batch_of

    def batch_of(*arguments):
        threads.append(threading.current_thread())
        return real(*arguments)

    monkeypatch.setattr(changes.writing, "batch_of", batch_of)
    daemon = ChangingDaemon(MemorySpace(clock, SeededDice()), MemorySpace(clock, SeededDice()))
    await daemon.call("apply-judge", batch=apply_text(ApplyBatch([])), dry=True)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
