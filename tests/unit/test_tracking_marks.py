"""What tells a tool what is its own stays at home: marks on objects, and Helm's releases."""

import pytest

from controllers.core.translation.clean_objects import CleanObjects
from controllers.core.workloads.space import Workloads
from controllers.core.workloads.space_settings import SpaceSettings
from schemas.objects.annotations import annotation_faults
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.values.codec import unpack
from tests.unit.test_selection import obj, resolve, rules

KEY = ObjectKey("", "configmaps", "shop", "a")
MARKS = {
    "meta.helm.sh/release-name": "shop",
    "meta.helm.sh/release-namespace": "shop",
    "argocd.argoproj.io/tracking-id": "shop:/ConfigMap:shop/a",
    "argocd.argoproj.io/installation-id": "one",
}
KEPT = {"argocd.argoproj.io/sync-wave": "1", "example.com/owner": "us"}
FLUX = {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "f"}
LABELS = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "shop"}


def marked(annotations, labels):
    made = obj("ConfigMap", "a", "shop", labels=labels, data={"a": "1"})
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def system(said):
    metadata = {"name": "leafcast-system", "annotations": {"leafcast.io/tracking-marks": said}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def sent(workloads, form):
    cleaned = CleanObjects(settings=workloads.settings)
    return unpack(cleaned.plain(KEY, form))["metadata"]


def hub(*objects):
    workloads = Workloads()
    workloads.settings.by_tools = True
    for item in objects:
        workloads.put(BUILT_IN_KINDS.key_of(item), item)
    return workloads


def test_marks_of_helm_argo_cd_and_flux_stay_at_a_hub_and_all_else_goes():
    form = marked(MARKS | KEPT, FLUX | LABELS)
    metadata = sent(hub(), form)
    assert (metadata["annotations"], metadata["labels"]) == (KEPT, LABELS)
    bare = sent(hub(), marked(MARKS, FLUX))
    assert not {"annotations", "labels"} & bare.keys()
    assert form["metadata"]["annotations"] == MARKS | KEPT


def test_what_a_person_wrote_into_an_embedded_space_goes_out_as_it_is():
    assert sent(Workloads(), marked(MARKS, FLUX))["annotations"] == MARKS


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("", MARKS | KEPT),
        ("example.com/*", MARKS | {"argocd.argoproj.io/sync-wave": "1"}),
        ("standard, example.com/owner", {"argocd.argoproj.io/sync-wave": "1"}),
        ("argocd.argoproj.io/*,meta.helm.sh/*", {"example.com/owner": "us"}),
    ],
)
def test_who_runs_a_space_says_which_marks_are_meant(said, left):
    assert sent(hub(system(said)), marked(MARKS | KEPT, LABELS))["annotations"] == left


def test_another_list_of_marks_is_news_to_each_placement_and_to_what_was_cleaned_before():
    workloads = hub(obj("Namespace", "leafcast-system"))
    workloads.put(
        ObjectKey("edge.kubestellar.io", "edgeplacements", "", "p"),
        {
            "apiVersion": "edge.kubestellar.io/v2alpha1",
            "kind": "EdgePlacement",
            "metadata": {"name": "p"},
            "spec": {"locationSelectors": [{}], "downsync": [{"namespaces": ["shop"]}]},
        },
    )
    cleaned, form = CleanObjects(settings=workloads.settings), marked(MARKS, LABELS)
    before = cleaned.reference(KEY, form)
    namespace = ObjectKey("", "namespaces", "", "leafcast-system")
    assert workloads.put(namespace, system("")) == {"p"}
    assert cleaned.reference(KEY, form) != before
    assert workloads.put(namespace, system("")) == frozenset()
    assert workloads.deleted(namespace) == {"p"}
    assert cleaned.reference(KEY, form) == before


def test_the_list_of_marks_is_a_fault_where_nobody_reads_it():
    assert not list(annotation_faults(system("example.com/*")))
    wrong = marked({"leafcast.io/tracking-marks": "a"}, {})
    [fault] = annotation_faults(wrong)
    assert "leafcast-system" in fault.remedy
    assert not SpaceSettings().put(KEY, wrong)


RELEASE = "sh.helm.release.v1.shop.v1"


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_what_helm_notes_of_a_release_goes_out_only_by_its_name(kind):
    resource = f"{kind.lower()}s"
    release = obj(kind, RELEASE, "shop", labels={"owner": "helm"}, type="helm.sh/release.v1")
    objects = [
        obj("Namespace", "shop"),
        release,
        obj(kind, "own", "shop", labels={"owner": "helm"}),
    ]
    own = f"{resource}/shop/own"
    for clause in (
        {"namespaces": ["shop"]},
        {"resources": [resource]},
        {"labelSelectors": [{"matchLabels": {"owner": "helm"}}]},
        {"resources": [resource], "objectNames": ["*"]},
    ):
        found = resolve(objects, clause)
        assert (own in found, any(RELEASE in key for key in found)) == (True, False)
    named = {"namespaces": ["shop"], "resources": [resource], "objectNames": [RELEASE]}
    assert resolve(objects, named) == [f"{resource}/shop/{RELEASE}"]
    other = obj("Service", RELEASE, "shop")
    assert any(RELEASE in key for key in resolve([other], {"namespaces": ["shop"]}))
    assert rules(named).clauses[0].names == {RELEASE}
