"""A space on an API server that fails or changes: nothing is made up, and it comes back."""

import asyncio
import shutil
from contextlib import asynccontextmanager

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes import api_client, follower, informer, silence
from relay.adapters.kubernetes.kubeconfig import InCluster, Kubeconfig, read_access
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Bookmark, Interest, Interests, ServerUnanswered
from schemas.objects.objects import ObjectKey
from tests.contract.following import Told, following, unserved
from tests.contract.spaces import config_map, namespace

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

CONFIG_MAPS = Interest("", "configmaps")
SETTINGS = ObjectKey("", "configmaps", "default", "settings")
RIGHTS = (
    ("get", "namespaces", "kube-system"),
    ("list,watch,get,patch,create", "configmaps", ""),
)


@asynccontextmanager
async def space_of(source):
    space = KubernetesSpace(source, SystemClock(), SystemDice())
    try:
        yield space
    finally:
        await space.close()


@pytest.fixture
def api_server(own_server):
    """The server of this module: it runs, and has nothing of what the tests follow."""
    yield own_server
    if own_server.kubectl("get", "--raw", "/readyz", check=False)[0]:
        own_server.restart()
    own_server.kubectl("delete", "-n", "default", "configmap", "settings", "--ignore-not-found")


@pytest.fixture
async def space(api_server):
    async with space_of(Kubeconfig(str(api_server.kubeconfig))) as made:
        yield made


async def run(verb, *arguments, **options):
    return await asyncio.to_thread(verb, *arguments, **options)


