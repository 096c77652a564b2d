"""A space on an API server that misbehaves in ways that no real one shows on demand."""

import asyncio
import json
import sys

import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.kubernetes import api_client
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Bookmark, Interest, ObjectsListed, Unserved
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.contract.following import following
from tests.contract.spaces import HandClock, config_map
from tests.unit.stub_api_server import (
    CONFIG_MAP_KIND,
    config_map_list,
    ended,
    event,
    silent,
    space_on,
    stub_server,
    write_kubeconfig,
)

KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
CONFIG_MAPS, PATH = Interest("", "configmaps"), "/api/v1/configmaps"
A, B = ObjectKey("", "configmaps", "shop", "a"), ObjectKey("", "configmaps", "shop", "b")
WORKSPACE = "/clusters/root:acme:shop"
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@pytest.fixture
async def stub():
    async with stub_server() as made:
        yield made


@pytest.fixture
async def space(stub, tmp_path):
    async with space_on(stub, tmp_path) as made:
        yield made


def serves(stub, lists, watches):
    """Answer each list, then each watch, with the next of these; the last one stays."""

    def answer(query):
        answers = watches if query.get("watch") else lists
        return answers.pop(0)() if len(answers) > 1 else answers[0]()

    stub.answers[PATH] = answer


async def test_a_workspace_is_asked_under_its_own_path(stub, tmp_path):
    async with space_on(stub, tmp_path, prefix=WORKSPACE) as space:
        serves(stub, [lambda: config_map_list("a")], [silent])
        assert await space.identity() == "one"
        assert await space.list("", "configmaps")
        async with following(space, CONFIG_MAPS) as (told, _):
            assert A in told.objects
    assert {"/api", "/apis", PATH} <= {path for path, _ in stub.asked}


