"""What `leafcast install` prints: the manifests of a space, as values, each with a word on why.

Roles: `workloads` (a WDS), `inventory` (Locations and SyncTargets), `edge` (a cluster that gets
workloads). The rights are the least that the program works with; what is wide is said to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from controllers.core.workloads.selection import STAYS_LABEL
from leafcast.doctor.live_cluster import LEASE
from relay.claims.centre_lease import INVENTORY_LEASE, WORKLOADS_LEASE
from relay.claims.leases import EDGE_LEASE
from schemas.crds.definitions import custom_resource_definitions
from schemas.values.groups import CONTROL_GROUP, GROUP, PROPERTIES_NAMESPACE, SYSTEM_NAMESPACE

NAMESPACE = SYSTEM_NAMESPACE
CENTRE, EDGE = "leafcast-centre", "leafcast-edge"
VIEW, EDIT, PLACEMENTS_VIEW = "leafcast-view", "leafcast-edit", "leafcast-placements-view"
ROLES = ("workloads", "inventory", "edge", "all")
STATUSES = ("built-in", "any", "none")

Form = dict[str, Any]
_READ = ["get", "list", "watch"]
_RBAC = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/part-of": "leafcast", STAYS_LABEL: "true"}
# Kinds whose status is of use at the centre; others are for `--singleton-status any`.
_WITH_STATUS = (
    ("", ("persistentvolumeclaims", "pods", "replicationcontrollers", "services")),
    ("apps", ("daemonsets", "deployments", "replicasets", "statefulsets")),
    ("autoscaling", ("horizontalpodautoscalers",)),
    ("batch", ("cronjobs", "jobs")),
    ("networking.k8s.io", ("ingresses",)),
    ("policy", ("poddisruptionbudgets",)),
)


@dataclass(frozen=True, slots=True)
class InstalledObject:
    """One object, and why it is there."""

    why: str
    object: Form


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What is to be installed."""

    role: str = "all"
    # All that the centre may read, as (group, resource); none for every kind.
    kinds: tuple[tuple[str, str], ...] = ()
    # Of which kinds a singleton's status may be written.
    statuses: str = "built-in"
    # All that an edge may read and write in; none for the whole cluster.
    namespaces: tuple[str, ...] = ()

    @property
    def workloads(self) -> bool:
        return self.role in ("workloads", "all")

    @property
    def inventory(self) -> bool:
        return self.role in ("inventory", "all")

    @property
    def edge(self) -> bool:
        """`all` is all that a centre needs: an edge is another cluster, or should be."""
        return self.role == "edge"


REPORT_NAMESPACE = "kubestellar-report"


def manifests(wish: InstallOptions) -> list[InstalledObject]:
    """All objects of a role, in an order in which they can be applied."""
    return [
        *_definitions(wish),
        _namespace(),
        *_edge_spaces(wish),
        *_centre(wish),
        *_people(wish),
        *_edge(wish),
    ]


def _edge_spaces(wish: InstallOptions) -> Iterator[InstalledObject]:
    """Before any right in them: what is there already stays as it is."""
    for namespace in wish.namespaces if wish.edge else ():
        if namespace != NAMESPACE:
            form: Form = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            yield InstalledObject("What the edge works in; one that is there stays as it is.", form)


def _definitions(wish: InstallOptions) -> Iterator[InstalledObject]:
    for crd in custom_resource_definitions(workloads=wish.workloads, inventory=wish.inventory):
        yield InstalledObject(f"The kind {crd['spec']['names']['kind']}.", crd)


def _namespace() -> InstalledObject:
    why = "Holds the accounts that Leafcast uses; it starts nothing there by itself."
    return InstalledObject(why, _object("v1", "Namespace", NAMESPACE))


def _centre(wish: InstallOptions) -> Iterator[InstalledObject]:
    if not (wish.workloads or wish.inventory):
        return
    token = f"kubectl create token {CENTRE} -n {NAMESPACE} --duration 8760h"
    why = f"Whom the centre is here; it runs anywhere, with a token: {token}"
    yield InstalledObject(why, _account(CENTRE))
    yield from _centre_leases(wish)
    if wish.workloads:
        why = "Holds what collectors say of cluster-scoped objects."
        yield InstalledObject(why, _object("v1", "Namespace", REPORT_NAMESPACE))
        why = (
            "Reads what placements select, which is for users to say: with --kind it reads less. "
            "Writes what is Leafcast's own: statuses, slices, the finalizer of a placement."
        )
        yield from _bound("leafcast-workloads", why, _workload_rules(wish), CENTRE)
    if wish.workloads and wish.kinds:
        yield from _signs_of_life()
    if wish.workloads and wish.statuses != "none":
        why = (
            "Writes the status and one label of objects whose status a placement wants back. RBAC "
            "knows no label: with --singleton-status none it may not, and such statuses stay away."
        )
        yield from _bound("leafcast-singletons", why, _singleton_rules(wish), CENTRE)
    if wish.inventory:
        why = "Writes a SyncTarget and a Location for each edge that is added, and their statuses."
        yield from _bound("leafcast-inventory", why, _inventory_rules(), CENTRE)
        yield from _properties()


