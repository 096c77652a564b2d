"""What every space promises: in memory, on a real bucket, and on a real API server."""

import asyncio

import pytest

from relay.space_errors import Conflict, FieldConflict, SpaceError
from relay.space_port import Interest
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from tests.contract.following import following
from tests.contract.spaces import (
    OX,
    config_map,
    definition,
    deployment,
    namespace,
    noise,
    ox,
    serve,
)

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.fixture
def space(any_space):
    """Each test runs on all of them."""
    return any_space


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
    assert not made.get("status")


async def test_labels_are_set_and_taken_off_whoever_said_them(space):
    said = config_map(a="1")
    said["metadata"]["labels"] = {"kept": "1", "changed": "1", "gone": "1"}
    await space.apply(said, "me")
    labels = {"changed": "2", "gone": None, "new": "3", "absent": None}
    made = await space.set_labels(SETTINGS, labels, "label")
    assert made["metadata"]["labels"] == {"kept": "1", "changed": "2", "new": "3"}
    assert made["data"] == {"a": "1"}
    again = await space.set_labels(SETTINGS, {"new": "3"}, "label")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    # They are no part any more of what was said first.
    del said["metadata"]["labels"]
    left = await space.apply(said, "me")
    assert left["metadata"]["labels"] == {"changed": "2", "new": "3"}


async def test_labels_that_cannot_be_are_refused_and_so_are_those_of_nothing(space):
    with pytest.raises(SpaceError) as refused:
        await space.set_labels(SETTINGS, {"a": "1"}, "label")
    assert refused.value.reason == "NotFound"
    await space.apply(config_map(a="1"), "me")
    with pytest.raises(SpaceError) as refused:
        await space.set_labels(SETTINGS, {"a": "not a value"}, "label")
    assert refused.value.reason == "Invalid"
    assert "labels" not in (await space.get(SETTINGS))["metadata"]


async def test_a_replaced_object_is_what_was_said_whoever_said_it_before(space):
    await space.apply(config_map(a="1", b="1"), "me")
    made = await space.apply(config_map(c="1"), "other")
    wish = {**made, "data": {"a": "2", "c": "1"}}
    seen = await space.replace(wish, "restore", dry_run=True)
    assert seen["data"] == {"a": "2", "c": "1"}
    assert (await space.get(SETTINGS))["data"] == made["data"]
    done = await space.replace(wish, "restore")
    assert done["data"] == {"a": "2", "c": "1"}
    assert done["metadata"]["uid"] == made["metadata"]["uid"]
    # What is left is still whose it was.
    assert (await space.apply({**config_map(), "data": {}}, "other"))["data"] == {"a": "2"}


async def test_an_object_that_changed_meanwhile_or_is_not_there_is_not_replaced(space):
    first = await space.apply(config_map(a="1"), "me")
    await space.apply(config_map(a="2"), "me")
    with pytest.raises(Conflict):
        await space.replace({**first, "data": {"a": "3"}}, "restore")
    assert (await space.get(SETTINGS))["data"] == {"a": "2"}
    await space.delete(SETTINGS)
    with pytest.raises(SpaceError):
        await space.replace(first, "restore")


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


async def test_a_wish_for_one_object_makes_and_changes_no_other(space):
    uid = (await space.apply(config_map(a="1"), "me"))["metadata"]["uid"]
    wish = config_map(a="2")
    wish["metadata"]["uid"] = uid
    assert (await space.apply(wish, "me"))["data"] == {"a": "2"}
    await space.delete(SETTINGS)
    with pytest.raises(Conflict):
        await space.apply(wish, "me")
    assert await space.get(SETTINGS) is None
    await space.apply(config_map(a="3"), "me")
    with pytest.raises(Conflict):
        await space.apply(wish, "me")
    assert (await space.get(SETTINGS))["data"] == {"a": "3"}


async def test_create_only_leaves_an_existing_object_alone(space):
    first = await space.apply(config_map(a="1"), "they")
    assert await space.apply(config_map(a="2"), "me", create_only=True) == first