async def test_a_proxy_that_the_environment_names_is_taken(stub, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", stub.url.replace("//", "//me:word@"))
    monkeypatch.setenv("no_proxy", "")
    stub.url = "http://hub.example"
    async with space_on(stub, tmp_path) as space:
        assert await space.identity() == "one"
    [headers] = stub.headers
    assert (headers["host"], headers["authorization"]) == ("hub.example", "Bearer secret")
    assert headers["proxy-authorization"].startswith("Basic ")


async def test_what_a_netrc_says_of_a_server_is_left_alone(space, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    assert await space.identity() == "one"


async def test_what_is_no_api_server_is_said_to_be_none(space, stub):
    stub.answers["/api/v1/namespaces/kube-system"] = b"<html>"
    with pytest.raises(SpaceError, match="does not speak JSON: check server:"):
        await space.identity()


async def test_who_a_server_is_is_asked_again_only_where_another_may_answer(space, stub):
    def asked():
        return len(stub.paths(KUBE_SYSTEM))

    gone = asyncio.Event()

    async def events():
        yield event("ADDED", "b", "6")
        await gone.wait()
        yield event("DELETED", "a", "7")
        await asyncio.Event().wait()

    serves(stub, [lambda: config_map_list("a")], [events])
    async with following(space, CONFIG_MAPS) as (told, _):
        await told.until(lambda told: B in told.objects)
        for _ in range(3):
            await space.list("", "configmaps")
            assert await space.identity() == "one"
        assert asked() == 1
        gone.set()
        await told.until(lambda told: A not in told.objects)
        assert asked() == 1
        async with asyncio.TaskGroup() as group:
            for _ in range(5):
                group.create_task(space.list("", "configmaps"))
        assert asked() == 2


async def test_what_came_of_asking_by_a_former_way_in_says_nothing_of_the_one_read_since(
    space, stub, tmp_path
):
    ended = asyncio.Event()

    async def nothing_useful():
        await ended.wait()
        yield b"<html>"

    stub.answers[KUBE_SYSTEM] = lambda _: nothing_useful()
    async with stub_server() as other:
        former = asyncio.create_task(space.identity())
        await eventually(lambda: stub.paths(KUBE_SYSTEM))
        doubts = space._api.doubts
        write_kubeconfig(tmp_path, other.url, {"token": "secret"})
        latter = asyncio.create_task(space.identity())
        await eventually(lambda: space._api.doubts > doubts)
        ended.set()
        with pytest.raises(SpaceError, match="does not speak JSON"):
            await former
        assert await latter == "one"


async def test_a_server_that_lost_who_it_was_is_not_written_to(space, stub):
    serves(stub, [lambda: config_map_list("a")], [lambda: silent(event("DELETED", "a", "7"))])
    async with following(space, CONFIG_MAPS) as (told, _):
        await told.until(lambda told: A not in told.objects)
        stub.answers[KUBE_SYSTEM] = (404, {"kind": "Status", "reason": "NotFound"})
        with pytest.raises(SpaceError, match="has lost the namespace kube-system") as lost:
            await space.apply(config_map("a", "shop"), "me")
        assert lost.value.reason == "ServiceUnavailable"
        stub.answers[KUBE_SYSTEM] = {"metadata": {"uid": "two", "name": "kube-system"}}
        with pytest.raises(AnotherSpace):
            await space.apply(config_map("a", "shop"), "me")


async def test_a_server_that_is_too_busy_is_asked_again(space, stub):
    busy = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": "try later"}
    answers = [(429, busy), (429, busy), config_map_list("a")]
    stub.answers[PATH] = lambda _: answers.pop(0)
    assert len((await space.list("", "configmaps")).objects) == 1
    stub.answers[PATH] = (429, busy)
    with pytest.raises(SpaceError, match="try later") as refused:
        await space.list("", "configmaps")
    assert refused.value.reason == "TooManyRequests"


@pytest.mark.parametrize("how", ["as-an-event", "as-an-answer"])
async def test_changes_that_are_forgotten_lead_to_a_new_list(space, stub, how):
    line = json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n"
    forgotten = (lambda: ended(line)) if how == "as-an-event" else (lambda: (410, EXPIRED))
    lists = [lambda: config_map_list("a"), lambda: config_map_list("b")]
    serves(stub, lists, [forgotten, silent])
    async with following(space, CONFIG_MAPS) as (told, _):
        await told.until(lambda told: B in told.objects)
        assert A not in told.objects
        assert not told.changes
        assert not [event for event in told.events if isinstance(event, Unserved)]


async def test_pages_whose_revision_is_forgotten_are_read_all_at_once(space, stub):
    def answer(query):
        if query.get("continue"):
            return 410, EXPIRED
        return config_map_list("a", "b", more="" if "limit" not in query else "next")

    stub.answers[PATH] = answer
    assert len((await space.list("", "configmaps")).objects) == 2


async def test_an_empty_list_is_told_as_it_is_and_nothing_as_deleted(space, stub):
    serves(stub, [lambda: config_map_list("a"), config_map_list], [lambda: (410, EXPIRED), silent])
    async with following(space, CONFIG_MAPS) as (told, _):
        listed = await told.until(
            lambda told: [event for event in told.events if isinstance(event, ObjectsListed)][1:]
        )
        assert listed == [ObjectsListed(CONFIG_MAPS, {})]
        assert not told.changes


async def test_watches_that_end_at_once_are_not_taken_up_without_pause(space, stub):
    serves(stub, [lambda: config_map_list("a")], [ended])
    async with following(space, CONFIG_MAPS) as (_, _):
        await SystemClock().sleep(1)
    assert len([query for query in stub.paths(PATH) if query.get("watch")]) <= 6


async def test_a_watch_is_resumed_where_it_ended_also_after_bookmarks_only(space, stub):
    bookmark = event("BOOKMARK", "", "40")
    serves(stub, [lambda: config_map_list("a")], [lambda: ended(bookmark), silent])
    async with following(space, CONFIG_MAPS):
        await eventually(lambda: len(stub.paths(PATH)) >= 3)
    first, second = [query for query in stub.paths(PATH) if query.get("watch")][:2]
    assert (first["resourceVersion"], second["resourceVersion"]) == ("5", "40")
    assert first["allowWatchBookmarks"] == "true"


async def test_bookmarks_tell_how_far_everything_was_told(space, stub):
    serves(stub, [config_map_list], [lambda: silent(event("BOOKMARK", "", "40"))])
    async with following(space, CONFIG_MAPS) as (told, _):
        await told.until(lambda told: Bookmark("40") in told.events)


async def test_a_mark_is_had_of_what_is_followed_where_namespaces_may_not_be_listed(space, stub):
    refused = {"kind": "Status", "reason": "Forbidden", "message": "no"}
    stub.answers["/api/v1/namespaces"] = (403, refused)
    serves(stub, [lambda: config_map_list("a")], [silent])
    with pytest.raises(SpaceError, match="no"):
        await space.revision()
    async with following(space, CONFIG_MAPS) as (told, _):
        assert await space.revision() == "5"
        await told.until(lambda told: Bookmark("5") in told.events)


async def test_events_may_come_in_any_pieces_and_be_large(space, stub):
    large = event("ADDED", "b", "6", text="x" * 3_000_000)
    pieces = [large[at : at + 70_001] for at in range(0, len(large), 70_001)]
    last = event("DELETED", "a", "7") + event("MODIFIED", "b", "8", text="y")
    watch = [*pieces, last[:5], last[5:]]
    serves(stub, [lambda: config_map_list("a")], [lambda: silent(*watch)])
    async with following(space, CONFIG_MAPS) as (told, _):
        await told.until(lambda told: len(told.changes) == 3)
        assert [change.kind for change in told.changes] == ["added", "deleted", "modified"]
        assert len(told.changes[0].object["data"]["text"]) == 3_000_000
        assert told.objects.keys() == {B}


async def test_a_kind_that_cannot_be_watched_is_unserved(space, stub):
    verbs = ["get", "list"]
    stub.answers["/api/v1"]["resources"] = [{**CONFIG_MAP_KIND, "verbs": verbs}]
    async with following(space, CONFIG_MAPS) as (told, _):
        [said] = [event for event in told.events if isinstance(event, Unserved)]
        assert (said.reason, said.message) == (
            "MethodNotAllowed",
            "configmaps cannot be watched",
        )


async def test_an_older_servers_groups_are_asked_one_by_one_and_a_broken_one_hides_none(
    space, stub
):
    stub.answers["/apis"]["groups"] = [
        {"name": "metrics.k8s.io", "versions": [{"version": "v1"}], "preferredVersion": {}},
        {
            "name": "shop.io",
            "versions": [{"version": "v1"}, {"version": "v2"}],
            "preferredVersion": {"version": "v2"},
        },
    ]
    resource = {**CONFIG_MAP_KIND, "name": "carts", "kind": "Cart"}
    for version in ("v1", "v2"):
        stub.answers[f"/apis/shop.io/{version}"] = {"resources": [resource]}
    stub.answers["/apis/metrics.k8s.io/v1"] = (503, b"no endpoints available")
    carts, maps = sorted(await space.kinds(), key=lambda kind: kind.resource)
    assert (carts.group, carts.version, carts.versions) == ("shop.io", "v2", ("v2", "v1"))
    assert maps.resource == "configmaps"


async def test_of_a_group_whose_server_does_not_answer_nothing_is_said_to_be_absent(space, stub):
    group = {"name": "shop.io", "versions": [{"version": "v1"}], "preferredVersion": {}}
    stub.answers["/apis"]["groups"] = [group]
    stub.answers["/apis/shop.io/v1"] = (503, b"")
    cart = ObjectKey("shop.io", "carts", "shop", "a")
    for asked in (space.get(cart), space.delete(cart)):
        with pytest.raises(SpaceError, match="kubectl get apiservices") as refused:
            await asked
        assert refused.value.reason == "ServiceUnavailable"
    async with following(space, Interest("shop.io", "carts")) as (told, _):
        [said] = [event for event in told.events if isinstance(event, Unserved)]
        assert said.reason == "ServiceUnavailable"
    assert await space.get(ObjectKey("none.io", "carts", "shop", "a")) is None
    assert await space.kinds()
    with pytest.raises(SpaceError, match=r"the group shop\.io does not answer"):
        await space.kinds(complete=True)


async def test_a_group_whose_server_went_away_stays_as_it_was(space, stub):
    group = {"name": "shop.io", "versions": [{"version": "v1"}], "preferredVersion": {}}
    stub.answers["/apis"]["groups"] = [group]
    carts = {"resources": [{**CONFIG_MAP_KIND, "name": "carts", "kind": "Cart"}]}
    stub.answers["/apis/shop.io/v1"] = carts
    before = await space.kinds()
    stub.answers["/apis/shop.io/v1"] = (503, b"")
    assert await space.kinds() == before
    stub.answers["/apis"]["groups"] = []
    assert [kind.resource for kind in await space.kinds()] == ["configmaps"]


async def test_another_space_at_the_same_address_is_noticed_once_a_connection_broke(
    space, stub, tmp_path
):
    serves(stub, [lambda: config_map_list("a")], [silent])
    assert await space.list("", "configmaps")
    stub.answers["/api/v1/namespaces/kube-system"]["metadata"]["uid"] = "two"
    assert await space.list("", "configmaps")
    (tmp_path / "kubeconfig").touch()
    with pytest.raises(AnotherSpace, match="its id is two, and was one"):
        await space.list("", "configmaps")


def program(folder, *lines):
    script = folder / "credentials.py"
    script.write_text("\n".join(("import json, pathlib, sys", *lines)))
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
        }
    }


