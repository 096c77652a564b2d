"""Why a plan says what it says: each reason names what causes it, and each row its fields."""

import pytest

from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.property.planned_fleet import Fleet

EDGE, CONTROL = "edge.kubestellar.io", "control.kubestellar.io"
A, B = "/r/a", "/r/b"
EXPANDED = {"control.kubestellar.io/expand-templates": "true"}


def made(group, kind, name, namespace="", labels=None, annotations=None, **more):
    version = {"": "v1", EDGE: f"{EDGE}/v2alpha1", CONTROL: f"{CONTROL}/v1alpha1"}[group]
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if namespace:
        metadata["namespace"] = namespace
    key = ObjectKey(group, RESOURCES[kind], namespace, name)
    return {key: {"apiVersion": version, "kind": kind, "metadata": metadata, **more}}


RESOURCES = {
    "ConfigMap": "configmaps",
    "EdgePlacement": "edgeplacements",
    "BindingPolicy": "bindingpolicies",
    "SyncTarget": "synctargets",
    "Location": "locations",
    "Customizer": "customizers",
    "CustomTransform": "customtransforms",
}


def config(name, text="1", **annotations):
    return made("", "ConfigMap", name, "shop", annotations=annotations, data={"text": text})


def key(name):
    return ObjectKey("", "configmaps", "shop", name)


def placement(selector=None, **clause):
    spec = {
        "locationSelectors": [{"matchLabels": selector or {}}],
        "downsync": [{"apiGroup": "", "namespaces": ["shop"], **clause}],
    }
    return made(EDGE, "EdgePlacement", "shop", spec=spec)


def policy(**labels):
    spec = {
        "clusterSelectors": [{"matchLabels": labels}],
        "downsync": [{"apiGroup": "", "namespaces": ["shop"]}],
    }
    return made(CONTROL, "BindingPolicy", "shop", spec=spec)


def target(name, path, **labels):
    said = {"leafcast.io/path": path}
    return made(EDGE, "SyncTarget", name, labels=labels, annotations=said, spec={})


def location(name, instances=None, **labels):
    resource = {"group": EDGE, "version": "v2alpha1", "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": {"matchLabels": instances or {}}}
    return made(EDGE, "Location", name, labels=labels, spec=spec)


def gone(*objects):
    return {key: None for one in objects for key in one}


@pytest.fixture
def fleet():
    """Two destinations at one Location, and a placement of two ConfigMaps for both."""
    fleet = Fleet((A, B))
    fleet.apply(
        target("a", A, zone="n")
        | target("b", B, zone="s")
        | location("all", region="n")
        | placement({"region": "n"})
        | config("one")
        | config("two")
    )
    assert {path: key("one") in held for path, held in fleet.copies().items()} == dict.fromkeys(
        (A, B), True
    )
    return fleet


def told(fleet, changes, named=frozenset()):
    """By path and name of a ConfigMap: what is to become of it, why, and of which fields."""
    _, plan = fleet.plan(changes, named)
    return {
        (str(row.path), row.key.name): (row.action, row.why, row.fields)
        for row in plan.rows()
        if row.key.resource == "configmaps"
    }


def everywhere(*said, name="one"):
    return {(A, name): said, (B, name): said}


def test_an_update_names_the_fields_that_differ(fleet):
    assert told(fleet, config("one", "2")) == everywhere("update", "", ("data.text",))


def test_an_object_that_is_new_and_selected_is_created(fleet):
    why = "it is new, and edgeplacement/shop selects it"
    assert told(fleet, config("three")) == everywhere("create", why, (), name="three")


def test_a_deleted_object_goes(fleet):
    deleted = told(fleet, gone(config("one")))
    assert deleted == everywhere("delete", "it is deleted at the centre", ())


def test_what_a_placement_selects_no_more_goes(fleet):
    narrowed = told(fleet, placement({"region": "n"}, objectNames=["two"]))
    assert narrowed == everywhere("delete", "no longer selected by edgeplacement/shop", ())


