"""Bundles of a former release: who came by one goes on, and nobody else comes by it."""

import asyncio
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from controllers.issuing.nodes import BUNDLE_CLOCKS_MS, bundled_nodes, enrol_nodes
from leafcast.ask.api import ApiError
from leafcast.ask.remote import checked_answer
from leafcast.daemon.nodes.former_bundles import FormerBundles
from leafcast.data_dir import DataDirUnusable
from leafcast.join.folder import joined_folder
from leafcast.join.former_bundle import joined_by
from leafcast.join.kept_grant import GrantUnreadable, write_grant
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.effects import AddChild, RemoveChild, StoreOwn
from relay.core.events import OwnRecord, Remembered
from relay.core.instant import Instant
from schemas.records.records import API_NODE, FirstSession, NodeRecord, Source
from schemas.reports.states import NEVER_JOINED
from schemas.values import wire
from schemas.values.identity import NodePath
from schemas.values.wire import encode
from tests.unit.meeting import NKEY, PATH, START_MS, TERM, TREE, Meeting
from tests.unit.test_kept_grant import GRANT
from tests.viewed_node import ViewedNode

ANOTHER = new_user_nkey(os.urandom(32))[1]
NOTE = "_session_emea"


class Bundled(Meeting):
    """A centre with a child that has a bundle; `noted` is the key by which it came, if it did."""

    def __init__(self, noted=""):
        super().__init__()
        self.key = self.bundle(NKEY)
        kept = [OwnRecord(it.key, it.data, "", 0) for it in self.centre.records.values()]
        kept += [OwnRecord(NOTE, encode(FirstSession(noted)), "", 0)] if noted else []
        self.centre = ViewedNode(self.centre.config, Remembered(tuple(kept)), [], self.instant)
        self.done += self.centre.start()

    def bundle(self, nkey, until_ms=START_MS + 60_000):
        source = Source(API_NODE, TREE, "", str(PATH))
        record = NodeRecord(source, self.generation + 1, TERM.hex(), "", PATH, nkey, until_ms)
        return self.issue("node", record)

    @property
    def let_in_by(self):
        return [it.nkey for it in self.done if isinstance(it, AddChild) and it.path == PATH][-1]

    @property
    def notes(self):
        return [it.data for it in self.done if isinstance(it, StoreOwn) and it.key == NOTE]


@pytest.mark.parametrize("until_ms", [1, START_MS - 1, START_MS + 60_000])
def test_a_bundle_that_nobody_came_by_opens_nothing_before_its_time_or_after(until_ms):
    bundled = Bundled()
    bundled.bundle(NKEY, until_ms)
    assert bundled.let_in_by == ""
    assert bundled.centre.standing_of("emea").word == NEVER_JOINED


def test_who_came_by_it_is_let_in_also_after_the_centre_says_so():
    bundled = Bundled(noted=NKEY)
    assert bundled.let_in_by == NKEY
    bundled.bundle(NKEY, 0)
    bundled.bundle(NKEY)
    assert bundled.let_in_by == NKEY
    assert bundled.notes == []


def test_the_note_of_another_key_opens_nothing_and_goes():
    bundled = Bundled(noted=ANOTHER)
    assert bundled.let_in_by == ""
    assert bundled.notes == [None]
    bundled.bundle(ANOTHER)
    assert bundled.let_in_by == ""


def test_of_a_child_that_goes_nothing_is_kept():
    bundled = Bundled(noted=NKEY)
    bundled.sign(drop=[bundled.key])
    assert RemoveChild(PATH) in bundled.done
    assert bundled.notes == [None]


# What the centre makes of them.

NOW = 1_800_000_000_000
LATE, CAME, FRESH, GONE, UNSAID, SLOW = (
    NodePath.parse(f"/r/{name}") for name in ("late", "came", "fresh", "gone", "unsaid", "slow")
)
FREE, AWAY = map(NodePath.parse, ("/free", "/x/y"))


def node(path, until_ms):
    source = Source(API_NODE, TREE, "", str(path))
    return NodeRecord(source, NOW, "", "", path, "U", until_ms)


class Issuer:
    """Puts drafts in force, and counts how often."""

    tree = TREE

    def __init__(self, *records):
        self.records = {record.source.key: record for record in records}
        self.times = 0

    async def issue(self, drafts):
        self.times += 1
        for draft in drafts:
            self.records[draft.record.source.key] = wire.replace(draft.record, generation=NOW + 1)

    def keys(self):
        return {record.path: record.nkey for record in self.records.values()}


class Parents:
    """What parents say of their children; of others they do not answer."""

    def __init__(self, said):
        self.said = said

    async def answer(self, path, _remedy):
        if path not in self.said:
            raise ApiError("Unreachable", f"{path} is away", "wait")
        return checked_answer(path, {"children": self.said[path]})


