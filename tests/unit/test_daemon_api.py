"""What the daemon answers, whatever it is asked; and the log of what happened."""

import asyncio
import fcntl
import json
from itertools import pairwise

import click
import nats.errors
import pytest

from leafcast.ask.api import ANSWER_BYTES_MAX, Api, ApiError
from leafcast.ask.session import API_PREFIX, CallFailed, NotRunning, Session
from leafcast.cli.commands.events import events_wanted
from leafcast.daemon.event_log import EventLog, conditions_of, errors_of, follow_conditions
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import QuestionUnanswered
from relay.core.effects import Noted
from relay.objects.stored_object import timestamp
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from schemas.values.wording import repair_text
from tests.doubles.memory_space import MemorySpace


async def double(number: int = 1) -> int:
    return 2 * number


async def refuse() -> None:
    raise ApiError("NotFound", "there is no such thing", "look elsewhere")


async def fail() -> None:
    raise ZeroDivisionError("by zero")


async def flood() -> str:
    return "x" * ANSWER_BYTES_MAX


@pytest.fixture
def api():
    made = Api()
    for handler in (double, refuse, fail, flood):
        made.register(handler.__name__, handler)
    return made


async def asked(api, verb, question=b"{}"):
    return json.loads(await api.answer(API_PREFIX + verb, question))


async def test_a_verb_answers_with_its_result(api):
    assert await asked(api, "double", b'{"number": 21}') == {"result": 42}
    assert await asked(api, "double", b"") == {"result": 2}


@pytest.mark.parametrize(
    ("verb", "question", "code"),
    [
        ("refuse", b"{}", "NotFound"),
        ("nothing", b"{}", "UnknownVerb"),
        ("double", b'{"count": 1}', "Invalid"),
        ("double", b"\xff", "Invalid"),
        ("double", b"[1]", "Invalid"),
        ("double", b"7", "Invalid"),
        ("fail", b"{}", "Internal"),
        ("flood", b"{}", "TooLarge"),
    ],
)
async def test_whatever_goes_wrong_is_an_answer(api, verb, question, code):
    answer = await asked(api, verb, question)
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]


@pytest.mark.parametrize("error", [TimeoutError(), nats.errors.NoRespondersError(), BusBroken("x")])
async def test_a_server_that_does_not_answer_is_no_defect_and_it_is_said_what_was_accepted(error):
    async def wait():
        raise error

    api = Api()
    for name in ("node-revoke", "status"):
        api.register(name, wait)
    changes, asks = [(await asked(api, name))["error"] for name in ("node-revoke", "status")]
    assert changes["code"] == asks["code"] == "Restarting"
    assert changes["message"].endswith("; whether node-revoke was carried out is not known")
    assert asks["message"].endswith("; accepted: nothing")
    assert changes["remedy"] == "ask again: every command may be repeated"


def add(log, name, now_ms=0):
    log.add(now_ms, "Normal", "Synced", node="/", about=name, message="")


def test_events_are_bounded_and_the_oldest_goes():
    log = EventLog(most=3)
    for name in "abcd":
        add(log, name)
    assert [item["object"] for item in log.since(0)] == ["b", "c", "d"]


def test_what_happens_again_is_counted_and_comes_last_with_a_new_sequence():
    log = EventLog()
    add(log, "a", 10)
    add(log, "b", 20)
    seen = max(item["sequence"] for item in log.since(0))
    add(log, "a", 30)
    (again,) = log.since(seen)
    assert (again["object"], again["count"]) == ("a", 2)
    assert (again["first_ms"], again["last_ms"]) == (10, 30)


def test_a_node_that_joins_first_is_told_and_that_it_had_not_is_not():
    log, path = EventLog(), NodePath.parse("/emea/s1")
    states = ["up", "never joined", "never joined", "up", "connecting", "up"]
    for before, now in pairwise(states):
        log.reached({path: before}, {path: now}, 10)
    told = [(item["reason"], item["message"]) for item in log.since(0)]
    assert told == [("Joined", "/emea/s1 joined for the first time")]


