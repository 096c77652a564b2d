"""Bundles that nobody joined with yet, as the centre sees them."""

from types import SimpleNamespace

import pytest

from controllers.nodes import awaited_nodes, invite_anew
from leafcast.centre import centre as centre_module
from leafcast.centre.centre import Centre
from leafcast.daemon import tree_facts
from leafcast.daemon.nodes.invited_nodes import InvitedNodes
from leafcast.data_dir import DataDir
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import DoctorFacts
from relay.core.events import Instant
from relay.shell.asker import AskFailed
from schemas.records.asks import AskFault
from schemas.records.records import NodeRecord, Source
from schemas.reports.reports import NEVER_JOINED
from schemas.values.identity import NodePath
from schemas.values.wire import replace

NOW, HOUR = 1_800_000_000_000, 3_600_000
LATE, HERE, MUTE, OLD = map(NodePath.parse, ("/e/late", "/e/here", "/e/mute", "/e/old"))


def node(path, nkey="U", until_ms=NOW + HOUR):
    source = Source("leafcast.io/Node", "t" * 26, "", str(path))
    return NodeRecord(source, NOW, "", "", path, nkey, until_ms)


class Issuer:
    """Puts drafts in force."""

    tree = "t" * 26

    def __init__(self, *records):
        self.records = {record.source.key: record for record in records}

    async def issue(self, drafts):
        for draft in drafts:
            self.records[draft.record.source.key] = replace(draft.record, generation=NOW + 1)


class Asks:
    """All but MUTE show by their signatures that they have the keys of their records."""

    def __init__(self, meanwhile=lambda: None):
        self.meanwhile = meanwhile

    async def ask_signed(self, path, _verb, _arguments):
        self.meanwhile()
        if path == MUTE:
            raise AskFailed(AskFault("NotSigned", "signed by another key", str(path)))
        return {}


class States:
    async def tree(self):
        states = {LATE: NEVER_JOINED, HERE: "up", MUTE: "up", OLD: "up"}
        return {"nodes": [{"path": str(path), "state": it} for path, it in states.items()]}


@pytest.fixture
def issuer():
    return Issuer(node(LATE), node(HERE), node(MUTE), node(OLD, until_ms=0))


def looking(issuer, **asks):
    tree = SimpleNamespace(issuer=lambda: issuer)
    return InvitedNodes(tree, Asks(**asks), States(), SimpleNamespace(now=lambda: Instant(0, NOW)))


async def test_who_came_with_the_key_of_its_record_comes_for_ever(issuer):
    assert await looking(issuer).welcome() == [HERE]
    assert [it.path for it in awaited_nodes(issuer)] == [LATE, MUTE]
    assert issuer.records[node(HERE).source.key].nkey == "U"
    assert await looking(issuer).welcome() == []


async def test_a_key_that_was_given_meanwhile_is_not_taken_back(issuer):
    another = node(HERE, "ANOTHER")

    def meanwhile():
        issuer.records[another.source.key] = another

    assert await looking(issuer, meanwhile=meanwhile).welcome() == []
    assert issuer.records[another.source.key] == another


def test_bundles_that_nobody_came_with_are_told_of_as_long_before_as_they_are_valid(issuer):
    states = {str(LATE): NEVER_JOINED, str(HERE): "up", str(MUTE): "up"}

    def told(now_ms):
        facts = DoctorFacts(now_ms, "", 10**12, expiries=list(looking(issuer).expiries(states)))
        return [(it.state, it.about) for it in checks(facts) if it.group == "Expiry"]

    assert told(NOW) == [("ok", "")]
    assert told(NOW + HOUR * 3 // 4) == [("warning", str(LATE))]
    assert told(NOW + HOUR * 2) == [("warning", str(LATE))]


async def test_after_a_restore_all_who_are_awaited_have_so_long_anew():
    later = NOW + 5 * HOUR
    issuer = Issuer(node(LATE), node(HERE, until_ms=later), node(OLD, until_ms=0))
    await invite_anew(issuer, NOW + 2 * HOUR)
    found = {it.path: it.until_ms for it in issuer.records.values()}
    assert found == {LATE: NOW + 2 * HOUR, HERE: later, OLD: 0}


@pytest.mark.parametrize(
    ("path", "state", "later", "expired"),
    [
        (LATE, NEVER_JOINED, 1, True),
        (LATE, NEVER_JOINED, 0, False),
        (LATE, "unreachable", 1, True),
        # Who is up came in time, and of whom nobody says anything may have.
        (LATE, "up", 1, False),
        (LATE, "unknown", 1, False),
        (LATE, "connecting", 1, False),
        (OLD, NEVER_JOINED, 1, False),
        (HERE.child("none"), NEVER_JOINED, 1, False),
    ],
)
def test_the_tree_shows_whose_bundle_expired_unused(issuer, path, state, later, expired):
    tree = SimpleNamespace(controllers=SimpleNamespace(issuer=issuer))
    assert tree_facts._is_expired(tree, path, state, NOW + HOUR + later) is expired


async def test_a_centre_that_was_restored_invites_anew_once(tmp_path, monkeypatch):
    issuer, pending = Issuer(node(LATE, until_ms=NOW - 1)), [True]

    async def restore(*_):
        return bool(pending) and pending.pop()

    monkeypatch.setattr(centre_module, "restore_pending", restore)
    monkeypatch.setattr(Centre, "streams", lambda _: None)
    centre = Centre(DataDir(tmp_path))
    centre.controllers, centre.inventory = SimpleNamespace(issuer=issuer), object()
    centre._clock = SimpleNamespace(now=lambda: Instant(0, NOW))
    until = []
    for _ in range(2):
        await centre._restore()
        await centre._enrol()
        until.append([it.until_ms for it in issuer.records.values()])
        centre._clock = SimpleNamespace(now=lambda: Instant(0, NOW + HOUR))
    assert until == [[NOW + 24 * HOUR]] * 2
