"""Another certificate authority: who has to know it before it signs, and what breaks off where."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from leafcast.ask.api import ApiError
from leafcast.daemon.nodes.authority_change import AuthorityChange
from leafcast.data_dir import DataDir
from leafcast.node.certificate_lists import overlap
from leafcast.node.credentials.authorities import (
    AUTHORITY_FILES,
    begin_change,
    end_change,
    load_authorities,
    load_or_make_authorities,
    switch,
)
from relay.ports import Instant
from relay.shell.asker import AskFailed
from schemas.records.asks import AskFault
from schemas.records.records import NodeRecord, Source
from schemas.values.identity import NodePath, TreeId

TREE, NOW_MS = TreeId("a" * 26), 1_800_000_000_000


@dataclass
class Nodes:
    """A tree whose nodes do as they are asked, or are away."""

    believed: dict[str, str]
    away: set[str] = field(default_factory=set)
    void: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def tree_id(self):
        return TREE

    def issuer(self):
        records = {}
        for path in self.believed:
            if path != "/":
                source = Source("leafcast.io/Node", TREE, "", path)
                where = NodePath.parse(path)
                nkey = "" if path in self.void else f"U{len(path)}"
                records[source.key] = NodeRecord(source, 1, "", "", where, nkey)
        return SimpleNamespace(records=records, tree=TREE)

    async def ask_signed(self, path, verb, arguments):
        where = str(path)
        if where in self.away:
            raise AskFailed(AskFault("Unreachable", f"{where} is away", where))
        self.asked.append((where, verb))
        if overlap(self.believed[where], arguments["authority"]):
            self.believed[where] = arguments["authority"]
        return {"taken": True}

    async def renew_due(self, now_ms):
        return []

    def now(self):
        return Instant(0.0, NOW_MS)


@dataclass
class Voided:
    calls: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, former, signing):
        self.calls.append((former, signing))
        return ["/open"]


def change_of(tmp_path, nodes, leave=None):
    async def renew_here():
        """No server of this program has a certificate of the tree's."""

    place = DataDir(tmp_path)
    return AuthorityChange(nodes, nodes, place, nodes, nodes, leave or Voided(), renew_here)


@pytest.fixture
def nodes(tmp_path):
    first = load_or_make_authorities(tmp_path, TREE, NOW_MS).believed
    return Nodes({"/": "", "/a": first, "/a/b": first, "/own": "another's"})


async def test_all_know_the_new_one_before_it_signs_and_leave_the_old_one(tmp_path, nodes):
    former, leave = load_authorities(tmp_path).signing, Voided()
    done = await change_of(tmp_path, nodes, leave).rotate()
    assert done == {"doing": "done", "lacking": {}, "void": ["/open"]}
    now = load_authorities(tmp_path)
    assert not now.changing
    assert now.signing != former
    assert leave.calls == [(former.certificate, now.signing.certificate)]
    assert nodes.believed["/a"] == nodes.believed["/a/b"] == now.believed
    assert nodes.believed["/own"] == "another's", "it is none of the tree's"


async def test_it_waits_for_who_is_away_and_goes_on_where_it_was(tmp_path, nodes):
    former = load_authorities(tmp_path).signing
    nodes.away, nodes.void = {"/a/b"}, {"/own"}
    done = await change_of(tmp_path, nodes).rotate()
    assert (done["doing"], done["lacking"]) == ("told", {"/a/b": "/a/b is away"})
    assert load_authorities(tmp_path).signing == former
    coming = load_authorities(tmp_path).coming
    assert overlap(nodes.believed["/a"], coming)
    assert "/own" not in {path for path, _ in nodes.asked}
    # The program ends; the next one goes on with the same, and asks no one twice.
    later = change_of(tmp_path, nodes)
    assert (await later.rotate())["doing"] == "told"
    count = len(nodes.asked)
    assert (await later.state()) == {"changing": True}
    assert (await later.rotate())["doing"] == "told"
    assert len(nodes.asked) == count
    nodes.away = set()
    assert (await later.rotate())["doing"] == "done"
    assert load_authorities(tmp_path).signing.certificate == coming == nodes.believed["/a/b"]


async def test_by_force_it_waits_for_nobody(tmp_path, nodes):
    nodes.away = {"/a/b"}
    assert (await change_of(tmp_path, nodes).rotate(force=True))["doing"] == "done"
    now = load_authorities(tmp_path)
    assert nodes.believed["/a"] == now.believed
    assert not overlap(nodes.believed["/a/b"], now.believed)


async def test_a_tree_without_an_authority_has_none_to_replace(tmp_path, nodes):
    with pytest.raises(ApiError, match="no certificate authority of its own"):
        await change_of(tmp_path / "other", nodes).rotate()


def test_a_switch_that_is_broken_off_at_any_step_ends_the_same(tmp_path):
    place = tmp_path / "tls"
    former = load_or_make_authorities(tmp_path, TREE, NOW_MS).signing
    begin_change(tmp_path, TREE, NOW_MS)
    coming = load_authorities(tmp_path).coming
    files = {name: place / name for name in AUTHORITY_FILES}
    before = {name: file.read_text() for name, file in files.items() if file.exists()}
    switch(tmp_path)
    after = {name: file.read_text() for name, file in files.items() if file.exists()}
    steps = [
        {},
        {"former.pem": former.certificate},
        {"authority.pem": coming},
        {"authority.key": before["next.key"], "next.key": None},
    ]
    reached = dict(before)
    for number, step in enumerate(steps):
        reached |= step
        for name, file in files.items():
            file.unlink(missing_ok=True)
            if reached.get(name) is not None:
                file.write_text(reached[name])
        if number == 0:
            switch(tmp_path)
        found = load_authorities(tmp_path)
        assert (found.signing.certificate, found.former) == (coming, former.certificate)
        assert {name: file.read_text() for name, file in files.items() if file.exists()} == after
    end_change(tmp_path)
    assert load_authorities(tmp_path).believed == coming


@pytest.mark.parametrize(("before", "after"), [("", ""), ("", "x"), ("junk", "junk")])
def test_what_has_no_certificate_goes_on_with_nothing(before, after):
    assert not overlap(before, after)