async def test_a_dry_run_is_what_apply_would_make_and_writes_nothing(space):
    fresh = await space.apply(config_map(a="1"), "me", dry_run=True)
    assert "resourceVersion" not in fresh["metadata"]
    assert await space.get(SETTINGS) is None
    held = await space.apply(config_map(a="1", b="2"), "me")
    assert await space.apply(config_map(a="1", b="2"), "me", dry_run=True) == held
    changed = await space.apply(config_map(a="1"), "me", dry_run=True)
    assert changed["data"] == {"a": "1"}
    assert await space.get(SETTINGS) == held
    stale = {**held, "metadata": {**held["metadata"], "resourceVersion": "9"}}
    with pytest.raises(Conflict):
        await space.apply(stale, "me", dry_run=True)


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

    assert {"a", "b", "d", "shop"} <= set(await named())
    # A server of its own accord keeps some in kube-system.
    assert [name for name in await named("", "configmaps") if name in "ab"] == ["b", "a"]
    assert await named("", "configmaps", namespace="shop") == ["a"]
    assert sorted(await named(namespace="shop")) == ["a", "d"]
    assert await named("apps", "deployments") == ["d"]
    selector = LabelSelector.from_kubernetes({"matchLabels": {"tier": "db"}})
    assert await named("", "configmaps", selector=selector) == ["b"]
    assert await named("apps", "statefulsets") == []


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


async def test_an_object_over_the_limit_is_refused(space):
    await serve(space, definition("oxen", "Ox"))
    with pytest.raises(SpaceError) as refused:
        await space.apply(ox(a="x" * 1_600_000), "me")
    assert refused.value.reason == "RequestEntityTooLarge"


async def test_a_large_object_fits(space):
    await serve(space, definition("oxen", "Ox"))
    text = " ".join(map(str, range(200_000)))
    await space.apply(ox(a=text), "me")
    assert (await space.get(OX))["spec"]["a"] == text


async def test_an_object_of_noise_up_to_the_limit_is_written_read_and_listed(space):
    await serve(space, definition("oxen", "Ox"))
    written = await space.apply(ox(a=noise(1)), "me")
    assert await space.get(OX) == written
    assert (await space.list(OX.group, OX.resource)).objects == (written,)
    assert await space.apply(ox(a=noise(1)), "me") == written
    changed = await space.apply(ox(a=noise(2)), "me")
    assert (await space.get(OX))["spec"] == changed["spec"] == {"a": noise(2)}
    with pytest.raises(Conflict):
        await space.apply({**written, "spec": {}}, "me")


async def test_a_follower_is_told_of_large_objects_what_it_is_told_of_small_ones(space):
    await serve(space, definition("oxen", "Ox"))
    async with following(space, Interest(OX.group, OX.resource)) as (told, _):
        for value in (noise(1), "small", noise(2)):
            written = await space.apply(ox(a=value), "me")
            await told.until(lambda told, written=written: told.objects.get(OX) == written)
        await space.delete(OX)
        await told.until(lambda told: OX not in told.objects)
        assert told.changes[-1].object["spec"] == {"a": noise(2)}


async def test_two_writers_of_large_objects_at_once_lose_nothing(space):
    await serve(space, definition("oxen", "Ox"))
    async with asyncio.TaskGroup() as group:
        for at in range(4):
            wish = ox(**{f"k{at}": noise(at, 380_000)})
            group.create_task(space.apply(wish, f"manager{at}"))
    assert (await space.get(OX))["spec"] == {f"k{at}": noise(at, 380_000) for at in range(4)}


@pytest.mark.parametrize("name", ["system:node.x", "a" * 253, "a.b-c.d", "=3a", "_", "ü:ü"])
async def test_names_of_all_kinds_keep_apart(space, name):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
    }
    await space.apply(role, "me")
    listed = (await space.list("rbac.authorization.k8s.io", "clusterroles")).objects
    [found] = [obj for obj in listed if obj["metadata"]["name"] == name]
    key = ObjectKey("rbac.authorization.k8s.io", "clusterroles", "", name)
    assert (await space.get(key)) == found
    async with following(space, Interest(key.group, key.resource)) as (told, _):
        assert told.objects[key] == found


async def test_a_definition_teaches_its_kind(space):
    await serve(space, definition("oxen", "Ox", namespaced=False))
    ox = {"apiVersion": "example.com/v1", "kind": "Ox", "metadata": {"name": "x"}}
    await space.apply(ox, "me")
    assert await space.get(ObjectKey("example.com", "oxen", "", "x"))


async def test_a_space_keeps_its_identity(space):
    assert await space.identity() == await space.identity()