def test_who_gets_out_of_reach_and_who_comes_back_is_told_once():
    log, path = EventLog(), NodePath.parse("/emea/s1")
    states = ["up", "up", "unreachable", "unreachable", "up", "up", "stopped", "stopped"]
    for before, now in pairwise(states):
        log.reached({path: before}, {path: now}, 10)
        log.noted(path.parent, Noted("Unreachable", "s1", "no heartbeat"), 10)
    told = [(item["reason"], item["node"], item["object"]) for item in log.since(0)]
    assert told == [(it, "/emea", "/emea/s1") for it in ("Unreachable", "Reached", "Stopped")]


def test_that_a_placement_was_deleted_is_no_warning_at_each_node():
    log = EventLog()
    log.noted(NodePath.parse("/emea/s1"), Noted("Dropped", "shop", "not in force any more"), 1)
    assert log.since(0) == []


def test_what_a_node_notes_is_told_by_the_names_that_people_know():
    log, path = EventLog(), NodePath.parse("/emea")
    for noted in (
        Noted("Superseded", "mail abc", "the index lists nothing for it"),
        Noted("MailDiffers", "s1", "its mailbox is written again"),
        Noted("DiskHasRoom", "/data", "there is room again"),
    ):
        log.noted(path, noted, 10, lambda key: "shop" if key == "abc" else "")
    told = [(item["type"], item["object"]) for item in log.since(0)]
    assert told == [
        ("Warning", "edgeplacement/shop"),
        ("Warning", "/emea/s1"),
        ("Normal", "/data"),
    ]


EVENTS = [
    {"type": "Warning", "node": "/", "object": "/emea"},
    {"type": "Warning", "node": "/emea", "object": "nats-server"},
    {"type": "Normal", "node": "/emea/s1", "object": ""},
    {"type": "Normal", "node": "/", "object": "edgeplacement/shop"},
]


@pytest.mark.parametrize(
    ("about", "types", "found"),
    [
        ("", "", [0, 1, 2, 3]),
        ("/emea", "", [0, 1, 2]),
        ("/emea/s1", "", [2]),
        ("shop", "", [3]),
        ("epl/shop", "", [3]),
        ("", "warning", [0, 1]),
        ("/emea", "Normal,Warning", [0, 1, 2]),
    ],
)
def test_events_are_asked_for_by_what_they_are_about_and_by_type(about, types, found):
    wanted = events_wanted(about, types)
    assert [at for at, event in enumerate(EVENTS) if wanted(event)] == found


@pytest.mark.parametrize(("about", "types"), [("/", "Worse"), ("//", ""), ("deploy/web", "")])
def test_events_of_what_there_cannot_be_are_refused(about, types):
    with pytest.raises(click.UsageError):
        events_wanted(about, types)


def test_conditions_are_read_from_any_status():
    assert conditions_of({}) == {}
    assert conditions_of({"status": None}) == {}
    listed = [{"type": "Synced", "status": "True", "reason": "Synced"}]
    read = conditions_of({"status": {"conditions": listed}})
    assert read == {"Synced": ("True", "Synced", "", "")}


def test_an_error_is_the_same_at_however_many_destinations():
    said = [
        f"shop/web: Denied (quota) ({count} destination{s}, e.g. /emea)"
        for count, s in ((1, ""), (20, "s"))
    ]
    assert errors_of({"status": {"errors": said[:1]}}) == {"shop/web: Denied (quota)": " at /emea"}
    assert errors_of({"status": {"errors": said}}) == {
        "shop/web: Denied (quota)": " at 20 destinations, such as /emea"
    }
    assert errors_of({}) == errors_of({"status": None}) == {}


def synced(reason, status, message="", type_="Synced"):
    return {"type": type_, "status": status, "reason": reason, "message": message}


