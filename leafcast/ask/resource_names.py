"""What people call kinds: `deploy`, `deployments.apps`, `Deployment` all mean one resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.objects.objects import BUILT_IN_KINDS, CRD_GROUP, KindTable, ObjectKey, group_of
from schemas.values.alike import most_alike
from schemas.values.groups import CONTROL_GROUP, DENATURED_GROUP, GROUP, RELEASES
from schemas.values.wording import visible

_SHORT_NAMES: Mapping[str, tuple[str, str]] = {
    "bdg": (CONTROL_GROUP, "bindings"),
    "bp": (CONTROL_GROUP, "bindingpolicies"),
    "cj": ("batch", "cronjobs"),
    "cm": ("", "configmaps"),
    "crd": (CRD_GROUP, "customresourcedefinitions"),
    "crds": (CRD_GROUP, "customresourcedefinitions"),
    "cust": (GROUP, "customizers"),
    "ct": (CONTROL_GROUP, "customtransforms"),
    "deploy": ("apps", "deployments"),
    "dn": (DENATURED_GROUP, "denatureds"),
    "ds": ("apps", "daemonsets"),
    "cst": (CONTROL_GROUP, "combinedstatuses"),
    "ep": ("", "endpoints"),
    "epl": (GROUP, "edgeplacements"),
    "ev": ("", "events"),
    "hpa": ("autoscaling", "horizontalpodautoscalers"),
    "hrl": (DENATURED_GROUP, "healthrules"),
    "ing": ("networking.k8s.io", "ingresses"),
    "lcr": RELEASES,
    "limits": ("", "limitranges"),
    "loc": (GROUP, "locations"),
    "netpol": ("networking.k8s.io", "networkpolicies"),
    "no": ("", "nodes"),
    "ns": ("", "namespaces"),
    "pc": ("scheduling.k8s.io", "priorityclasses"),
    "pdb": ("policy", "poddisruptionbudgets"),
    "po": ("", "pods"),
    "pv": ("", "persistentvolumes"),
    "pvc": ("", "persistentvolumeclaims"),
    "quota": ("", "resourcequotas"),
    "rc": ("", "replicationcontrollers"),
    "rol": (DENATURED_GROUP, "rollouts"),
    "rs": ("apps", "replicasets"),
    "sa": ("", "serviceaccounts"),
    "sc": ("storage.k8s.io", "storageclasses"),
    "sps": (GROUP, "singleplacementslices"),
    "st": (GROUP, "synctargets"),
    "stc": (CONTROL_GROUP, "statuscollectors"),
    "sts": ("apps", "statefulsets"),
    "svc": ("", "services"),
}
# Where two groups have a resource of one name, kubectl means the older one. Core bindings cannot
# be read by anyone.
_LATE = (("events.k8s.io", "events"), ("", "bindings"))
_ALL = (
    ("", "pods"),
    ("", "replicationcontrollers"),
    ("", "services"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
)
ALL = "all"
BROUGHT_UP = "it arises at edges, and is brought up: add --all-edges, or --at PATH"


class UnknownKind(ValueError):
    """A word that no kind goes by; says which it could be."""

    def __init__(self, word: str, close: str = "", remedy: str = "") -> None:
        remedy = remedy or (
            f'did you mean "{close}"?'
            if close
            else "name a kind such as deployments or edgeplacements, or apply its definition"
        )
        super().__init__(f'the server doesn\'t have a resource type "{word}"; {remedy}')
        self.word = word


@dataclass(frozen=True, slots=True, order=True)
class ResourceKind:
    """One kind of object; `group` "" is core, `resource` the lowercase plural."""

    group: str
    resource: str
    kind: str
    namespaced: bool

    @property
    def group_resource(self) -> tuple[str, str]:
        """Its kind, whatever the version."""
        return self.group, self.resource

    @property
    def qualified(self) -> str:
        """The resource with its group, as errors name it: `deployments.apps`."""
        return _qualified(self.resource, self.group)

    def title(self, name: str) -> str:
        """An object as outputs name it: `deployment.apps/web`."""
        return f"{_qualified(self.kind.lower(), self.group)}/{visible(name)}"

    def quoted(self, name: str) -> str:
        """An object as `delete` names it: `deployment.apps "web"`."""
        return f'{_qualified(self.kind.lower(), self.group)} "{visible(name)}"'

    def key(self, namespace: str, name: str) -> ObjectKey:
        """The key of an object; the namespace counts only if the kind lives in namespaces."""
        return ObjectKey(self.group, self.resource, namespace if self.namespaced else "", name)


class ResourceKinds:
    """All kinds that Kubernetes, the definitions in a space, and its objects tell of."""

    def __init__(self, objects: Iterable[Mapping[str, Any]] = ()) -> None:
        listed = list(objects)
        self.table: KindTable = BUILT_IN_KINDS.extended_by(listed)
        self._kinds: dict[tuple[str, str], ResourceKind] = {}
        for (group, kind), entry in self.table.items():
            self._add(ResourceKind(group, entry.resource, kind, entry.namespaced))
        for obj in listed:
            key = self.table.key_of(obj)
            self._add(ResourceKind(key.group, key.resource, obj["kind"], bool(key.namespace)))
        self._words: dict[str, tuple[str, str]] = {}
        for word, meant in self._named(listed):
            self._words.setdefault(word, meant)
        # Kinds that only edges may know, as placements name them.
        self._raised = dict(_raised(listed))
        self._raised |= {f"{plural}.{group}": group for plural, group in self._raised.items()}

    def resolve(self, word: str, *, guess: bool = False) -> ResourceKind:
        """The kind a word means, whatever its case; raises UnknownKind.

        A group may follow, after a version or not: `deployments.apps`, `deployments.v1.apps`. With
        `guess` a plural need not be known that has its group, or that a placement brings up.
        """
        said = word.lower()
        meant = self._words.get(said)
        plain, _, rest = said.partition(".")
        if meant is None:
            _, _, group = rest.partition(".")
            meant = self._words.get(f"{plain}.{group}") if group else None
        group = self._raised.get(said, "") if guess and not rest else rest
        if meant is None and guess and plain and "." in group:
            return ResourceKind(group, plain, plain, namespaced=True)
        if meant is None and said in self._raised:
            raise UnknownKind(word, remedy=BROUGHT_UP)
        if meant is None:
            raise UnknownKind(word, most_alike(said, sorted(self._words)))
        return self._kinds[meant]

    def resources(self) -> list[str]:
        """The plural of each kind, with its group where the plural alone means another."""
        return sorted(
            kind.resource if self._words[kind.resource] == kind.group_resource else kind.qualified
            for kind in self._kinds.values()
        )

    def resolve_all(self, words: str, *, guess: bool = False) -> list[ResourceKind]:
        """Several, with commas between them, each once; `all` means what it means to kubectl."""
        found: list[ResourceKind] = []
        for word in filter(None, words.split(",")):
            if word == ALL:
                found += [self._kinds[kind] for kind in _ALL]
            else:
                found.append(self.resolve(word, guess=guess))
        return list(dict.fromkeys(found))

    def of(self, obj: Mapping[str, Any]) -> ResourceKind:
        """The kind of a valid object."""
        key = self.table.key_of(obj)
        known = self._kinds.get(key.group_resource)
        return known or ResourceKind(key.group, key.resource, obj["kind"], bool(key.namespace))

    def _add(self, kind: ResourceKind) -> None:
        self._kinds.setdefault(kind.group_resource, kind)

    def _named(self, objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, tuple[str, str]]]:
        """Words and what they mean; the first meaning of a word counts."""
        known = sorted(self._kinds.values(), key=lambda kind: kind.group_resource in _LATE)
        for kind in known:
            for word in (kind.resource, kind.kind.lower()):
                yield f"{word}.{kind.group}", kind.group_resource
                yield word, kind.group_resource
        yield from _SHORT_NAMES.items()
        for obj in objects:
            if obj.get("kind") == "CustomResourceDefinition" and group_of(obj) == CRD_GROUP:
                yield from self._custom_words(obj)

    def _custom_words(self, definition: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, str]]]:
        match definition.get("spec"):
            case {"group": str(group), "names": {"plural": str(plural), **names}}:
                shorts = names.get("shortNames")
                listed = shorts if isinstance(shorts, (list, tuple)) else ()
                for word in (names.get("singular"), *listed):
                    if isinstance(word, str) and (group, plural) in self._kinds:
                        yield word.lower(), (group, plural)
            case _:
                return


def _raised(objects: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The plurals that clauses of `upsync` name, each with its group."""
    for obj in objects:
        match obj:
            case {"kind": "EdgePlacement", "spec": {"upsync": [*clauses]}}:
                for clause in clauses:
                    for plural in clause.get("resources") or ():
                        yield str(plural), str(clause.get("apiGroup") or "")
            case _:
                pass


def _qualified(word: str, group: str) -> str:
    return f"{word}.{group}" if group else word
