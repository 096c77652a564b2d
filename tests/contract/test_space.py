"""What every space promises, held against the one in memory and the one on a real bucket."""

import asyncio
import base64
from contextlib import aclosing, asynccontextmanager

import nats
import pytest

from relay.ports import Conflict, FieldConflict, ResumeTooOld, SpaceError
from schemas.objects import ObjectKey
from schemas.selectors import LabelSelector
from tests.contract.spaces import SeededDice, config_map, deployment, embedded, namespace

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")


async def changes(space, since, count):
    seen = []
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        async for change in watched:
            seen.append(change)
            if len(seen) == count:
                break
    return seen


async def test_what_is_applied_can_be_read(space):
    written = await space.apply(config_map(a="1"), "me")
    assert await space.get(SETTINGS) == written
    metadata = written["metadata"]
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert written["data"] == {"a": "1"}


async def test_an_object_that_is_not_there_is_none(space):
    assert await space.get(SETTINGS) is None


async def test_applying_the_same_again_writes_nothing(space):
    first = await space.apply(config_map(a="1"), "me")
    assert await space.apply(config_map(a="1"), "me") == first


async def test_what_a_manager_no_longer_says_is_removed_and_others_fields_stay(space):
    await space.apply(config_map(a="1", b="2", labels={"x": "1"}), "me")
    await space.apply(config_map(c="3"), "they")
    left = await space.apply(config_map(a="1"), "me")
    assert left["data"] == {"a": "1", "c": "3"}
    assert "x" not in left["metadata"].get("labels", {})


async def test_two_writers_at_once_lose_nothing(space):
    async with asyncio.TaskGroup() as group:
        for at in range(6):
            group.create_task(space.apply(config_map(**{f"k{at}": "v"}), f"manager{at}"))
    assert len((await space.get(SETTINGS))["data"]) == 6


async def test_generation_counts_changes_of_the_spec_only(space):
    first = await space.apply(deployment(), "me")
    labelled = deployment()
    labelled["metadata"]["labels"] = {"a": "b"}
    await space.apply(labelled, "me")
    with_status = await space.set_status(WEB, {"replicas": 2})
    assert first["metadata"]["generation"] == with_status["metadata"]["generation"] == 1
    changed = await space.apply(deployment(replicas=5), "me")
    assert changed["metadata"]["generation"] == 2
    assert changed["status"] == {"replicas": 2}


async def test_an_apply_never_touches_status(space):
    made = await space.apply({**deployment(), "status": {"replicas": 9}}, "me")
    assert "status" not in made


async def test_status_of_an_absent_object_is_refused(space):
    with pytest.raises(SpaceError) as refused:
        await space.set_status(WEB, {})
    assert refused.value.reason == "NotFound"


async def test_a_version_that_is_not_current_conflicts(space):
    old = await space.apply(config_map(a="1"), "me")
    new = await space.apply(config_map(a="2"), "me")
    with pytest.raises(Conflict):
        await space.apply({**old, "data": {"a": "3"}}, "me")
    assert (await space.apply({**new, "data": {"a": "3"}}, "me"))["data"] == {"a": "3"}


async def test_a_version_of_an_object_that_is_gone_conflicts(space):
    old = await space.apply(config_map(a="1"), "me")
    await space.delete(SETTINGS)
    with pytest.raises(Conflict):
        await space.apply(old, "me")


async def test_create_only_leaves_an_existing_object_alone(space):
    first = await space.apply(config_map(a="1"), "they")
    assert await space.apply(config_map(a="2"), "me", create_only=True) == first


async def test_a_preview_is_what_apply_would_make_and_writes_nothing(space):
    fresh = await space.preview(config_map(a="1"), "me")
    assert "resourceVersion" not in fresh["metadata"]
    assert await space.get(SETTINGS) is None
    held = await space.apply(config_map(a="1", b="2"), "me")
    assert await space.preview(config_map(a="1", b="2"), "me") == held
    changed = await space.preview(config_map(a="1"), "me")
    assert changed["data"] == {"a": "1"}
    assert await space.get(SETTINGS) == held
    with pytest.raises(Conflict):
        await space.preview(
            {**held, "metadata": {**held["metadata"], "resourceVersion": "9"}}, "me"
        )


async def test_delete_takes_only_the_object_that_was_meant(space):
    made = await space.apply(config_map(), "me")
    with pytest.raises(Conflict):
        await space.delete(SETTINGS, "another")
    assert await space.delete(SETTINGS, made["metadata"]["uid"])
    assert not await space.delete(SETTINGS)
    again = await space.apply(config_map(), "me")
    assert again["metadata"]["uid"] != made["metadata"]["uid"]