def _centre_leases(wish: InstallOptions) -> Iterator[InstalledObject]:
    """One hub has one centre: it says so there by a lease for each sort of space."""
    names = [WORKLOADS_LEASE] if wish.workloads else []
    names += [INVENTORY_LEASE] if wish.inventory else []
    why = f"Holds, where it is bound, the Lease by which one centre at a time works here: {names}."
    yield from _bound_in(NAMESPACE, "leafcast-leases", why.replace("'", ""), _lease_rules(names))


def _lease_rules(names: list[str], *more: str) -> list[Form]:
    kind = (["coordination.k8s.io"], ["leases"])
    # Of what is not there yet RBAC knows no name.
    return [
        {**_rule(*kind, ["get", "update", *more]), "resourceNames": names},
        _rule(*kind, ["create"]),
    ]


def _workload_rules(wish: InstallOptions) -> list[Form]:
    reads = [_rule([group], [resource], _READ) for group, resource in wish.kinds]
    if wish.kinds:
        definitions = ["customresourcedefinitions"]
        reads += [
            _rule([""], ["namespaces"], _READ),
            _rule([""], ["nodes"], ["list"]),
            _rule(["apiextensions.k8s.io"], definitions, _READ),
            _rule([GROUP], ["customizers", "edgeplacements", "singleplacementslices"], _READ),
            _rule([CONTROL_GROUP], ["bindingpolicies", "bindings", "customtransforms"], _READ),
            _rule(
                ["leafcast.io"],
                ["denatureds", "healthrules", "leafcastreleases", "rollouts"],
                _READ,
            ),
            _rule([CONTROL_GROUP], ["combinedstatuses", "statuscollectors"], _READ),
        ]
    return [
        *(reads or [_rule(["*"], ["*"], _READ)]),
        _rule([GROUP], ["edgeplacements"], ["patch"]),
        _rule([GROUP], ["edgeplacements/status"], ["patch", "update"]),
        _rule([GROUP], ["edgeplacements/finalizers"], ["update"]),
        _rule([GROUP], ["singleplacementslices"], ["create", "delete", "patch", "update"]),
        _rule([CONTROL_GROUP], ["statuscollectors/status"], ["patch", "update"]),
        _rule([CONTROL_GROUP], ["combinedstatuses"], ["create", "delete", "patch", "update"]),
        _rule([GROUP], ["customizers/status"], ["patch", "update"]),
        _rule(
            ["leafcast.io"],
            [
                "denatureds/status",
                "healthrules/status",
                "leafcastreleases/status",
                "rollouts/status",
            ],
            ["patch", "update"],
        ),
        _rule([CONTROL_GROUP], ["bindingpolicies"], ["patch"]),
        _rule(
            [CONTROL_GROUP],
            ["bindingpolicies/status", "customtransforms/status"],
            ["patch", "update"],
        ),
        _rule([CONTROL_GROUP], ["bindingpolicies/finalizers"], ["update"]),
        _rule([CONTROL_GROUP], ["bindings"], ["create", "delete", "patch", "update"]),
    ]


def _signs_of_life() -> Iterator[InstalledObject]:
    name, place = "leafcast-signs-of-life", LEASE.namespace
    why = f"Looks, where it is bound, in {place}, whether controllers run that would start Pods."
    lease = _rule([LEASE.group], [LEASE.resource], ["get"])
    rules = [{**lease, "resourceNames": [LEASE.name]}, _rule([""], ["serviceaccounts"], ["list"])]
    yield from _bound_in(place, name, why, rules)


def _singleton_rules(wish: InstallOptions) -> list[Form]:
    if wish.statuses == "any":
        return [_rule(["*"], ["*", "*/status"], ["patch"])]
    return [
        _rule([group], [*resources, *(f"{resource}/status" for resource in resources)], ["patch"])
        for group, resources in _WITH_STATUS
    ]


def _properties() -> Iterator[InstalledObject]:
    why = "Holds a ConfigMap for each destination that has properties of its own, by its name."
    yield InstalledObject(why, _object("v1", "Namespace", PROPERTIES_NAMESPACE))
    name = "leafcast-properties"
    why = "Reads ConfigMaps, where it is bound: among properties of destinations, and nowhere else."
    yield from _bound_in(PROPERTIES_NAMESPACE, name, why, [_rule([""], ["configmaps"], _READ)])


