"""What a person is asked about, on real servers, as they see it."""

import asyncio
import json
import re
import shutil

import pytest

from leafcast.ask.session import CallFailed, open_session
from leafcast.node.credentials.account_seeds import account_seeds
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.spaces.connection import space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import until
from tests.e2e.page_hand import did_at_page, said_unasked
from tests.e2e.program import Program
from tests.memory_tree import config_map, placement
from tests.namespaces import namespace_object
from tests.written import apply_objects

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

HELD = r"RemovalHeld: +True +RemovalHeld: 12 of 15"
NAMES = [f"c{at}" for at in range(15)]


@pytest.fixture
def program(tmp_path):
    program = Program(tmp_path / "data")
    yield program
    program.run("down")


async def delete_unseen(program, keys):
    """Delete objects of the centre while nothing but its server runs."""
    folder, clock, dice = program.place.node(NodePath()), SystemClock(), SystemDice()
    seeds = account_seeds(folder, dice)
    async with (
        ProcessGuard() as guard,
        EmbeddedServer(folder, NodePath(), seeds, guard=guard, clock=clock) as server,
        space_connection(server.url, seeds.space, "test") as client,
    ):
        space = EmbeddedSpace(client, "workloads", clock, dice, domain=NodePath().domain)
        await space.open()
        for key in keys:
            assert await space.delete(key)


def applied(program, tmp_path, names):
    """A small tree, and a placement with so many objects that is delivered."""
    assert program.run("up", "--regions", "1", "--sites", "1").returncode == 0
    configs = [config_map(name, "shop", at="1") for name in names]
    objects = [namespace_object("shop"), *configs, placement("shop", "shop")]
    manifest = tmp_path / "shop.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    done = program.run("apply", "-f", str(manifest))
    assert done.returncode == 0, done.stderr
    assert program.run("wait", "shop", "--for", "synced").returncode == 0
    return manifest


def noted(program):
    """The reasons of all events."""
    lines = program.run("events", "-o", "json").stdout.splitlines()
    return {json.loads(line)["reason"] for line in lines}


def held_at_site(program):
    found = program.json("get", "configmaps", "--at", "/region-1/site-1", "-n", "shop")["items"]
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in found}


def test_a_removal_that_nobody_said_is_shown_everywhere_and_goes_when_accepted(program, tmp_path):
    applied(program, tmp_path, NAMES)
    assert program.run("accept").stdout == "No removal is held.\n"
    assert program.run("down").returncode == 0
    keys = [ObjectKey("", "configmaps", "shop", name) for name in NAMES[:12]]
    asyncio.run(delete_unseen(program, keys))
    assert program.run("up").returncode == 0

    why = "12 of 15 objects would go at once, at most 10 may"
    until(lambda: f"edgeplacement/shop: {why}" in program.run("accept").stdout, "nothing is held")
    until(lambda: why in program.run("status", "shop").stdout)
    until(
        lambda: re.search(HELD, program.run("describe", "edgeplacement", "shop").stdout),
        "the placement does not say it",
    )
    until(lambda: "RemovalHeld" in noted(program), lambda: f"only {noted(program)}")
    assert len(held_at_site(program)) == 15

    assert program.run("accept", "other").returncode == 1
    folder = program.place.folder
    for name, words in (
        ("accept-inventory", {}),
        ("accept-ledger", {}),
        ("accept-space", {"space": "abc"}),
    ):
        with pytest.raises(CallFailed) as refused:
            said_unasked(folder, name, **words)
        assert refused.value.code == "NotHeld", (name, str(refused.value))
    assert did_at_page(folder, "accept", placement="epl/shop").startswith("accepted, it goes now")
    until(lambda: len(held_at_site(program)) == 3, "what was accepted did not go")


@pytest.mark.parametrize("lost", ["", "jetstream"], ids=["its folder", "its disk"])
def test_what_a_centre_lost_stays_until_a_person_withdraws_it(program, tmp_path, lost):
    """With the folder goes the list of its children; those that `up` starts have their own."""
    applied(program, tmp_path, ["a", "b"])
    before = held_at_site(program)
    assert program.run("down").returncode == 0
    shutil.rmtree(program.place.node(NodePath()) / lost)
    again = program.run("up")
    assert again.returncode == 0, again.stderr
    until(lambda: "delta shop" in program.run("orphans").stdout, "the orphan is not listed")
    until(lambda: states(program) == {"up"}, lambda: states(program))
    assert held_at_site(program) == before
    until(lambda: "leafcast orphans" in program.run("doctor").stdout)

    done = program.run("withdraw", "--all")
    assert done.returncode == 0, done.stderr
    assert " withdrawn" in done.stdout
    until(lambda: held_at_site(program) == {}, "what was withdrawn stays")
    until(lambda: "No orphans" in program.run("orphans").stdout, "orphans are left")
    assert states(program) == {"up"}


async def write(program, *objects):
    """Write into the centre's spaces as kubectl, Helm or Git would: nobody is asked."""
    async with open_session(program.place.folder) as session:
        await apply_objects(session, *objects)


def aimed(manifest, **labels):
    """The placement of a manifest, selecting these labels of Locations."""
    found = json.loads(manifest.read_text())["items"][-1]
    return {**found, "spec": {**found["spec"], "locationSelectors": [{"matchLabels": labels}]}}


def test_what_an_edit_takes_is_asked_for_or_held_and_nothing_is_touched_till_then(
    program, tmp_path
):
    manifest = applied(program, tmp_path, NAMES)
    before = held_at_site(program)
    said = "15 copies at 1 destination"

    wrong, right = tmp_path / "wrong.json", tmp_path / "right.json"
    wrong.write_text(json.dumps(aimed(manifest, regoin="region-1")))
    right.write_text(json.dumps(aimed(manifest, region="region-1")))
    assert program.run("apply", "-f", str(right)).returncode == 0
    for words in (
        ("apply", "-f", str(wrong)),
        ("label", "loc", "region-1-site-1", "region-"),
        ("delete", "epl", "shop"),
    ):
        refused = program.run(*words)
        assert refused.returncode == 1
        assert said in refused.stderr
        assert "--confirm-removals" in refused.stderr
    asyncio.run(write(program, aimed(manifest, regoin="region-1")))
    until(lambda: said in program.run("accept").stdout, "nothing is held")
    assert program.run("down").returncode == 0
    assert program.run("up").returncode == 0
    until(lambda: said in program.run("accept").stdout, "nothing is held any more")
    assert program.run("apply", "-f", str(right)).returncode == 0
    assert program.run("wait", "shop", "--for", "synced").returncode == 0
    assert program.run("accept").stdout == "No removal is held.\n"
    assert held_at_site(program) == before

    done = program.run("label", "loc", "region-1-site-1", "region-", "--confirm-removals")
    assert done.returncode == 0, done.stderr
    until(lambda: held_at_site(program) == {}, "what was confirmed did not go")
    assert program.run("accept").stdout == "No removal is held.\n"


def states(program):
    return {node["state"] for node in program.json("tree")["nodes"]}
