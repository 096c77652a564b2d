"""ClusterRoles whose rules a cluster gathers from others: these rules are the cluster's.

Vendors write `rules: []` beside an aggregationRule, as a place for what comes; whoever put that
back would take rights away, again and again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.objects.merge import Object
from relay.syncer.ownership import owned_fields
from schemas.objects.objects import RBAC_GROUP, ObjectKey

RULES = "rules"
_KIND = (RBAC_GROUP, "clusterroles")
_AGGREGATOR = "clusterrole-aggregation-controller"


def is_aggregated(key: ObjectKey, live: Mapping[str, Any]) -> bool:
    """Whether the cluster's controller has gathered the rules of this object."""
    if key.group_resource != _KIND or not live.get("aggregationRule"):
        return False
    owners = owned_fields(live)
    return any(it.manager == _AGGREGATOR and f"f:{RULES}" in it.fields for it in owners)


def is_gathering(field: str, manager: str) -> bool:
    """Whether what was taken from us are rules that the cluster gathers."""
    return (field, manager) == (RULES, _AGGREGATOR)


def without_rules(wish: Object) -> Object:
    """The wish without what the cluster gathers."""
    return {name: value for name, value in wish.items() if name != RULES}
