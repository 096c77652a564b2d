"""What was written just now counts as known by its version, whatever time it is."""

from controllers.core.workloads.space import Workloads
from schemas.objects.objects import ObjectKey
from schemas.values.groups import CONTROL_GROUP, GROUP

CONFIG = ObjectKey("", "configmaps", "shop", "a")
SHOP = ObjectKey(GROUP, "edgeplacements", "", "shop")
TRANSFORM = ObjectKey(CONTROL_GROUP, "customtransforms", "", "t")
FOLLOWED = {key.group_resource for key in (CONFIG, SHOP, TRANSFORM)}


def held(key, version):
    kind = "EdgePlacement" if key == SHOP else "ConfigMap"
    metadata = {"name": key.name, "namespace": key.namespace, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {}}


def test_an_object_is_known_at_its_version_and_at_later_ones():
    for key in (CONFIG, SHOP):
        workloads = Workloads()
        assert not workloads.knows(FOLLOWED, {key: "7"})
        for version, known in (("6", False), ("7", True), ("12", True)):
            workloads.put(key, held(key, version))
            assert workloads.knows(FOLLOWED, {key: "7"}) is known


def test_what_nobody_selects_by_need_not_be_known():
    assert Workloads().knows(FOLLOWED, {TRANSFORM: "7"})
    assert Workloads().knows({SHOP.group_resource}, {CONFIG: "7"})