def _inventory_rules() -> list[Form]:
    kinds = ["locations", "synctargets"]
    return [
        _rule([GROUP], kinds, [*_READ, "create", "delete", "patch", "update"]),
        _rule([GROUP], [f"{kind}/status" for kind in kinds], ["patch", "update"]),
        {**_rule([""], ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
    ]


def _people(wish: InstallOptions) -> Iterator[InstalledObject]:
    """Rights on our kinds for who has the roles of every API server, and for whom you name."""
    if not (wish.workloads or wish.inventory):
        return
    kinds: dict[str, dict[str, list[str]]] = {"Namespaced": {}, "Cluster": {}}
    for crd in custom_resource_definitions(workloads=wish.workloads, inventory=wish.inventory):
        spec = crd["spec"]
        kinds[spec["scope"]].setdefault(spec["group"], []).append(spec["names"]["plural"])
    if wish.workloads:
        why = "Who has `view` somewhere sees there what lies there of Leafcast's kinds."
        inside = [_rule([group], names, _READ) for group, names in kinds["Namespaced"].items()]
        yield InstalledObject(why, _aggregated(VIEW, "view", inside))
        why = "Who has `edit` somewhere writes there the Customizers that objects name."
        writing = ["create", "delete", "deletecollection", "patch", "update"]
        yield InstalledObject(
            why, _aggregated(EDIT, "edit", [_rule([GROUP], ["customizers"], writing)])
        )
    why = (
        "Sees placements, what became of them, and destinations. For whom you like: "
        f"kubectl create clusterrolebinding {PLACEMENTS_VIEW} --clusterrole={PLACEMENTS_VIEW} "
        "--group=GROUP"
    )
    outside = [_rule([group], names, _READ) for group, names in kinds["Cluster"].items()]
    yield InstalledObject(why, _role(PLACEMENTS_VIEW, outside))


def _aggregated(name: str, to: str, rules: Sequence[Form]) -> Form:
    """A role that a controller of the API server adds to one of its own."""
    role = _role(name, rules)
    role["metadata"]["labels"][f"{_RBAC}/aggregate-to-{to}"] = "true"
    return role


def _edge(wish: InstallOptions) -> Iterator[InstalledObject]:
    if not wish.edge:
        return
    yield InstalledObject("Whom `leafcast join` is in a Pod of this cluster.", _account(EDGE))
    everything = [_rule(["*"], ["*"], ["*"])]
    if not wish.namespaces:
        why = (
            "Everything, as cluster-admin has it: an edge applies whatever the centre selects, "
            "roles included. With --namespace it reads and writes there only."
        )
        yield from _bound(EDGE, why, everything, EDGE)
        return
    why = "Tells the cluster from others by the UID of kube-system, and looks at its namespaces."
    rules = [
        {**_rule([""], ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
        {**_rule([""], ["namespaces"], _READ), "resourceNames": list(wish.namespaces)},
    ]
    yield from _bound(f"{EDGE}-reader", why, rules, EDGE)
    why = "Holds, where it is bound, the Lease by which one edge works on this cluster."
    claim = _lease_rules([EDGE_LEASE], "delete")
    yield from _bound_in(NAMESPACE, f"{EDGE}-claim", why, claim, EDGE)
    why = "Everything in the namespaces that are named; objects elsewhere are refused, and said."
    yield InstalledObject(why, _role(EDGE, everything))
    for namespace in wish.namespaces:
        binding = _binding("RoleBinding", EDGE, EDGE)
        binding["metadata"]["namespace"] = namespace
        yield InstalledObject(f"In {namespace}.", binding)


def _bound(name: str, why: str, rules: Sequence[Form], account: str) -> Iterator[InstalledObject]:
    yield InstalledObject(why, _role(name, rules))
    yield InstalledObject(f"For {account}.", _binding("ClusterRoleBinding", name, account))


def _bound_in(
    namespace: str, name: str, why: str, rules: Sequence[Form], account: str = CENTRE
) -> Iterator[InstalledObject]:
    yield InstalledObject(why, _role(name, rules))
    binding = _binding("RoleBinding", name, account)
    binding["metadata"]["namespace"] = namespace
    yield InstalledObject(f"In {namespace}.", binding)


def _role(name: str, rules: Sequence[Form]) -> Form:
    return {**_object(f"{_RBAC}/v1", "ClusterRole", name), "rules": list(rules)}


def _binding(kind: str, name: str, account: str) -> Form:
    return {
        **_object(f"{_RBAC}/v1", kind, name),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def _account(name: str) -> Form:
    account = _object("v1", "ServiceAccount", name)
    account["metadata"]["namespace"] = NAMESPACE
    return account


def _object(version: str, kind: str, name: str) -> Form:
    metadata = {"name": name, "labels": dict(_LABELS)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _rule(groups: list[str], resources: list[str], verbs: Sequence[str]) -> Form:
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs)}