async def test_without_force_a_field_that_another_said_is_not_changed(space):
    await space.apply(config_map(a="1", b="1"), "they")
    with pytest.raises(FieldConflict, match="they") as refused:
        await space.apply(config_map(a="2"), "me", force=False)
    assert set(refused.value.managers.values()) == {"they"}
    held = await space.apply(config_map(b="1", c="3"), "me", force=False)
    assert held["data"] == {"a": "1", "b": "1", "c": "3"}
    taken = await space.apply(config_map(a="2"), "me", force=True)
    assert taken["data"]["a"] == "2"


async def test_an_object_needs_its_namespace(space):
    with pytest.raises(SpaceError, match='namespaces "nonesuch" not found') as refused:
        await space.apply(config_map(namespace="nonesuch"), "me")
    assert refused.value.reason == "NotFound"
    await space.apply(config_map(namespace="default"), "me")


async def test_a_kind_that_is_not_served_is_refused_by_name(space):
    for version, kind in (("apps/v1", "Deploymnet"), ("extensions/v1beta1", "Deployment")):
        wish = {**deployment(), "apiVersion": version, "kind": kind}
        told = f'no matches for kind "{kind}" in version "{version}"'
        with pytest.raises(SpaceError, match=told) as refused:
            await space.apply(wish, "me")
        assert refused.value.reason == "NotFound"


async def test_string_data_is_kept_as_data(space):
    metadata = {"name": "key", "namespace": "shop"}
    wish = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "x"}}
    made = await space.apply(wish, "me", dry_run=True)
    assert made["data"] == {"a": "eA=="}
    assert "stringData" not in made


async def test_a_field_that_was_taken_by_force_is_its_former_managers_no_more(space):
    await space.apply(config_map(a="1", b="1"), "they")
    await space.apply(config_map(a="2"), "me", force=True)
    await space.apply(config_map(a="3"), "me", force=False)
    left = await space.apply(config_map(b="1"), "they", force=False)
    assert left["data"] == {"a": "3", "b": "1"}


async def test_what_is_disowned_stays_as_it_is_without_its_marks_and_is_nobodys(space):
    marks = {"labels": {"x": "1", "mark": "m"}, "annotations": {"mark": "m"}}
    made = await space.apply(with_metadata(config_map(a="1"), **marks), "me")
    await space.apply(config_map(b="1"), "they")
    uid = made["metadata"]["uid"]
    await space.disown(SETTINGS, uid, ["me"], ["mark"])
    left = await space.get(SETTINGS)
    assert left["data"] == {"a": "1", "b": "1"}
    assert left["metadata"]["uid"] == uid
    assert left["metadata"]["labels"] == {"x": "1"}
    assert "mark" not in left["metadata"].get("annotations", {})
    owners = [entry["manager"] for entry in left["metadata"].get("managedFields", ())]
    assert "me" not in owners
    # What it said before is not taken off when it says less now, and what they said is theirs.
    after = await space.apply(config_map(c="1"), "me", force=False)
    assert after["data"] == {"a": "1", "b": "1", "c": "1"}
    with pytest.raises(FieldConflict, match="they"):
        await space.apply(config_map(b="2"), "me", force=False)
    await space.apply(config_map(a="2"), "me", force=False)


async def test_an_object_that_only_one_ever_wrote_can_be_disowned(space):
    made = await space.apply(config_map(a="1", labels={"mark": "m"}), "me")
    await space.disown(SETTINGS, made["metadata"]["uid"], ["me"], ["mark"])
    left = await space.get(SETTINGS)
    assert left["data"] == {"a": "1"}
    assert "labels" not in left["metadata"]
    assert not left["metadata"].get("managedFields")
    await space.apply(config_map(a="1", b="1"), "they", force=False)


async def test_no_other_object_than_the_one_that_is_meant_is_disowned(space):
    with pytest.raises(SpaceError) as absent:
        await space.disown(SETTINGS, "a-uid", ["me"], [])
    assert absent.value.reason == "NotFound"
    await space.apply(config_map(a="1"), "me")
    with pytest.raises(Conflict):
        await space.disown(SETTINGS, "a-uid", ["me"], [])


def with_metadata(obj, **metadata):
    return {**obj, "metadata": {**obj["metadata"], **metadata}}
