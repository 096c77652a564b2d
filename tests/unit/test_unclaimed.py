"""A bundle that nobody joined with in time opens nothing: the centre makes its key void."""

from types import SimpleNamespace

import pytest

from leafcast.daemon.nodes import unclaimed
from leafcast.daemon.nodes.unclaimed import UnclaimedBundles
from schemas.identity import NodePath
from schemas.reports import NEVER_JOINED

LATE, HERE = NodePath.parse("/emea/late"), NodePath.parse("/emea/here")


class States:
    async def tree(self):
        return {
            "nodes": [
                {"path": str(LATE), "state": NEVER_JOINED},
                {"path": str(HERE), "state": "up"},
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
    tree = SimpleNamespace(issuer=lambda: None)
    enrolling = SimpleNamespace(
        record=lambda path: SimpleNamespace(path=path, nkey=keys[path]) if path in keys else None
    )
    return UnclaimedBundles(folder, tree, enrolling, States(), SimpleNamespace())


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


async def test_a_newer_key_is_none_of_an_old_bundles(tmp_path, issued):
    made = bundles(tmp_path, {LATE: "U9"})
    made.handed_out(LATE, "U1", 1000)
    assert await made.void_expired(2000) == []
    assert issued == {}


async def test_a_damaged_list_of_bundles_is_told_and_new_ones_are_remembered(
    tmp_path, issued, caplog
):
    (tmp_path / unclaimed.FILE).write_text('["half a li')
    made = bundles(tmp_path, {LATE: "U1"})
    assert "bundles.json is damaged" in caplog.text
    made.handed_out(LATE, "U1", 1000)
    assert await bundles(tmp_path, {LATE: "U1"}).void_expired(1001) == [LATE]
