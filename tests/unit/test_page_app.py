"""The page over HTTP, as a browser and as who should not see it ask for it."""

import re

import pytest

from leafcast.ask.client import api_error
from leafcast.ask.failures import CallFailed, NotRunning
from leafcast.ui import app
from leafcast.ui.page_place import PagePlace
from leafcast.ui.serving import PagePortTaken, listening
from relay.adapters.clock import SystemClock
from schemas.records.asks import AskFault
from tests.doubles.page_facts import InventedFacts, placement
from tests.doubles.page_scenes import PLAN
from tests.page_client import let_in, served

pytestmark = pytest.mark.timeout(60)

SCRIPT = "<script>alert(1)</script>\x1b[31m\u202e"


async def test_a_token_becomes_a_cookie_and_the_next_address_is_printed():
    async with served(InventedFacts()) as (addresses, client):
        address = await addresses.get()
        used = address.removeprefix(client.base)
        # Who looks what an address is, or sends something there, is no browser that opens it.
        for method in ("HEAD", "POST"):
            async with client.asked(used, method) as answer:
                assert (answer.status, answer.headers.get("set-cookie")) == (401, None)
        async with client.asked(used) as answer:
            assert (answer.status, answer.headers["location"]) == (303, "/")
            said = answer.headers["set-cookie"].lower()
        assert "httponly" in said
        assert "samesite=strict" in said
        assert address.partition("token=")[2] not in said
        assert await addresses.get() != address
        # Who was let in, and comes by the used address, goes on.
        async with client.asked(used) as answer:
            assert (answer.status, answer.headers["location"]) == (303, "/")
        async with client.asked("/") as answer:
            assert answer.status == 200
        client.cookies.clear()
        async with client.asked(used) as answer:
            assert answer.status == 401
            assert "was used" in await answer.text()


@pytest.mark.parametrize(
    ("reason", "status", "remedy"),
    [("UnknownVerb", 503, "upgrade it"), ("NoSuchNode", 404, "leafcast node list")],
)
async def test_a_node_that_is_gone_or_too_old_is_told_with_the_remedy(reason, status, remedy):
    facts, error = InventedFacts(), api_error(AskFault(reason, "/region-9 gives no proof", "/"))
    facts.fails = CallFailed("ask", error.code, error.message, error.remedy)
    async with let_in(facts) as client, client.asked("/api/v1/proof?at=/region-9") as answer:
        assert answer.status == status
        said = (await answer.json())["error"]
    assert (said["message"], said["away"]) == ("/region-9 gives no proof", False)
    assert remedy in said["remedy"]


async def test_an_address_with_a_token_leads_to_no_other_server():
    async with served(InventedFacts()) as (addresses, client):
        token = (await addresses.get()).partition("?")[2]
        async with client.asked(f"//evil.example/?{token}") as answer:
            assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize(
    "path", ["/", "/api/v1/placements", "/api/v1/live/tree", "/static/main.js"]
)
async def test_without_cookie_nothing_is_shown(path):
    async with served(InventedFacts()) as (_, client), client.asked(path) as answer:
        assert answer.status == 401
        assert "shop" not in await answer.text()


@pytest.mark.parametrize(
    "said",
    [{"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}],
)
async def test_another_page_s_request_is_refused_with_cookie_and_with_token(said):
    async with let_in(InventedFacts()) as client:
        for path in ("/", "/api/v1/placements", "/?token=x"):
            async with client.asked(path, **said) as answer:
                assert answer.status == 403


async def test_each_answer_says_what_a_browser_may_do_with_it():
    async with let_in(InventedFacts()) as client:
        for path in ("/", "/tree/a", "/static/style.css", "/api/v1/placements", "/api/v1/none"):
            async with client.asked(path) as answer:
                assert "default-src 'none'" in answer.headers["content-security-policy"]
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert answer.headers["cache-control"] == "no-store"
                assert "server" not in answer.headers


async def test_the_page_loads_nothing_but_its_own_files_and_has_no_script_within():
    async with let_in(InventedFacts()) as client:
        async with client.asked("/") as answer:
            text = await answer.text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=", text)
        for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
            async with client.asked(name) as answer:
                assert answer.status == 200, name
                body = await answer.text()
            for module in re.findall(r'from "\./([^"]+)"', body):
                async with client.asked(f"/static/{module}") as answer:
                    assert answer.headers["content-type"].startswith("text/javascript"), module


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "none.js", "index.html"]
)
async def test_no_file_but_those_of_the_page_is_served(name):
    async with let_in(InventedFacts()) as client, client.asked(f"/static/{name}") as answer:
        assert answer.status == 404 or "sse_starlette" not in await answer.text()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_is_changed_by_the_page(method):
    async with let_in(InventedFacts()) as client:
        for path in ("/api/v1/placements", "/"):
            async with client.asked(path, method) as answer:
                assert answer.status == 405


