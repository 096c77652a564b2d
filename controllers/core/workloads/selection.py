"""The selection rules of one placement: which objects it wants, by group, name, namespace, labels.

The meaning of each field is that of EdgePlacement v2alpha1: fields of a clause are ANDed, clauses
are ORed, an empty list matches everything, `*` matches any; in an upsync clause an empty list of
namespaces or names matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from schemas.api.placement import DownsyncClause, EdgePlacementSpec
from schemas.api.policy import BindingPolicySpec
from schemas.content.manifest import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON
from schemas.objects.annotations import KEEP_AT_HOME
from schemas.objects.objects import ObjectKey, texts_of
from schemas.objects.selectors import EXISTS, IN, LabelSelector
from schemas.reports.upsync import SECRETS, UpsyncClause
from schemas.values.wire import replace as changed

ANY = "*"
NAMESPACED, CLUSTER = "namespaced", "cluster"
"""What a clause of v1alpha1 is about: objects in Namespaces, or those in none."""

_GROUPS_KEPT = frozenset(
    {
        "discovery.k8s.io",
        "coordination.k8s.io",
        "control.kubestellar.io",
        "edge.kubestellar.io",
        "leafcast.io",
    }
)
_RESOURCES_KEPT = frozenset(
    {
        ("", "events"),
        ("events.k8s.io", "events"),
        ("", "nodes"),
        ("", "endpoints"),
        ("", "componentstatuses"),
        ("apps", "controllerrevisions"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("networking.k8s.io", "ipaddresses"),
        ("storage.k8s.io", "csistoragecapacities"),
        ("storage.k8s.io", "csinodes"),
    }
)
_TOKEN_SECRETS = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})
_SYSTEM_NAMES = frozenset(
    {
        ("", "configmaps", "extension-apiserver-authentication"),
        ("", "configmaps", "kube-root-ca.crt"),
        ("", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        ("", "serviceaccounts", "default"),
        ("networking.k8s.io", "servicecidrs", "kubernetes"),
        ("scheduling.k8s.io", "priorityclasses", "system-cluster-critical"),
        ("scheduling.k8s.io", "priorityclasses", "system-node-critical"),
    }
)
_API_SERVER = ("default", "kubernetes")
# What Helm notes of a release: its values, and all that it made. At an edge it would be a release.
_RELEASES = "sh.helm.release.v1."
_RELEASE_KINDS = frozenset({("", "secrets"), ("", "configmaps")})
_OUR_DEFINITIONS = (".control.kubestellar.io", ".edge.kubestellar.io", ".leafcast.io")
# What an API server makes by itself, at every start: each cluster has its own.
_MADE_BY_SERVER = ("kubernetes.io/bootstrapping", "kube-aggregator.kubernetes.io/automanaged")
# Of flow schemas and priority levels it says so in an annotation; "false" is a person's word.
_UPDATED_BY_SERVER = "apf.kubernetes.io/autoupdate-spec"
_OF_CLUSTER = "each cluster has one of its own"
_AN_IDENTITY = "it is an identity in the centre's cluster"
STAYS_LABEL = "leafcast.io/stays"
"""On what `leafcast install` makes, whatever its value: it is the centre's own."""


ClauseField = Literal[
    "apiGroup",
    "resources",
    "scope",
    "namespaces",
    "objectNames",
    "namespaceSelectors",
    "labelSelectors",
]
"""The fields of a clause, in the order in which they are looked at."""


@dataclass(frozen=True, slots=True)
class KindScope:
    """The kinds that a clause may select: `group` None is any, no resources are all."""

    group: str | None
    resources: frozenset[str]
    # Empty for any.
    scope: str
    # Whether metadata tells which objects it selects.
    by_labels: bool

    def covers(self, group: str, resource: str, *, namespaced: bool) -> bool:
        if group in _GROUPS_KEPT or (group, resource) in _RESOURCES_KEPT:
            return False
        return (
            (self.group is None or self.group == group)
            and (not self.resources or resource in self.resources)
            and self.scope in ("", NAMESPACED if namespaced else CLUSTER)
        )