GIVES = (
    "file = pathlib.Path(sys.argv[0]).with_name('count')",
    "count = int(file.read_text()) + 1 if file.exists() else 1",
    "file.write_text(str(count))",
    "status = {'token': f't{count}', 'expirationTimestamp': '2999-01-01T00:00:00Z'}",
    "print(json.dumps({'kind': 'ExecCredential', 'status': status}))",
)


async def test_a_programs_credentials_are_kept_until_they_expire(stub, tmp_path):
    clock = HandClock()
    async with space_on(stub, tmp_path, clock=clock, user=program(tmp_path, *GIVES)) as space:
        await space.identity()
        await space.identity()
        assert {headers["authorization"] for headers in stub.headers} == {"Bearer t1"}
        clock.ahead += 1000 * 365 * 86400
        await space.revision()
        assert stub.headers[-1]["authorization"] == "Bearer t2"


async def test_a_programs_credentials_are_made_anew_once_they_are_refused(
    stub, tmp_path, monkeypatch
):
    monkeypatch.setattr(api_client, "RENEW_SECONDS_MIN", 0)
    async with space_on(stub, tmp_path, user=program(tmp_path, *GIVES)) as space:
        await space.identity()
        known = stub.answers["/api/v1/namespaces/kube-system"]
        answers = [(401, {"kind": "Status", "message": "Unauthorized"}), known]
        stub.answers["/api/v1/namespaces/kube-system"] = lambda _: answers.pop(0)
        space._api.doubt()
        assert await space.identity() == "one"
        assert stub.headers[-1]["authorization"] == "Bearer t2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sys.exit('log in first')", "ended with 1: log in first"),
        ("print('{}')", "printed no ExecCredential"),
        ("print(json.dumps({'status': {}}))", "gave neither a token nor a certificate"),
    ],
)
async def test_a_program_that_gives_no_credentials_is_named_with_what_it_said(
    stub, tmp_path, line, said
):
    async with space_on(stub, tmp_path, user=program(tmp_path, line)) as space:
        with pytest.raises(SpaceError, match=said) as refused:
            await space.identity()
    assert f'context "hub" of {tmp_path}/kubeconfig: exec: {sys.executable}' in str(refused.value)
    assert not stub.asked


async def test_a_program_that_is_not_there_is_named_with_its_hint(stub, tmp_path):
    user = program(tmp_path)
    user["exec"] |= {"command": "/nowhere/login", "installHint": "see https://example.com"}
    async with space_on(stub, tmp_path, user=user) as space:
        with pytest.raises(SpaceError, match=r"/nowhere/login cannot be run.*see https://example"):
            await space.identity()


async def test_impersonation_is_asked_for(stub, tmp_path):
    user = {"token": "t", "as": "jane", "as-groups": ["a", "b"]}
    async with space_on(stub, tmp_path, user=user) as space:
        await space.identity()
    assert stub.headers[0]["impersonate-user"] == "jane"