async def test_a_view_says_of_when_it_is_and_what_edges_said_is_plain_text():
    facts = InventedFacts()
    facts.listed = [placement("shop", failing=1, synced=5, wrong=[(SCRIPT, SCRIPT, 1, "/a")])]
    async with let_in(facts) as client:
        async with client.asked("/api/v1/placements") as answer:
            assert answer.headers["content-type"] == "application/json"
            said = await answer.json()
        assert abs(said["asOfMs"] - SystemClock().now().wall_ms) < 60_000
        worst = said["view"]["rows"][0]["worst"]
        assert "<script>" in worst
        assert "\x1b" not in worst
        assert "\u202e" not in worst


async def test_a_view_goes_on_and_tells_that_the_tree_is_away_and_back():
    facts = InventedFacts()
    async with let_in(facts) as client, client.asked("/api/v1/live/placements") as answer:
        told = answer.events()
        event, said = await anext(told)
        assert (event, said["view"]["rows"][0]["id"]) == ("whole", "epl/shop")
        facts.fails = NotRunning("/d")
        while (event := (await anext(told))[0]) == "patch":
            pass
        assert event == "failed"
        facts.fails = None
        while (event := (await anext(told))[0]) == "failed":
            pass
        assert event == "whole"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/none", 404),
        ("/api/v1/live/none", 404),
        ("/api/v1/proof?at=/a&placement=epl/gone", 404),
        ("/api/v1/placements?x=1", 400),
        ("/api/v1/tree?path=region-1", 400),
        ("/api/v1/tree?skip=-1", 400),
        (f"/api/v1/tree?search={'x' * 2000}", 400),
        ("/api/v1/placement?name=none", 404),
        ("/api/v1/placement", 400),
        ("/api/none", 404),
    ],
)
async def test_what_is_wrong_is_said_with_its_remedy(path, status):
    async with let_in(InventedFacts()) as client, client.asked(path) as answer:
        assert answer.status == status
        assert (await answer.json())["error"]["message"]


async def test_manifests_are_planned_for_this_page_alone():
    facts = InventedFacts()
    facts.plans = PLAN
    async with let_in(facts) as client:
        async with client.asked("/api/v1/plan", "POST", "kind: A", origin=client.base) as answer:
            view = (await answer.json())["view"]
        assert view["reach"] == PLAN["reach"]
        (row,) = view["rows"]
        assert (row["object"], row["action"], row["more"]) == (
            "shop/deployments.apps/web",
            "delete",
            2,
        )
        assert view["rest"] == 9
        # Which page asks is said by each browser.
        for said in ({}, {"origin": "http://evil.example"}):
            async with client.asked("/api/v1/plan", "POST", "kind: A", **said) as answer:
                assert answer.status == 403
        async with client.asked("/api/v1/plan", "POST", "wrong", origin=client.base) as answer:
            assert answer.status == 400
            assert "no YAML" in (await answer.json())["error"]["message"]
        async with client.asked("/api/v1/plan") as answer:
            assert answer.status == 404


async def test_a_plan_of_too_much_is_refused_before_it_is_read_whole(monkeypatch):
    monkeypatch.setattr(app, "PLAN_BYTES_MAX", 10)
    async with let_in(InventedFacts()) as client:
        body, origin = "x" * 11, client.base
        async with client.asked("/api/v1/plan", "POST", body, origin=origin) as answer:
            assert answer.status == 413


async def test_a_tree_that_does_not_answer_is_said_to_be_away():
    facts = InventedFacts()
    facts.fails = CallFailed("status", "Timeout", "the tree did not answer", "see its log")
    async with let_in(facts) as client, client.asked("/api/v1/placements") as answer:
        assert answer.status == 503
        said = (await answer.json())["error"]
    assert (said["away"], said["remedy"]) == (True, "see its log")


async def test_a_page_of_a_hundred_thousand_edges_is_as_long_as_one_of_a_hundred():
    lengths = []
    for shape in ((10, 2, 5), (1000, 10, 10)):
        facts = InventedFacts(*shape)
        async with let_in(facts) as client, client.asked("/api/v1/tree") as answer:
            rows = (await answer.json())["view"]["rows"]
        lengths.append(len(rows))
    assert lengths == [10, 200]


def test_a_port_that_is_taken_names_the_remedy():
    with listening(PagePlace()) as taken, pytest.raises(PagePortTaken, match="--port"):
        listening(PagePlace(port=taken.getsockname()[1]))