def test_a_deleted_placement_takes_all_its_objects_and_their_namespace(fleet):
    _, plan = fleet.plan(gone(placement()))
    assert (plan.placements, plan.destinations, plan.counts["delete"]) == (1, 2, 6)
    assert {row.why for row in plan.rows()} == {
        "edgeplacement/shop is deleted",
        "nothing that lies in it is wanted any more; it stays if others' things are in it",
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (location("all", region="s"), "label region=s of Location all no longer matches"),
        (location("all"), "Location all has no label region any more"),
        (gone(location("all")), "Location all is deleted"),
        (
            placement({"region": "x"}),
            "locationSelectors of edgeplacement/shop do not match it any more",
        ),
    ],
)
def test_who_loses_all_is_told_by_what(fleet, changes, why):
    assert told(fleet, changes)[A, "one"] == ("delete", why, ())


def test_a_relabelled_target_is_told_of_with_its_label(fleet):
    fleet.apply(gone(placement()) | policy(zone="n"))
    assert fleet.copies()[B] == {}
    lost = "label zone=s of SyncTarget a no longer matches"
    assert told(fleet, target("a", A, zone="s"))[A, "one"] == ("delete", lost, ())
    came = "the labels of its SyncTarget match bindingpolicy/shop now"
    assert told(fleet, target("b", B, zone="n"))[B, "one"] == ("create", came, ())
    both = "clusterSelectors of bindingpolicy/shop match it now"
    assert told(fleet, policy())[B, "one"] == ("create", both, ())


def test_a_target_that_comes_goes_or_moves_takes_all_along(fleet):
    assert told(fleet, gone(target("b", B))) == {
        (B, name): ("delete", "SyncTarget b is deleted, or loses its place", ())
        for name in ("one", "two")
    }
    moved = told(fleet, target("b", "/r/c", zone="s"))
    assert moved[B, "one"] == ("delete", "SyncTarget b hangs at /r/c then", ())
    assert moved["/r/c", "one"] == ("create", "SyncTarget b is new at /r/c", ())


def test_a_missing_property_freezes_one_destination_and_says_which_field(fleet):
    fleet.apply(target("a", A, zone="n", till="7"))
    text = config("one", "{{ .till }}", **EXPANDED)
    assert told(fleet, text | config("two", "2")) == {
        (A, "one"): ("update", "", ("data.text", f"metadata.annotations[{next(iter(EXPANDED))}]")),
        (A, "two"): ("update", "", ("data.text",)),
        (B, "one"): ("frozen", 'no property "till"', ("data.text",)),
        (B, "two"): ("frozen", "frozen with shop/configmaps/one", ()),
    }
    fleet.apply(text)
    thawed = told(fleet, target("b", B, zone="s", till="8"))
    assert thawed[B, "one"] == ("update", "it was frozen here, and goes on", ())


def test_what_comes_out_wrong_at_one_destination_is_told_by_its_field(fleet):
    said = {"labels": {"zone": "{{ .zone }}"}, "annotations": EXPANDED}
    fleet.apply(made("", "ConfigMap", "one", "shop", data={"text": "1"}, **said))
    properties = made("", "ConfigMap", "b", "customization-properties", data={"zone": "a b"})
    action, why, fields = told(fleet, properties)[B, "one"]
    assert (action, fields) == ("frozen", ())
    assert why.startswith('metadata.labels[zone]: "a b" is not a label value; use')


def test_what_could_be_customized_nowhere_freezes_all(fleet):
    (action, why, _), *_ = told(fleet, config("one", "{{ wrong }}", **EXPANDED)).values()
    assert action == "frozen"
    assert why.startswith("edgeplacement/shop stays as it is everywhere: configmaps/shop/one: data")


def test_of_two_placements_the_newer_content_counts_where_one_is_frozen(fleet):
    fleet.apply(policy() | placement({"region": "n"}, objectNames=["one"]))
    fleet.apply(config("two", "{{ wrong }}", **EXPANDED))
    assert told(fleet, config("one", "2"))[A, "one"] == ("update", "", ("data.text",))


