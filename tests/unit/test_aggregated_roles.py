"""Rules that a cluster gathers are the cluster's, and only those."""

import pytest

from relay.syncer.aggregated_roles import is_aggregated, is_gathering, without_rules
from schemas.objects.objects import RBAC_GROUP, ObjectKey

KEY = ObjectKey(RBAC_GROUP, "clusterroles", "", "admin")
AGGREGATOR = "clusterrole-aggregation-controller"
RULE = {"clusterRoleSelectors": [{"matchLabels": {"to": "admin"}}]}


def role(manager, fields, **more):
    entry = {"manager": manager, "operation": "Apply", "fieldsV1": fields}
    return {"metadata": {"name": "admin", "managedFields": [entry]}, "rules": [], **more}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (role(AGGREGATOR, {"f:rules": {}}, aggregationRule=RULE), True),
        (role(AGGREGATOR, {"f:rules": {}}), False),
        (role(AGGREGATOR, {"f:metadata": {}}, aggregationRule=RULE), False),
        (role("kubectl", {"f:rules": {}}, aggregationRule=RULE), False),
        ({"metadata": {"name": "admin"}, "aggregationRule": RULE}, False),
    ],
)
def test_rules_are_the_clusters_once_its_controller_has_gathered_them(live, expected):
    assert is_aggregated(KEY, live) == expected
    assert not is_aggregated(ObjectKey(RBAC_GROUP, "roles", "shop", "admin"), live)


def test_what_the_cluster_gathers_is_left_out_of_a_wish_and_is_no_drift():
    wish = {"kind": "ClusterRole", "rules": [], "aggregationRule": RULE}
    assert without_rules(wish) == {"kind": "ClusterRole", "aggregationRule": RULE}
    assert is_gathering("rules", AGGREGATOR)
    assert not is_gathering("rules", "kubectl")
    assert not is_gathering("aggregationRule", AGGREGATOR)