async def test_a_list_takes_resource_namespace_and_labels(space):
    await space.apply(config_map("a", labels={"tier": "web"}), "me")
    await space.apply(config_map("b", "other", labels={"tier": "db"}), "me")
    await space.apply(deployment("d"), "me")
    await space.apply(namespace(), "me")

    async def named(*args, **kwargs):
        listing = await space.list(*args, **kwargs)
        return [obj["metadata"]["name"] for obj in listing.objects]

    assert await named() == ["b", "a", "shop", "d"]
    assert await named("", "configmaps") == ["b", "a"]
    assert await named("", "configmaps", namespace="shop") == ["a"]
    assert await named(namespace="shop") == ["a", "d"]
    assert await named("apps", "deployments") == ["d"]
    selector = LabelSelector.from_kubernetes({"matchLabels": {"tier": "db"}})
    assert await named("", "configmaps", selector=selector) == ["b"]
    assert await named("apps", "statefulsets") == []


async def test_an_empty_space_lists_nothing(space):
    assert (await space.list()).objects == ()


async def test_a_watch_goes_on_without_a_gap_after_a_list(space):
    await space.apply(config_map("old"), "me")
    since = (await space.list()).revision
    await space.apply(config_map("new"), "me")
    await space.apply(config_map("old", a="1"), "me")
    await space.delete(ObjectKey("", "configmaps", "shop", "new"))
    seen = await changes(space, since, 2)
    assert [(change.kind, change.key.name) for change in seen] == [
        ("modified", "old"),
        ("deleted", "new"),
    ]
    [last] = await changes(space, seen[0].revision, 1)
    assert (last.kind, last.key) == (seen[1].kind, seen[1].key)


async def test_a_watch_tells_what_happens_while_it_runs(space):
    since = (await space.list()).revision
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        made = await space.apply(config_map(a="1"), "me")
        change = await anext(watched)
        assert (change.kind, change.key, change.object) == ("added", SETTINGS, made)
        await space.apply(config_map(a="2"), "me")
        assert (await anext(watched)).kind == "modified"
        await space.delete(SETTINGS)
        gone = await anext(watched)
        assert (gone.kind, gone.object["metadata"]["uid"]) == ("deleted", made["metadata"]["uid"])
        await space.apply(config_map(a="3"), "me")
        assert (await anext(watched)).kind == "added"


async def test_a_resume_older_than_what_is_surely_known_is_refused(space, clock):
    since = (await space.list()).revision
    await space.apply(config_map(), "me")
    await space.delete(SETTINGS)
    clock.ahead += 3 * 3600
    await space.apply(config_map("other"), "me")
    await space.delete(ObjectKey("", "configmaps", "shop", "other"))
    with pytest.raises(ResumeTooOld):
        await changes(space, since, 1)


@pytest.mark.parametrize("since", ["nonsense", "999999", ""])
async def test_a_resume_from_what_never_was_is_refused(space, since):
    with pytest.raises(ResumeTooOld):
        await changes(space, since, 1)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "x"}}, "apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "x"}}, "kind"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "metadata"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a/b"}}, "metadata.name"),
        (config_map(a=float("nan")), "data.a"),
    ],
)
async def test_what_is_no_object_is_refused_by_field(space, broken, named):
    with pytest.raises(SpaceError, match=named) as refused:
        await space.apply(broken, "me")
    assert refused.value.reason == "Invalid"


async def test_an_object_over_the_limit_is_refused_with_size_and_limit(space):
    with pytest.raises(SpaceError, match="at most 1572864") as refused:
        await space.apply(config_map(a="x" * 1_600_000), "me")
    assert refused.value.reason == "RequestEntityTooLarge"


async def test_a_large_object_fits(space):
    text = " ".join(map(str, range(200_000)))
    await space.apply(config_map(a=text), "me")
    assert (await space.get(SETTINGS))["data"]["a"] == text


def noise(seed, count=1_500_000):
    """Text that no compression makes small enough for one message."""
    return base64.b64encode(SeededDice(seed).entropy(count * 3 // 4)).decode()


async def test_an_object_of_noise_up_to_the_limit_is_written_read_and_listed(space):
    written = await space.apply(config_map(a=noise(1)), "me")
    assert await space.get(SETTINGS) == written
    assert (await space.list()).objects == (written,)
    assert await space.apply(config_map(a=noise(1)), "me") == written
    changed = await space.apply(config_map(a=noise(2)), "me")
    assert (await space.get(SETTINGS))["data"] == changed["data"] == {"a": noise(2)}
    with pytest.raises(Conflict):
        await space.apply({**written, "data": {}}, "me")


async def test_a_watch_tells_of_large_objects_what_it_tells_of_small_ones(space):
    since = (await space.list()).revision
    async with asyncio.timeout(60), aclosing(space.watch(since)) as watched:
        made = await space.apply(config_map(a=noise(1)), "me")
        change = await anext(watched)
        assert (change.kind, change.object) == ("added", made)
        small = await space.apply(config_map(a="small"), "me")
        assert (await anext(watched)).object == small
        await space.apply(config_map(a=noise(2)), "me")
        assert (await anext(watched)).object["data"] == {"a": noise(2)}
        await space.delete(SETTINGS)
        gone = await anext(watched)
        assert (gone.kind, gone.object["data"]) == ("deleted", {"a": noise(2)})
        await space.apply(config_map(a=noise(3)), "me")
        assert (await anext(watched)).kind == "added"
    [last] = await changes(space, since, 1)
    assert last.object["data"] == {"a": noise(3)}


async def test_two_writers_of_large_objects_at_once_lose_nothing(space):
    async with asyncio.TaskGroup() as group:
        for at in range(4):
            wish = config_map(**{f"k{at}": noise(at, 380_000)})
            group.create_task(space.apply(wish, f"manager{at}"))
    assert (await space.get(SETTINGS))["data"] == {f"k{at}": noise(at, 380_000) for at in range(4)}


@pytest.mark.parametrize("name", ["system:node.x", "a" * 253, "a.b-c.d", "=3a", "_", "ü:ü"])
async def test_names_of_all_kinds_keep_apart(space, name):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
    }
    await space.apply(role, "me")
    [found] = (await space.list("rbac.authorization.k8s.io", "clusterroles")).objects
    assert found["metadata"]["name"] == name
    key = ObjectKey("rbac.authorization.k8s.io", "clusterroles", "", name)
    assert (await space.get(key)) == found
    [change] = await changes(space, "0", 1)
    assert change.key == key


async def test_a_definition_teaches_its_kind(space):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "oxen.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Ox", "plural": "oxen"},
            "scope": "Cluster",
        },
    }
    await space.apply(definition, "me")
    ox = {"apiVersion": "example.com/v1", "kind": "Ox", "metadata": {"name": "x"}}
    await space.apply(ox, "me")
    assert await space.get(ObjectKey("example.com", "oxen", "", "x"))


