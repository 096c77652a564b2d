"""A bundle that nobody joined with in time opens nothing: the centre makes its key void."""

from types import SimpleNamespace

import pytest

from leafcast.daemon.nodes import unclaimed
from leafcast.daemon.nodes.unclaimed import UnclaimedBundles
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import Facts
from leafcast.local.backup import PENDING
from relay.core.events import Instant
from schemas.identity import NodePath
from schemas.records import NodeRecord, Source
from schemas.reports import NEVER_JOINED

NOW, DAY = 1_800_000_000_000, 86_400_000
LATE, HERE = NodePath.parse("/emea/late"), NodePath.parse("/emea/here")
LOCAL = NodePath.parse("/emea/local")


class States:
    async def tree(self):
        return {
            "nodes": [
                {"path": str(LATE), "state": NEVER_JOINED},
                {"path": str(HERE), "state": "up"},
                {"path": str(LOCAL), "state": NEVER_JOINED},
            ]
        }


@pytest.fixture
def issued(monkeypatch):
    """The keys that records were issued with."""
    found = {}

    async def enrol(_issuer, nkeys):
        found.update(nkeys)

    monkeypatch.setattr(unclaimed, "enrol_nodes", enrol)
    return found


def bundles(folder, keys):
    records = {path: node(path, nkey) for path, nkey in keys.items()}
    tree = SimpleNamespace(
        issuer=lambda: SimpleNamespace(records=records), runs_here=lambda path: path == LOCAL
    )
    enrolling = SimpleNamespace(
        record=lambda path: SimpleNamespace(path=path, nkey=keys[path]) if path in keys else None
    )
    clock = SimpleNamespace(now=lambda: Instant(0.0, 0))
    return UnclaimedBundles(folder, tree, enrolling, States(), clock)


def node(path, nkey):
    source = Source("leafcast.io/Node", "t" * 26, "", str(path))
    return NodeRecord(source, 1, "", "", path, nkey)


async def test_only_who_never_joined_with_that_very_key_is_shut_out(tmp_path, issued):
    made = bundles(tmp_path, {LATE: "U1", HERE: "U2"})
    made.handed_out(LATE, "U1", 1000)
    made.handed_out(HERE, "U2", 1000)
    assert await made.void_expired(1000) == []
    # A centre that started again remembers.
    again = bundles(tmp_path, {LATE: "U1", HERE: "U2"})
    assert await again.void_expired(1001) == [LATE]
    assert issued == {LATE: ""}
    assert await again.void_expired(9999) == []


def test_bundles_that_nobody_came_with_are_told_of_before_they_end(tmp_path):
    made = bundles(tmp_path, {LATE: "U1", HERE: "U2"})
    made.handed_out(LATE, "U1", NOW + DAY)
    made.handed_out(HERE, "U2", NOW + DAY)
    states = {str(LATE): NEVER_JOINED, str(HERE): "up"}

    def told(now_ms):
        facts = Facts(now_ms, "", 10**12, expiries=made.expiries(states))
        return [(it.state, it.about) for it in checks(facts) if it.group == "Expiry"]

    assert told(NOW) == [("ok", "")]
    assert told(NOW + DAY * 3 // 4) == [("warning", str(LATE))]


async def test_a_newer_key_is_none_of_an_old_bundles(tmp_path, issued):
    made = bundles(tmp_path, {LATE: "U9"})
    made.handed_out(LATE, "U1", 1000)
    assert await made.void_expired(2000) == []
    assert issued == {}


async def test_of_a_damaged_list_all_who_never_joined_are_shut_out_a_day_later(
    tmp_path, issued, caplog
):
    (tmp_path / unclaimed.FILE).write_text('["half a li')
    keys = {LATE: "U1", HERE: "U2", LOCAL: "U3"}
    made = bundles(tmp_path, keys)
    assert "bundles.json is damaged" in caplog.text
    assert await made.void_expired(1000) == []
    # A centre that starts again begins no other day.
    again = bundles(tmp_path, keys)
    assert await again.void_expired(1000 + unclaimed.ANEW_MS) == []
    assert await again.void_expired(1001 + unclaimed.ANEW_MS) == [LATE]
    assert issued == {LATE: ""}


async def test_a_bundle_made_after_the_damage_ends_at_its_own_time(tmp_path, issued):
    (tmp_path / unclaimed.FILE).write_text('["half a li')
    made = bundles(tmp_path, {LATE: "U1"})
    made.handed_out(LATE, "U1", 1000)
    assert await bundles(tmp_path, {LATE: "U1"}).void_expired(1001) == [LATE]


async def test_a_restored_centre_gives_a_day_to_those_who_may_have_joined(tmp_path, issued):
    bundles(tmp_path, {}).handed_out(LATE, "U1", 1000)
    (tmp_path / PENDING).touch()
    restored = bundles(tmp_path, {LATE: "U1", HERE: "U2"})
    assert await restored.void_expired(5000) == []
    (tmp_path / PENDING).unlink()
    again = bundles(tmp_path, {LATE: "U1", HERE: "U2"})
    assert await again.void_expired(5000 + unclaimed.ANEW_MS) == []
    assert await again.void_expired(5001 + unclaimed.ANEW_MS) == [LATE]
