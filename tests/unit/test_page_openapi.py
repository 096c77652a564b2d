"""The page's API is as its description says: each route, each word, what each view shows."""

import pytest
from starlette.routing import Route

from leafcast.ui.app import make_app
from leafcast.ui.openapi import API, openapi_document
from leafcast.ui.view_table import VIEWS
from leafcast.ui.views import Views
from tests.doubles.page_facts import InventedFacts
from tests.doubles.page_scenes import PLAN, troubled_facts
from tests.page_client import let_in

pytestmark = pytest.mark.timeout(60)
NEEDED = {
    "placement": "?name=epl/shop",
    "rollout": "?name=shop",
    "copy": "?at=/region-1/site-1/edge-1&object=deployments.apps/shop/web",
    "search": "?search=web",
    "trace": "?name=epl/shop",
}


def test_the_description_has_the_routes_that_there_are_and_no_others():
    app = make_app(Views(InventedFacts(), None), None, None, None, None)
    routes = {
        (route.path, method.lower())
        for route in app.routes
        if isinstance(route, Route) and route.path.startswith(API)
        for method in (route.methods or {"GET"}) - {"HEAD"}
    }
    templates = {f"{API}/{{name}}": "", f"{API}/live/{{name}}": "live/"}
    expected = {(path, method) for path, method in routes if path not in templates}
    expected |= {(f"{API}/{it}{name}", "get") for it in templates.values() for name in VIEWS}
    paths = openapi_document("1")["paths"]
    assert {(path, method) for path, said in paths.items() for method in said} == expected
    ids = [it["operationId"] for said in paths.values() for it in said.values()]
    assert len(ids) == len(set(ids))


async def test_each_view_takes_the_words_of_its_description_and_shows_what_that_says():
    facts = troubled_facts()
    async with let_in(facts) as client:
        async with client.asked(f"{API}/openapi.json") as answer:
            paths = (await answer.json())["paths"]
        for name in VIEWS:
            said = paths[f"{API}/{name}"]["get"]
            schema = said["responses"]["200"]["content"]["application/json"]["schema"]
            async with client.asked(f"{API}/{name}{NEEDED.get(name, '')}") as answer:
                assert answer.status == 200, await answer.text()
                told = await answer.json()
            assert set(told) == set(schema["properties"]), name
            assert set(told["view"]) == set(schema["properties"]["view"]["properties"]), name
            for word in said["parameters"]:
                async with client.asked(f"{API}/{name}?{word['name']}=") as answer:
                    assert "takes no" not in await answer.text(), (name, word)
            async with client.asked(f"{API}/{name}?nonesuch=1") as answer:
                assert answer.status == 400
                assert "takes no nonesuch" in (await answer.json())["error"]["message"]


async def test_a_plan_and_an_error_are_as_the_description_says():
    facts = InventedFacts()
    facts.plans = PLAN
    document = openapi_document("1")
    schema = document["paths"][f"{API}/plan"]["post"]["responses"]["200"]
    shows = schema["content"]["application/json"]["schema"]["properties"]["view"]["properties"]
    error = document["components"]["schemas"]["Failed"]["properties"]["error"]["properties"]
    async with let_in(facts) as client:
        async with client.asked(f"{API}/plan", "POST", "kind: A", origin=client.base) as answer:
            assert set((await answer.json())["view"]) == set(shows)
        for path in ("none", "placement?name=none", "../none"):
            async with client.asked(f"{API}/{path}") as answer:
                assert set((await answer.json())["error"]) == set(error), path
        client.cookies.clear()
        async with client.asked(f"{API}/placements") as answer:
            assert (answer.status, set((await answer.json())["error"])) == (401, set(error))