async def test_a_space_keeps_its_identity(space):
    assert await space.identity() == await space.identity()


@pytest.mark.nats
async def test_a_bucket_is_the_same_space_after_a_restart(nats_url, clock):
    async with embedded(nats_url, clock, "kept") as space:
        who, since = await space.identity(), (await space.list()).revision
        await space.apply(config_map(a="1"), "me")
    async with embedded(nats_url, clock, "kept") as space:
        assert await space.identity() == who
        assert [change.key for change in await changes(space, since, 1)] == [SETTINGS]
        left = await space.apply(config_map(b="2"), "me")
        assert left["data"] == {"b": "2"}


@pytest.mark.nats
async def test_what_a_space_saw_last_never_outweighs_what_others_wrote_since(nats_url, clock):
    async with (
        embedded(nats_url, clock, "mine") as mine,
        embedded(nats_url, clock, "mine") as other,
    ):
        await mine.apply(config_map(a="1"), "me")
        await other.apply(config_map(b="2"), "they")
        both = await mine.apply(config_map(a="1", c="3"), "me")
        assert both["data"] == {"a": "1", "b": "2", "c": "3"}
        await other.apply(config_map(a="9"), "they")
        assert (await mine.apply(config_map(a="1", c="3"), "me"))["data"] == {"a": "1", "c": "3"}
        await other.delete(SETTINGS)
        made = await mine.apply(config_map(a="1", c="3"), "me")
        assert made["metadata"]["uid"] != both["metadata"]["uid"]
        await other.delete(SETTINGS)
        with pytest.raises(SpaceError, match="no such object"):
            await mine.set_status(SETTINGS, {"seen": True})


async def test_no_parts_of_a_large_object_stay_behind(nats_url, clock):
    async with embedded(nats_url, clock, "parted") as space:
        for seed in range(3):
            await space.apply(config_map(a=noise(seed)), "me")
        assert len(await parts_in(nats_url, "parted")) == 3
        await space.apply(config_map(a="small"), "me")
        assert not await parts_in(nats_url, "parted")


@pytest.mark.nats
async def test_parts_that_a_broken_off_write_left_are_swept_and_no_others(nats_url, clock):
    stray = "p.o._.configmaps.shop.settings.left.0"
    async with embedded(nats_url, clock, "strayed") as space:
        await space.apply(config_map(a=noise(1)), "me")
        kept = await parts_in(nats_url, "strayed")
        async with connected(nats_url) as connection:
            await connection.jetstream().publish(f"$KV.strayed.{stray}", b"part")
    async with embedded(nats_url, clock, "strayed"):
        assert len(await parts_in(nats_url, "strayed")) == len(kept) + 1
    clock.ahead += 2 * 3600
    async with embedded(nats_url, clock, "strayed") as space:
        assert await parts_in(nats_url, "strayed") == kept
        assert (await space.get(SETTINGS))["data"] == {"a": noise(1)}


@asynccontextmanager
async def connected(url):
    connection = await nats.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def parts_in(url, bucket):
    async with connected(url) as connection:
        info = await connection.jetstream().stream_info(f"KV_{bucket}", f"$KV.{bucket}.p.>")
        return set(info.state.subjects or ())


async def test_without_force_a_field_that_another_said_is_not_changed(space):
    await space.apply(config_map(a="1", b="1"), "they")
    with pytest.raises(FieldConflict, match="they") as refused:
        await space.apply(config_map(a="2"), "me", force=False)
    assert set(refused.value.managers.values()) == {"they"}
    held = await space.apply(config_map(b="1", c="3"), "me", force=False)
    assert held["data"] == {"a": "1", "b": "1", "c": "3"}
    taken = await space.apply(config_map(a="2"), "me", force=True)
    assert taken["data"]["a"] == "2"
