"""What Denatureds hold is selected, kept and lost as plain objects are, in any order of lists."""

import itertools

import pytest

from controllers.core.translation.placements import Placements
from controllers.core.workloads.space import Workloads
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey

RBAC = "rbac.authorization.k8s.io"
READER = ObjectKey(RBAC, "clusterroles", "", "reader")
KIND, OUTER = (RBAC, "clusterroles"), ("leafcast.io", "denatureds")
PLACEMENTS = ("edge.kubestellar.io", "edgeplacements")


def role(*verbs):
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader", "labels": {"app": "shop"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}],
    }


def denatured(name="d", template=None):
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Denatured",
        "metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": "7"},
        "spec": {"template": template or role("get")},
    }


PLACEMENT = {
    "apiVersion": "edge.kubestellar.io/v2alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "shop"},
    "spec": {
        "downsync": [
            {"resources": ["clusterroles"], "labelSelectors": [{"matchLabels": {"app": "shop"}}]}
        ]
    },
}


def keyed(*objects):
    return {BUILT_IN_KINDS.key_of(obj): obj for obj in objects}


def verbs(workloads):
    key = next(iter(workloads.resolver.selection("shop")), None)
    return workloads.resolver.objects[key]["rules"][0]["verbs"] if key else None


LISTS = {
    PLACEMENTS: keyed(PLACEMENT),
    KIND: keyed(role("watch")),
    OUTER: keyed(denatured()),
}


@pytest.mark.parametrize("order", [*itertools.permutations(LISTS)])
def test_the_denatured_counts_whichever_kind_is_listed_first(order):
    workloads = Workloads()
    for kind in (*order, *order):
        workloads.listed(LISTS[kind], {"shop": [READER]}, kind)
    assert verbs(workloads) == ["get"]
    assert not workloads.unseen
    workloads.listed(keyed(), {"shop": [READER]}, OUTER)
    assert verbs(workloads) == ["watch"]


def test_all_of_a_space_in_one_list_is_the_same():
    workloads = Workloads()
    everything = {key: obj for listed in LISTS.values() for key, obj in listed.items()}
    workloads.listed(everything, {"shop": [READER]})
    assert verbs(workloads) == ["get"]
    assert not workloads.unseen
    (fault,) = workloads.renatured.faults([READER])
    assert "the plain object" in str(fault)


def test_a_deletion_that_is_said_is_taken_at_its_word_and_one_that_is_inferred_is_not():
    said, inferred = Workloads(), Workloads()
    for workloads in (said, inferred):
        for kind in (PLACEMENTS, OUTER):
            workloads.listed(LISTS[kind], {"shop": [READER]}, kind)
    assert said.deleted(ObjectKey(*OUTER, "", "d")) == {"shop"}
    inferred.listed(keyed(), {"shop": [READER]}, OUTER)
    assert said.inferred("shop", [READER]) == frozenset()
    assert inferred.inferred("shop", [READER]) == {READER}
    assert verbs(said) is verbs(inferred) is None


def test_a_kind_that_nobody_selects_any_more_is_forgotten_but_for_what_denatureds_hold():
    workloads = Workloads()
    for kind, listed in LISTS.items():
        workloads.listed(listed, {}, kind)
    workloads.deleted(ObjectKey(*PLACEMENTS, "", "shop"))
    workloads.thin([READER])
    workloads.keep_kinds({PLACEMENTS, OUTER})
    workloads.put(*next(iter(LISTS[PLACEMENTS].items())))
    assert verbs(workloads) == ["get"]
    assert not workloads.renatured.faults([READER])


def test_of_two_denatureds_the_placement_says_which_counts():
    placements = Placements("space", {})
    objects = keyed(PLACEMENT, denatured("b"), denatured("a", role("list")))
    placements.listed(objects)
    (work,) = placements.next(["shop"])
    assert set(work.translation.entries) == {READER}
    assert "denatured/a counts, and not denatured/b" in str(placements.faults["shop"])