async def test_the_centre_voids_what_nobody_came_by_and_keeps_who_came():
    told = []
    later = NOW + 1000
    issuer = Issuer(
        node(LATE, later),
        node(CAME, NOW - BUNDLE_CLOCKS_MS - 1),
        node(FRESH, later),
        node(GONE, later),
        node(FREE, 0),
        node(AWAY, NOW - 1),
        node(UNSAID, NOW - BUNDLE_CLOCKS_MS - 1),
        node(SLOW, NOW - BUNDLE_CLOCKS_MS),
    )
    parents = {
        LATE.parent: {
            "late": {"nkey": "", "joined": False},
            "came": {"nkey": "U", "joined": True},
            "fresh": {"nkey": "U", "joined": True},
            # A relay of the former release lets it in until its time.
            "gone": {"nkey": "U", "joined": False},
            # One before that does not say who came.
            "unsaid": {"nkey": "U"},
            # One whose clock lags lets it in a while after its time.
            "slow": {"nkey": "U", "joined": True},
        }
    }
    tree, clock = SimpleNamespace(issuer=lambda: issuer), SimpleNamespace(now=lambda: at)
    at = Instant(0, NOW)
    changing = asyncio.Lock()
    bundles = FormerBundles(
        tree, Parents(parents), changing, clock, lambda *said: told.append(said)
    )
    assert await bundles.settle()
    keys = {LATE: "", CAME: "U", FRESH: "U", GONE: "", FREE: "U", AWAY: "U"}
    keys |= {UNSAID: "U", SLOW: "U"}
    assert issuer.keys() == keys
    assert [it.path for it in bundled_nodes(issuer)] == [FRESH, SLOW, UNSAID, AWAY]
    assert [(reason, about) for reason, about, _ in told] == [
        ("BundleVoid", str(path)) for path in (GONE, LATE)
    ]
    assert f"make a token with `leafcast node add {LATE}`" in told[1][2]

    # Nothing is said twice; who is let in after the time came in time; who was away is asked again.
    assert await bundles.settle()
    assert issuer.times == 1
    at = Instant(0, later + BUNDLE_CLOCKS_MS + 1)
    parents[UNSAID.parent]["unsaid"]["joined"] = True
    parents[AWAY.parent] = {"y": {"nkey": "", "joined": True}}
    assert not await bundles.settle()
    assert issuer.keys() == {**keys, AWAY: ""}


async def test_a_key_that_is_granted_meanwhile_is_not_voided_with_the_bundle():
    asked, written, changing = asyncio.Event(), asyncio.Event(), asyncio.Lock()

    class Slow(Issuer):
        async def issue(self, drafts):
            await written.wait()
            await super().issue(drafts)

    class Asked(Parents):
        async def answer(self, path, remedy):
            asked.set()
            return await super().answer(path, remedy)

    async def grant():
        async with changing:
            await enrol_nodes(issuer, {LATE: "NEW"})

    issuer = Slow(node(LATE, NOW + 1000))
    parents = Asked({LATE.parent: {"late": {"nkey": "", "joined": False}}})
    tree = SimpleNamespace(issuer=lambda: issuer)
    clock = SimpleNamespace(now=lambda: Instant(0, NOW))
    async with asyncio.TaskGroup() as group:
        group.create_task(grant())
        settling = group.create_task(FormerBundles(tree, parents, changing, clock).settle())
        await asked.wait()
        written.set()
    assert not settling.result()
    assert issuer.keys() == {LATE: "NEW"}


# What `join` makes of the file.


@pytest.fixture
def file(tmp_path):
    write_grant(tmp_path / "store-9.join.json", GRANT)
    return tmp_path / "store-9.join.json"


def ran(folder, grant, *, admitted=True):
    with joined_folder(folder, grant, SystemDice()) as place:
        replace(place, admitted=admitted).keep()


def test_a_node_that_joined_by_a_bundle_goes_on_with_the_key_that_it_has_now(
    file, tmp_path, monkeypatch
):
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path))
    rekeyed = replace(GRANT, seed=new_user_nkey(os.urandom(32))[0])
    named = tmp_path / "node"
    ran(named, rekeyed)
    assert joined_by(file, named) == (named, rekeyed)
    assert joined_by(named / "bundle.json", named) == (named, rekeyed)
    unnamed = tmp_path / "joined" / f"{GRANT.tree[:8]}-{GRANT.path.domain}"
    unnamed.parent.mkdir()
    ran(unnamed, rekeyed)
    assert joined_by(file, None) == (unnamed, rekeyed)


def test_a_bundle_that_was_not_used_says_what_to_do_and_changes_nothing(file, tmp_path):
    said = rf"a join bundle for {GRANT.path}, .*node add {GRANT.path}`"
    with pytest.raises(GrantUnreadable, match=said):
        joined_by(file, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    ran(tmp_path / "node", GRANT, admitted=False)
    with pytest.raises(GrantUnreadable, match=said):
        joined_by(file, tmp_path / "node")
    # That of a move, too.
    ran(tmp_path / "node", GRANT)
    there = replace(GRANT, path=NodePath.parse("/apac/store-9"), former=(GRANT.path,))
    write_grant(file, there)
    with pytest.raises(GrantUnreadable, match=f"node add {there.path}`"):
        joined_by(file, tmp_path / "node")


def test_the_folder_of_another_node_is_not_taken(file, tmp_path):
    ran(tmp_path / "node", replace(GRANT, path=NodePath.parse("/emea/other")))
    place, grant = joined_by(file, tmp_path / "node")
    with pytest.raises(DataDirUnusable, match="it belongs to /emea/other"), ran_as(place, grant):
        pass


def ran_as(place, grant):
    return joined_folder(place, grant, SystemDice())
