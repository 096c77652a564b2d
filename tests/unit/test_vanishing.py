"""What goes with the definition of its kind goes from no edge: nobody said that it is to go."""

from controllers.core.workloads.space import Workloads
from schemas.objects.objects import ObjectKey
from tests.unit.centre_world import placement

DEFINITION = ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "widgets.x.org")
OTHER = ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "others.x.org")
ONE = ObjectKey("x.org", "widgets", "shop", "one")
SPACE = ObjectKey("", "namespaces", "", "shop")
TWO = ObjectKey("x.org", "others", "shop", "two")
SHOP = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
ISSUED = {"shop": frozenset({DEFINITION, OTHER, ONE, TWO})}


def shown(key, *, goes=False):
    metadata = {"name": key.name, "namespace": key.namespace}
    if goes:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    plural, _, group = key.name.partition(".")
    names = {"plural": plural, "kind": plural.title()}
    return {"metadata": metadata, "spec": {"group": group, "names": names} if group else {}}


def listed(workloads, *, going=()):
    there = {key: shown(key, goes=key in going) for key in (SPACE, ONE, TWO, DEFINITION, OTHER)}
    workloads.listed({**there, SHOP: placement()}, ISSUED)


def test_a_definition_that_goes_stays_needed_by_what_is_held():
    workloads = Workloads()
    listed(workloads)
    workloads.put(DEFINITION, shown(DEFINITION, goes=True))
    assert workloads.inferred("shop", ISSUED["shop"]) == {DEFINITION}
    assert workloads.needed_by({ONE}) == {DEFINITION}
    workloads.put(ONE, shown(ONE, goes=True))
    workloads.put(TWO, shown(TWO, goes=True))
    assert workloads.inferred("shop", ISSUED["shop"]) == {DEFINITION, ONE}
    workloads.put(DEFINITION, shown(DEFINITION))
    assert workloads.inferred("shop", ISSUED["shop"]) == {ONE}


def test_a_list_of_what_goes_with_its_definition_says_no_deletion():
    workloads = Workloads()
    listed(workloads, going={ONE, TWO, DEFINITION})
    assert workloads.inferred("shop", ISSUED["shop"]) == {DEFINITION, ONE}
    assert not workloads.inferred("shop", {TWO})