async def test_a_delivery_is_told_in_a_few_lines_as_a_person_would_tell_it():
    clock = SystemClock()
    log = EventLog(began_ms=clock.now().wall_ms)
    space = MemorySpace(clock, SystemDice())
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    held = [{"reason": "Maintenance", "destinations": 2}]
    figures = {"destinations": 6, "synced": 4, "healthy": 4, "neverJoined": 1, "held": held}
    open_ = [synced("Incomplete", "Unknown"), synced("Incomplete", "Unknown", type_="Healthy")]
    way = [synced("Synced", "True"), synced("Progressing", "False", type_="Healthy")]
    well = [synced("Synced", "True"), synced("Healthy", "True", type_="Healthy")]
    bad = ["shop/web: Denied (1 destination, e.g. /region-1/site-2)"]
    failing = [synced("Failing", "False", "5 of 6 (1 failing)"), well[1]]
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}

    async def told(count):
        while len(log.since(0)) < count:
            await clock.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
            await told(1)
            for conditions in ([synced("Valid", "True", type_="Valid"), *open_], way, open_, way):
                await space.set_status(key, {**figures, "conditions": conditions})
                await clock.sleep(0.01)
            await space.set_status(key, {**figures, "conditions": well})
            await told(3)
            await space.set_status(key, {**figures, "conditions": failing, "errors": bad})
            await told(5)
            await space.delete(key)
            await told(6)
        following.cancel()
    assert [(item["type"], item["message"]) for item in log.since(0)] == [
        ("Normal", "shop created"),
        ("Normal", "shop delivered to 4 of 6 (1 never joined, 2 in maintenance)"),
        ("Normal", "shop working at 4 of 6 (1 never joined, 2 in maintenance)"),
        ("Warning", "shop not delivered to all: 5 of 6 (1 failing)"),
        ("Warning", "shop failing at /region-1/site-2: shop/web: Denied"),
        ("Normal", "shop deleted"),
    ]


async def test_what_several_conditions_say_alike_is_one_event():
    clock = SystemClock()
    log = EventLog()
    space = MemorySpace(clock, SystemDice())
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}

    def all_say(reason, message, third):
        return [
            *(synced(reason, "False", message, type_=type_) for type_ in ("Synced", "Ready")),
            synced(reason, "True", message, type_=third),
        ]

    on_its_way = all_say("Progressing", "0 of 6", "Reconciling")
    failed = all_say("WaveFailed", "it failed", "Stalled")
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
            for conditions in (on_its_way, failed):
                await space.set_status(key, {"conditions": conditions})
                await clock.sleep(0.01)
            await space.delete(key)
            while len(log.since(0)) < 3:
                await clock.sleep(0.01)
        following.cancel()
    assert [(item["type"], item["message"]) for item in log.since(0)] == [
        ("Normal", "shop created"),
        ("Warning", "shop Ready is False: it failed"),
        ("Normal", "shop deleted"),
    ]


async def test_one_cause_is_one_event_however_many_objects_it_befalls():
    clock = SystemClock()
    log = EventLog()
    space = MemorySpace(clock, SystemDice())
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    where = "(1 destination, e.g. /e/s1)"
    reasons = {"a": "NotFound: x", "b": "NotFound: x", "c": "NotFound: x", "d": "Denied"}
    errors = [f"shop/configmaps/{name}: {why} {where}" for name, why in reasons.items()]
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
            await space.set_status(key, {"errors": errors})
            while len(log.since(0)) < 3:
                await clock.sleep(0.01)
        following.cancel()
    assert [item["message"] for item in log.since(0)[1:]] == [
        "shop failing at /e/s1: 3 objects, such as shop/configmaps/a: NotFound: x",
        "shop failing at /e/s1: shop/configmaps/d: Denied",
    ]


async def test_what_an_edge_elsewhere_put_right_is_told_once():
    clock = SystemClock()
    log = EventLog(began_ms=clock.now().wall_ms)
    space = MemorySpace(clock, SystemDice())
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    now = timestamp(clock.now().wall_ms + 1000)
    there = {"time": now, "object": "shop/deployments.apps/web", "path": "/e/s1", "count": 1}
    here = {**there, "path": "/e/s2"}
    # Of the same placement, at the same edge, in the same second.
    other = {**there, "object": "shop/configmaps/web"}
    noted = Noted("Repaired", "k", repair_text(there["object"], "", ""))
    log.noted(NodePath.parse("/e/s2"), noted, clock.now().wall_ms + 1000, lambda _: "shop")
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
            for last, events in (([here, there], 3), ([here, there, other], 4)):
                await space.set_status(key, {"repairs": {"count": 2, "last": last}})
                while len(log.since(0)) < events:
                    await clock.sleep(0.01)
        following.cancel()
    told = [item for item in log.since(0) if item["node"] == "/e/s1"]
    assert [(item["message"].partition(" ")[0], item["count"]) for item in told] == [
        ("shop/deployments.apps/web", 1),
        ("shop/configmaps/web", 1),
    ]
    assert [item["count"] for item in log.since(0) if item["node"] == "/e/s2"] == [1]