@dataclass(frozen=True, slots=True)
class Clause:
    """One test of `downsync`; `group` None is any group, `scope` "" any."""

    group: str | None = None
    resources: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    namespace_selectors: tuple[LabelSelector, ...] = ()
    names: frozenset[str] = frozenset()
    selectors: tuple[LabelSelector, ...] = ()
    # Those of a manifest entry.
    flags: int = 0
    # The StatusCollectors that it names.
    collectors: tuple[str, ...] = ()
    scope: str = ""

    def matches(
        self, key: ObjectKey, labels: Mapping[str, str], namespace: Mapping[str, str] | None
    ) -> bool:
        """Whether the object passes; `namespace` holds its Namespace's labels, None if unknown."""
        return not self.unmet(key, labels, namespace)

    def unmet(
        self, key: ObjectKey, labels: Mapping[str, str], namespace: Mapping[str, str] | None
    ) -> ClauseField | Literal[""]:
        """The first field that keeps the object from passing; "" if none does."""
        if self.group is not None and self.group != key.group:
            return "apiGroup"
        if not _listed(self.resources, key.resource):
            return "resources"
        if self.scope not in ("", NAMESPACED if key.namespace else CLUSTER):
            return "scope"
        if not _listed(self.namespaces, key.namespace):
            return "namespaces"
        if not _listed(self.names, key.name) or (key.name not in self.names and _is_release(key)):
            return "objectNames"
        if not self._namespace_matches(key, namespace):
            return "namespaceSelectors"
        if self.selectors and not any(item.matches(labels) for item in self.selectors):
            return "labelSelectors"
        return ""

    def admits_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether objects in a Namespace may pass, whatever they are."""
        inside = ObjectKey("", "", name, "")
        return _listed(self.namespaces, name) and self._namespace_matches(inside, labels)

    @property
    def reach(self) -> KindScope:
        """The kinds of objects that may pass, whatever their names and labels are."""
        within = bool(self.namespaces) and ANY not in self.namespaces
        within |= bool(self.namespace_selectors) and not any(
            selector.is_everything for selector in self.namespace_selectors
        )
        resources = frozenset() if ANY in self.resources else self.resources
        scope = NAMESPACED if within else self.scope
        return KindScope(self.group, resources, scope, bool(self.selectors))

    @property
    def names_kinds(self) -> bool:
        """Whether it says of what kinds or groups objects are to be."""
        return self.group is not None or (bool(self.resources) and ANY not in self.resources)

    @property
    def is_explicit(self) -> bool:
        """Whether it says whose objects are meant: by Namespaces, names, or labels they bear."""
        named = (self.namespaces, self.names)
        if any(words and ANY not in words for words in named):
            return True
        return any(
            listed and all(map(_names_labels, listed))
            for listed in (self.namespace_selectors, self.selectors)
        )

    def _namespace_matches(self, key: ObjectKey, labels: Mapping[str, str] | None) -> bool:
        if not self.namespace_selectors:
            return True
        if any(selector.is_everything for selector in self.namespace_selectors):
            return True
        if not key.namespace or labels is None:
            return False
        return any(selector.matches(labels) for selector in self.namespace_selectors)


@dataclass(frozen=True, slots=True)
class Rules:
    """All clauses of one placement; `flags` are added to every object it selects."""

    clauses: tuple[Clause, ...] = ()
    # What comes up from edges; an object that matches is never sent down.
    upsync: tuple[UpsyncClause, ...] = ()
    flags: int = 0
    # Whether who runs the space lets Secrets come up.
    brings_up_secrets: bool = False

    @property
    def sent_upsync(self) -> tuple[UpsyncClause, ...]:
        """What edges are told to bring up."""
        if self.brings_up_secrets:
            return self.upsync
        return tuple(filter(None, map(_without_secrets, self.upsync)))

    def flags_of(
        self, key: ObjectKey, labels: Mapping[str, str], namespace: Mapping[str, str] | None
    ) -> int | None:
        """The flags of all clauses that match, ORed; None if the object is not selected."""
        matching = [item for item in self.clauses if item.matches(key, labels, namespace)]
        if not matching or self.brings_up(key):
            return None
        flags = self.flags
        for clause in matching:
            flags |= clause.flags
        return flags

    def unmet(
        self, key: ObjectKey, labels: Mapping[str, str], namespace: Mapping[str, str] | None
    ) -> list[tuple[Clause, ClauseField | Literal[""]]]:
        """Of each clause the field that keeps an object from passing, "" if it passes."""
        return [(item, item.unmet(key, labels, namespace)) for item in self.clauses]

    def collectors_of(
        self, key: ObjectKey, labels: Mapping[str, str], namespace: Mapping[str, str] | None
    ) -> frozenset[str]:
        """The StatusCollectors of all clauses that match, of an object that is selected."""
        return frozenset(
            name
            for item in self.clauses
            if item.collectors and item.matches(key, labels, namespace)
            for name in item.collectors
        )

    def in_any_namespace(self) -> Rules:
        """The same rules, whatever the labels of Namespaces are."""
        clauses = tuple(replace(clause, namespace_selectors=()) for clause in self.clauses)
        return replace(self, clauses=clauses)

    def brings_up(self, key: ObjectKey) -> bool:
        """Whether the object is one that comes from edges: upsync wins over downsync."""
        return any(rule.matches(key) for rule in self.upsync)


def never_selected(key: ObjectKey, obj: Mapping[str, Any]) -> bool:
    """Whether the object stays at the centre whatever a placement says."""
    return bool(why_never_selected(key, obj))


def why_never_selected(key: ObjectKey, obj: Mapping[str, Any]) -> str:
    """Why the object stays at the centre whatever a placement says; "" if it may go out.

    Such are control objects, what a cluster's own machinery makes, what would be an identity, and
    what says so itself.
    """
    if key.group in _GROUPS_KEPT or key.group_resource in _RESOURCES_KEPT:
        return "its kind stays at the centre"
    labels = texts_of(obj, "labels")
    if STAYS_LABEL in labels:
        return f"metadata.labels[{STAYS_LABEL}]: it is the centre's own"
    if not labels.keys().isdisjoint(_MADE_BY_SERVER):
        return _OF_CLUSTER
    if (key.group, key.resource, key.name) in _SYSTEM_NAMES:
        return _OF_CLUSTER
    if texts_of(obj, "annotations").get(KEEP_AT_HOME) == "true":
        return f'metadata.annotations[{KEEP_AT_HOME}] is "true"'
    return _why_of_its_kind(key, obj)


def _why_of_its_kind(key: ObjectKey, obj: Mapping[str, Any]) -> str:
    match key.group, key.resource:
        case "apiregistration.k8s.io", _:
            of_cluster = _is_local(obj)
        case "flowcontrol.apiserver.k8s.io", _:
            of_cluster = texts_of(obj, "annotations").get(_UPDATED_BY_SERVER) == "true"
        case "apiextensions.k8s.io", _:
            return "Leafcast has it installed itself" if _is_our_definition(key) else ""
        case "", "secrets":
            return _AN_IDENTITY if obj.get("type") in _TOKEN_SECRETS else ""
        case "", "services":
            of_cluster = (key.namespace, key.name) == _API_SERVER
        case _:
            return ""
    return _OF_CLUSTER if of_cluster else ""


def _is_our_definition(key: ObjectKey) -> bool:
    return key.name.endswith(_OUR_DEFINITIONS)


def _is_release(key: ObjectKey) -> bool:
    """Whether Helm keeps a release here: only who names it means it."""
    return key.name.startswith(_RELEASES) and key.group_resource in _RELEASE_KINDS


def _is_local(service: Mapping[str, Any]) -> bool:
    """Whether an APIService stands for what its API server serves itself."""
    spec = service.get("spec")
    return isinstance(spec, Mapping) and not spec.get("service")


def rules_of(spec: EdgePlacementSpec | BindingPolicySpec) -> Rules:
    """The selection rules that a placement says."""
    clauses = tuple(_clause(item) for item in spec.downsync)
    if isinstance(spec, BindingPolicySpec):
        return Rules(clauses)
    return Rules(
        clauses=(*clauses, *_older_clauses(spec)),
        upsync=tuple(item.clause for item in spec.upsync),
        flags=WANT_SINGLETON if spec.want_singleton_reported_state else 0,
    )


def _without_secrets(clause: UpsyncClause) -> UpsyncClause | None:
    """The same clause, naming no Secrets; None if it names nothing else."""
    if not clause.admits_kind(*SECRETS):
        return clause
    others = tuple(resource for resource in clause.resources if resource != SECRETS[1])
    return changed(clause, resources=others) if others else None


def _names_labels(selector: LabelSelector) -> bool:
    """Whether what it selects bears a label that it names."""
    return any(each.operator in (IN, EXISTS) for each in selector.requirements)


def _listed(wanted: frozenset[str], value: str) -> bool:
    return not wanted or value in wanted or ANY in wanted


def _older_clauses(spec: EdgePlacementSpec) -> Iterator[Clause]:
    """What the fields of v1alpha1 say."""
    if spec.namespace_selector is not None:
        yield Clause(namespace_selectors=(spec.namespace_selector,), scope=NAMESPACED)
    for item in spec.non_namespaced_objects:
        if not item.resources:
            continue
        one = Clause(item.api_group, frozenset(item.resources), scope=CLUSTER)
        if item.resource_names:
            yield replace(one, names=frozenset(item.resource_names))
        if item.label_selectors:
            yield replace(one, selectors=item.label_selectors)


def _clause(item: DownsyncClause) -> Clause:
    flags = CREATE_ONLY if item.create_only else 0
    flags |= WANT_SINGLETON if item.want_singleton_reported_state else 0
    flags |= WANT_MULTI if item.want_multi_wec_reported_state else 0
    return Clause(
        group=item.api_group,
        resources=frozenset(item.resources),
        namespaces=frozenset(item.namespaces),
        namespace_selectors=item.namespace_selectors,
        names=frozenset(item.object_names),
        selectors=item.label_selectors,
        flags=flags,
        collectors=item.status_collectors,
    )