def settings(**data):
    return config_map(namespace="default", **data)


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_follower_goes_on_when_its_server_is_back(space, api_server, end):
    await space.apply(settings(a="1"), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        await run(getattr(api_server, end))
        with pytest.raises(SpaceError, match="cannot be reached") as refused:
            await space.get(SETTINGS)
        assert refused.value.reason == "ServiceUnavailable"
        assert api_server.url in refused.value.message
        assert str(api_server.kubeconfig) in refused.value.message
        await run(api_server.start)
        changed = await space.apply(settings(a="2"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == changed)
        assert not [change for change in told.changes if change.kind == "deleted"]


async def test_a_long_outage_is_told_and_says_nothing_of_objects(space, api_server, monkeypatch):
    monkeypatch.setattr(informer, "OUTAGE_SECONDS_MAX", 0.5)
    made = await space.apply(settings(a="1"), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        await run(api_server.kill)
        await told.until(lambda told: unserved(told, "ServiceUnavailable"))
        assert told.objects[SETTINGS] == made
        heard = len(told.events)
        await run(api_server.start)
        listed = await told.until(
            lambda told: [event for event in told.events[heard:] if hasattr(event, "objects")]
        )
        assert listed[0].objects[SETTINGS] == made


async def test_a_space_that_cannot_be_reached_at_first_is_synced_as_unserved(api_server):
    await run(api_server.kill)
    async with (
        space_of(Kubeconfig(str(api_server.kubeconfig))) as space,
        following(space, CONFIG_MAPS) as (told, _),
    ):
        assert unserved(told, "ServiceUnavailable")
        await run(api_server.start)
        made = await space.apply(settings(a="1"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == made)


async def test_a_server_that_stands_still_is_never_taken_for_one_that_has_no_more_to_say(
    space, api_server, monkeypatch
):
    monkeypatch.setattr(follower, "QUIET_SECONDS", 0.1)
    async with following(space, CONFIG_MAPS) as (told, _):
        await space.apply(namespace("written-last"), "me")
        mark = await space.revision()
        api_server.freeze()
        try:
            with pytest.raises(TimeoutError):
                await told.until(lambda told: Bookmark(mark) in told.events, seconds=2)
        finally:
            api_server.thaw()
        await told.until(lambda told: Bookmark(mark) in told.events)


async def test_a_server_that_does_not_answer_is_said_to_be_unavailable(
    space, api_server, monkeypatch
):
    await space.apply(settings(a="1"), "me")
    monkeypatch.setattr(api_client, "REQUEST_SECONDS_MAX", 0.5)
    api_server.freeze()
    try:
        with pytest.raises(SpaceError, match="does not answer in time") as refused:
            await space.get(SETTINGS)
        assert refused.value.reason == "ServiceUnavailable"
    finally:
        api_server.thaw()
    monkeypatch.undo()
    assert await space.get(SETTINGS)


async def test_a_server_that_stands_still_is_told_of_while_nothing_changes_and_taken_back(
    space, api_server, monkeypatch
):
    monkeypatch.setattr(silence, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(silence, "ANSWER_SECONDS_MAX", 1.0)

    def last(told):
        return next((e.why for e in reversed(told.events) if isinstance(e, ServerUnanswered)), None)

    async with following(space, CONFIG_MAPS) as (told, _):
        api_server.freeze()
        try:
            said = await told.until(last)
            assert said.startswith("Timeout: its API server gives no answer; since 20")
        finally:
            api_server.thaw()
        await told.until(lambda told: last(told) == "")


async def test_a_watch_that_brings_nothing_for_long_is_taken_up_anew(
    space, api_server, monkeypatch
):
    monkeypatch.setattr(api_client, "IDLE_SECONDS_MAX", 0.5)
    async with following(space, CONFIG_MAPS) as (told, _):
        api_server.freeze()
        await SystemClock().sleep(1)
        api_server.thaw()
        made = await space.apply(settings(a="1"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == made)


async def test_a_certificate_that_changed_is_refused_until_the_kubeconfig_has_it(
    space, api_server, tmp_path
):
    old = tmp_path / "kubeconfig"
    shutil.copy(api_server.kubeconfig, old)
    async with following(space, CONFIG_MAPS) as (told, _):
        await run(api_server.renew_certificate)
        made = await space.apply(settings(a="1"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == made)
    async with space_of(Kubeconfig(str(old))) as outdated:
        with pytest.raises(SpaceError, match="certificate-authority") as refused:
            await outdated.get(SETTINGS)
        assert refused.value.reason == "ServiceUnavailable"
        shutil.copy(api_server.kubeconfig, old)
        assert await outdated.get(SETTINGS) == made


async def test_a_token_that_is_refused_is_said_and_a_new_one_in_the_file_is_taken(
    space, api_server, tmp_path
):
    old = tmp_path / "kubeconfig"
    shutil.copy(api_server.kubeconfig, old)
    token = read_access(Kubeconfig(str(old))).user["token"]
    async with space_of(Kubeconfig(str(old))) as outdated:
        made = await outdated.apply(settings(a="1"), "me")
        await run(api_server.renew_token)
        with pytest.raises(SpaceError, match="renew its token") as refused:
            await outdated.get(SETTINGS)
        assert refused.value.reason == "Unauthorized"
        assert str(old) in refused.value.message
        assert token not in refused.value.message
        shutil.copy(api_server.kubeconfig, old)
        assert await outdated.get(SETTINGS) == made


async def test_a_pod_reads_the_token_of_its_account_as_it_is_rotated(
    api_server, tmp_path, monkeypatch
):
    api_server.kubectl("create", "serviceaccount", "edge")
    binding = ("create", "clusterrolebinding", "edge", "--clusterrole=cluster-admin")
    api_server.kubectl(*binding, "--serviceaccount=default:edge")
    host, _, port = api_server.url.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    shutil.copy(api_server.real.authority, tmp_path / "ca.crt")
    (tmp_path / "token").write_text("expired\n")
    async with space_of(InCluster(tmp_path)) as space:
        with pytest.raises(SpaceError, match="Unauthorized"):
            await space.identity()
        token = api_server.kubectl("create", "token", "edge")
        (tmp_path / "token").write_text(token)
        made = await until_allowed(space.apply, settings(a="1"), "me")
        assert await space.get(SETTINGS) == made


async def test_rights_that_are_lost_are_told_in_the_servers_words_until_they_are_back(
    api_server, monkeypatch
):
    monkeypatch.setattr(informer, "WATCH_SECONDS_MIN", 1)
    monkeypatch.setattr(informer, "LASTING_PAUSE_SECONDS", 0.5)
    guest = await run(api_server.add_user, "guest")
    for at, (verbs, resource, name) in enumerate(RIGHTS):
        named = [f"--resource-name={name}"] if name else []
        role = ("create", "clusterrole", f"r{at}", f"--verb={verbs}", f"--resource={resource}")
        api_server.kubectl(*role, *named)
        bind = ("create", "clusterrolebinding", f"r{at}", f"--clusterrole=r{at}", "--user=guest")
        api_server.kubectl(*bind)
    async with space_of(Kubeconfig(str(guest))) as space:
        made = await until_allowed(space.apply, settings(a="1"), "me")
        async with following(space, CONFIG_MAPS) as (told, _):
            api_server.kubectl("delete", "clusterrolebinding", "r1")
            [lost] = await told.until(lambda told: unserved(told, "Forbidden"))
            assert 'User "guest" cannot' in lost.message
            assert told.objects[SETTINGS] == made
            with pytest.raises(SpaceError, match='User "guest" cannot patch') as refused:
                await space.apply(settings(a="2"), "me")
            assert refused.value.reason == "Forbidden"
            api_server.kubectl(
                "create", "clusterrolebinding", "r1", "--clusterrole=r1", "--user=guest"
            )
            changed = await until_allowed(space.apply, settings(a="2"), "me")
            await told.until(lambda told: told.objects.get(SETTINGS) == changed)


async def until_allowed(verb, *arguments):
    """Rights that were given hold a moment later."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await verb(*arguments)
            except SpaceError as error:
                if error.reason != "Forbidden":
                    raise
                await SystemClock().sleep(0.05)


async def test_another_server_at_the_same_kubeconfig_is_another_space(new_server, tmp_path):
    one, other = await run(new_server), await run(new_server)
    file = tmp_path / "kubeconfig"
    shutil.copy(one.kubeconfig, file)
    async with space_of(Kubeconfig(str(file))) as space:
        await space.apply(settings(a="1"), "me")
        followed = asyncio.ensure_future(space.follow(Interests([CONFIG_MAPS]), Told()))
        shutil.copy(other.kubeconfig, file)
        await run(one.kill)
        with pytest.raises(AnotherSpace, match="another space answers"):
            await space.apply(settings(a="2"), "me")
        with pytest.raises(AnotherSpace):
            await followed
    assert "settings" not in other.kubectl("get", "configmaps", "-o", "name")