async def test_a_placement_is_told_that_was_made_before_its_events_are_followed():
    """As the centre starts, commands are let in first."""
    clock = SystemClock()
    began = clock.now().wall_ms
    log = EventLog(began_ms=began)
    space = MemorySpace(clock, SystemDice())
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    condition = {"type": "Synced", "status": "True", "reason": "Synced"}
    delivered = {**condition, "lastTransitionTime": timestamp(began)}
    figures = {"destinations": 2, "synced": 2}
    await space.set_status(key, {**figures, "conditions": [delivered]})
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            while len(log.since(0)) < 2:
                await clock.sleep(0.01)
        following.cancel()
    assert [item["message"] for item in log.since(0)] == [
        "shop created",
        "shop delivered to 2 of 2",
    ]


async def test_why_an_object_is_stuck_is_an_event_and_told_once():
    clock = SystemClock()
    log = EventLog(began_ms=clock.now().wall_ms)
    space = MemorySpace(clock, SystemDice())
    placement = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "shop"},
    }
    await space.apply(placement, "test")
    other = {**placement, "metadata": {"name": "other"}}
    await space.apply(other, "test")
    stuck_before = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "other")
    await space.set_status(stuck_before, {"errors": ["Denied (1 destination, e.g. /emea)"]})
    key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")

    async def turn(number, errors):
        conditions = [{"type": f"Turn{number}", "status": "True"}]
        await space.set_status(key, {"errors": errors, "conditions": conditions})
        await clock.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            number = 0
            while not any(item["reason"].startswith("Turn") for item in log.since(0)):
                await turn(number := number + 1, [])
            for count in (1, 2, 3):
                error = f"shop/web: Denied ({count} destinations, e.g. /emea)"
                await turn(number + count, [error])
            while log.since(0)[-1]["reason"] != f"Turn{number + 3}":
                await clock.sleep(0.01)
        following.cancel()
    stuck = [item for item in log.since(0) if item["reason"] == "Failing"]
    told = [(item["message"], item["count"]) for item in stuck]
    assert told == [
        ("other failing at /emea: Denied", 1),
        ("shop failing at /emea: shop/web: Denied", 1),
    ]


def told_of(log):
    return [item for item in log.since(0) if item["reason"].startswith("Of-")]


class Interrupted(MemorySpace):
    """A space of which each watch breaks at the second change that it sees."""

    async def watch(self, since):
        seen = 0
        async for change in super().watch(since):
            if (seen := seen + 1) == 2:
                raise SpaceError("ServiceUnavailable", "its server was started again")
            yield change


async def test_a_change_of_conditions_is_an_event_though_nobody_watched_as_it_came():
    clock = SystemClock()
    log = EventLog(began_ms=clock.now().wall_ms)
    space = Interrupted(clock, SystemDice())
    names = ("before", "early", "one", "two", "three")
    past, now = "2026-01-31T12:00:00Z", timestamp(clock.now().wall_ms + 1000)

    async def say(name, changed):
        key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", name)
        condition = {"type": "Where", "status": "False", "reason": f"Of-{name}"}
        listed = [{**condition, "lastTransitionTime": changed}]
        await space.set_status(key, {"conditions": listed})

    for name in names:
        metadata = {"metadata": {"name": name}}
        kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
        await space.apply({**kind, **metadata}, "test")
    await say("before", past)
    await say("early", now)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            while not told_of(log):
                await clock.sleep(0.01)
            for name in names[2:]:
                await say(name, now)
            while len(told_of(log)) < len(names) - 1:
                await clock.sleep(0.01)
        following.cancel()
    told = [(it["object"], it["count"]) for it in log.since(0) if it["reason"] != "Created"]
    assert sorted(told) == sorted((f"edgeplacement/{name}", 1) for name in names[1:])


async def test_a_tree_that_was_stopped_meanwhile_is_not_called_slow(tmp_path):
    async def nobody(_subject, _question, _seconds, _put=None):
        raise QuestionUnanswered("x", nobody=False, seconds=15)

    clock = SystemClock()
    space = MemorySpace(clock, SystemDice())
    session = Session(DataDir(tmp_path), space, space, clock, nobody)
    with pytest.raises(NotRunning, match="the tree was stopped"):
        await session.call("events")
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CallFailed, match="did not answer events within 15 s"):
            await session.call("events")
