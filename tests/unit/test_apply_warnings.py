"""What `apply` warns of by the objects alone, each by its field, with what to do."""

import pytest

from leafcast.ask.resource_names import ResourceKinds
from leafcast.changes.wishes import PlannedWrite, Wish
from leafcast.cli.apply.warnings import warnings

TARGET = "edge.kubestellar.io/v2alpha1", "SyncTarget"


async def said_of(version, kind, session=None, *, dry=True, **fields):
    """The warnings of one object."""
    obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **fields}
    known = ResourceKinds([obj]).of(obj)
    wish = Wish(obj, known.key("", "a"), known, "a.yaml:1")
    return await warnings(session, [PlannedWrite(wish, None, obj)], dry=dry)


@pytest.mark.parametrize("field", ["unschedulable", "evictAfter"])
async def test_what_is_not_honoured_of_a_sync_target_is_said(field):
    value = {"unschedulable": True, "evictAfter": "2026-01-02T15:04:05Z"}[field]
    [said] = await said_of(*TARGET, spec={field: value})
    assert f"synctarget.edge.kubestellar.io/a: spec.{field} is not honoured" in said
    assert "labels" in said


async def test_a_sync_target_that_asks_for_nothing_more_is_not_warned_of():
    assert await said_of(*TARGET, spec={"unschedulable": False}) == []
    assert await said_of(*TARGET) == []


async def test_an_expression_that_no_destination_could_follow_is_said_by_its_field():
    metadata = {"annotations": {"control.kubestellar.io/expand-templates": "true"}, "name": "a"}
    [said] = await said_of("v1", "ConfigMap", metadata=metadata, data={"x": "{{ if .a }}"})
    assert "configmap/a: data.x: " in said


async def test_an_annotation_that_lacks_our_prefix_is_asked_about():
    metadata = {"annotations": {"on-remove": "keep", "path": "/x"}, "name": "a"}
    [said] = await said_of("v1", "ConfigMap", metadata=metadata)
    assert '"on-remove" has no effect here; did you mean leafcast.io/on-removal?' in said


async def test_owners_that_do_not_go_out_are_said():
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "u"}
    [said] = await said_of("v1", "ConfigMap", metadata={"name": "a", "ownerReferences": [owner]})
    assert "configmap/a: metadata.ownerReferences does not go out" in said
    assert await said_of("v1", "ConfigMap", metadata={"name": "a", "ownerReferences": []}) == []


async def test_a_rollout_alone_is_not_said_to_go_nowhere():
    rollout = "leafcast.io/v1alpha1", "Rollout", Centre(nowhere=True)
    assert await said_of(*rollout, dry=False, spec={}) == []


@pytest.mark.parametrize("kind", ["HealthRule", "LeafcastRelease"])
async def test_what_says_how_others_are_run_alone_is_not_said_to_stay_at_the_centre(kind):
    of_ours = "leafcast.io/v1alpha1", kind, Centre(nowhere=False)
    assert await said_of(*of_ours, dry=False, spec={}) == []


class Tree:
    """Answers whether content is sealed, and nothing else."""

    def __init__(self, *, seals):
        self.seals = seals

    async def call(self, verb):
        assert verb == "keys"
        return {"seals": self.seals}


async def test_who_can_read_a_secret_is_said_of_a_tree_that_is_not_sealed_alone():
    [said] = await said_of("v1", "Secret", Tree(seals=False))
    assert said.startswith("Warning: secret/a: ")
    assert said.endswith("leafcast keys seal")
    assert await said_of("v1", "Secret", Tree(seals=True)) == []


class Rejecting:
    """Answers that what is applied is selected, and that a Rollout rejects it."""

    async def call(self, verb, *, objects, written):
        assert (verb, len(written)) == ("selection", len(objects))
        return {"carried": [["shop"]] * len(objects), "rejected": ["shop"] * len(objects)}


@pytest.mark.parametrize("after", ["1", "2"])
async def test_what_was_aborted_and_is_applied_as_it_was_is_said_to_stay_back(after):
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    known = ResourceKinds([obj]).of(obj)
    wish = Wish(obj, known.key("", "a"), known, "a.yaml:1")
    versions = [{**obj, "metadata": {"name": "a", "resourceVersion": it}} for it in ("1", after)]
    found = await warnings(Rejecting(), [PlannedWrite(wish, *versions)], dry=False)
    said = "to let it out again: leafcast rollout retry shop"
    assert [line.endswith(said) for line in found] == ([True] if after == "1" else [])


async def test_what_is_applied_to_an_object_that_is_being_deleted_goes_with_it():
    metadata = {"name": "a", "deletionTimestamp": "2026-01-02T15:04:05Z"}
    [said] = await said_of("v1", "ConfigMap", metadata=metadata)
    assert said.startswith("Warning: configmap/a is being deleted")


class Centre:
    """Answers that a placement selects no destination."""

    def __init__(self, *, nowhere):
        self.nowhere = nowhere

    async def call(self, verb, **asked):
        assert verb == "selection"
        form = {"lack": "", "nowhere": self.nowhere, "empty": []}
        listed = [{"name": name, **form} for name in asked["placements"]]
        return {"placements": listed, "waves": {}}


@pytest.mark.parametrize("nowhere", [True, False])
async def test_a_placement_that_selects_no_destination_is_warned_of(nowhere):
    version, kind = "edge.kubestellar.io/v2alpha1", "EdgePlacement"
    said = await said_of(version, kind, Centre(nowhere=nowhere), dry=False, spec={})
    assert len(said) == nowhere
    assert all("/a: its locationSelectors match no Location" in line for line in said)
