"""A node at its own page: since when it is cut off, what it holds, what that waits for."""

import pytest

from leafcast.node.link_history import CHANGES_MAX, RECENT_MS, LinkHistory
from leafcast.ui.here_rows import here_form
from leafcast.ui.openapi import API, openapi_document
from leafcast.ui.view_table import NODE_VIEWS
from tests.doubles.page_node import InventedNode, held
from tests.page_client import let_in

pytestmark = pytest.mark.timeout(60)


def test_a_node_is_cut_off_since_it_was_in_session_last_however_often_it_tries():
    link = LinkHistory(100)
    assert link.form(100)["sessionMs"] is None
    for at, state in enumerate(["in session", "not reached", "catching up", "not reached"]):
        link.note(state, 200 + at)
        link.note(state, 300 + at)
    said = link.form(400)
    assert (said["state"], said["sinceMs"], said["sessionMs"]) == ("not reached", 203, 201)
    assert said["changes"][-1] == {"atMs": 100, "state": "starting"}
    link.note("in session", 500)
    assert (link.form(500)["sessionMs"], link.form(500)["lostTimes"]) == (None, 1)
    assert link.form(201 + RECENT_MS + 1)["lostTimes"] == 0


def test_a_link_that_flaps_for_ever_is_kept_within_its_bound():
    link = LinkHistory(0)
    for at in range(5 * CHANGES_MAX):
        link.note("in session" if at % 2 else "not reached", at)
    assert len(link.form(5 * CHANGES_MAX)["changes"]) == CHANGES_MAX


@pytest.mark.parametrize(
    ("here", "waits"),
    [
        ({"headOnly": True}, "its content, which"),
        ({"missingCount": 2, "missing": ["41fc" * 16]}, "2 pieces of content"),
        ({"outdated": True}, "a newer version"),
        ({"orphaned": True}, "until a person decides"),
    ],
)
def test_a_placement_says_what_it_waits_for_and_is_not_well_meanwhile(here, waits):
    node = InventedNode(held=[held("edgeplacement/shop", here={**here, "refusedMs": 5_000})])
    (row,) = here_form(node.said)["rows"]
    assert waits in row["waits"][0]
    assert (row["tone"], row["waitsSinceMs"]) == ("busy", node.said["nowMs"] - 5_000)


async def test_a_page_of_a_node_has_its_one_view_as_its_description_says():
    async with let_in(InventedNode()) as client:
        async with client.asked(f"{API}/openapi.json") as answer:
            described = await answer.json()
        assert described == openapi_document(described["info"]["version"], NODE_VIEWS)
        assert set(described["paths"]) == {
            f"{API}/{it}" for it in ("here", "live/here", "openapi.json")
        }
        async with client.asked(f"{API}/here") as answer:
            shown = (await answer.json())["view"]
        assert set(shown) == set(NODE_VIEWS["here"].shows)
        async with client.asked(f"{API}/placements") as answer:
            assert answer.status == 404
            assert "there are: here" in (await answer.json())["error"]["message"]
        async with client.asked(f"{API}/plan", "POST", "kind: A", origin=client.base) as answer:
            assert answer.status == 404
            assert "plan at the centre" in await answer.text()