def test_a_changed_property_touches_exactly_who_uses_it(fleet):
    fleet.apply(config("one", "{{ .zone }}", **EXPANDED))
    found = told(fleet, target("a", A, zone="w"))
    assert found == {(A, "one"): ("update", "", ("data.text",))}
    assert told(fleet, target("a", A, zone="n", other="1")) == {}


def test_an_object_left_to_its_cluster_is_told_as_such(fleet):
    fleet.apply(placement({"region": "n"}, createOnly=True))
    named = frozenset([key("one")])
    why = "createOnly: the copy that is there stays as it is"
    assert told(fleet, config("one", "2"), named) == everywhere("none", why, ())
    again = told(fleet, placement({"region": "n"}))[A, "one"]
    assert again == ("update", "it was left to its cluster, and is kept in step from now on", ())


def test_what_is_left_to_its_cluster_from_now_on_is_told_once(fleet):
    alone = {"edge.kubestellar.io/downsync-overwrite": "false"}
    named = frozenset([key("one")])
    why = "downsync-overwrite is false: it is left to its cluster from now on"
    assert told(fleet, config("one", "2", **alone), named) == everywhere("update", why, ())
    fleet.apply(config("one", "2", **alone))
    why = "downsync-overwrite is false: the copy is left to its cluster"
    assert told(fleet, config("one", "3", **alone), named) == everywhere("none", why, ())


def test_what_stays_frozen_is_told_as_such(fleet):
    fleet.apply(config("one", "{{ .till }}", **EXPANDED))
    named = frozenset([key("one"), key("two")])
    why = 'it stays frozen: no property "till" for shop/configmaps/one'
    assert told(fleet, {}, named) == everywhere("none", why, ()) | everywhere(
        "none", why, (), name="two"
    )


def test_named_objects_are_told_of_if_nothing_changes(fleet):
    named = frozenset([key("one")])
    assert told(fleet, {}, named) == everywhere("none", "it is as it should be", ())


def test_nothing_of_the_centre_is_touched_by_a_plan(fleet):
    standing, ledger = fleet.placements.standing(), dict(fleet.ledger)
    objects = dict(fleet.placements.workloads.resolver.objects)
    fleet.plan(gone(placement(), location("all"), config("one")) | config("three"))
    assert fleet.placements.standing() == standing
    assert fleet.ledger == ledger
    assert fleet.placements.workloads.resolver.objects == objects


def test_what_is_wrong_with_a_placement_or_a_target_is_noted(fleet):
    trial, _ = fleet.plan(placement({"region": "n"}, objectNames=["typo"]))
    assert any("no object is selected" in note for note in trial.notes)
    trial, _ = fleet.plan(made(EDGE, "SyncTarget", "lost", spec={}))
    assert any("has no annotation leafcast.io/path" in note for note in trial.notes)


def test_of_very_many_rows_the_first_by_path_are_at_hand():
    paths = tuple(f"/r/s{at:03}" for at in range(60))
    fleet = Fleet(())
    changes = location("all", region="n") | placement({"region": "n"}) | config("one")
    for at, path in enumerate(reversed(paths)):
        changes |= target(f"t{at}", path)
    fleet.apply(changes)
    _, plan = fleet.plan(config("one", "2"))
    assert plan.counts["update"] == 60
    assert [str(row.path) for row in plan.sample] == list(paths[:10])
    assert [str(row.path) for row in plan.rows()] == list(paths)


def test_of_one_destination_its_objects_are_told_as_they_are_and_would_be(fleet):
    _, plan = fleet.plan(config("one", "2") | gone(config("two")))
    (one, two) = plan.objects(next(plan.rows()).path)
    assert (one.before["data"], one.after["data"]) == ({"text": "1"}, {"text": "2"})
    assert (two.before["data"], two.after, two.kept) == ({"text": "1"}, None, True)
    assert list(plan.objects(NodePath.parse("/r/z"))) == []
