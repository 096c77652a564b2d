"""What a placement names and is not there, or not supported yet: so that its status can say so.

Kept beside the objects, each change at the cost of what it changes: kinds that are served, and
Namespaces.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controllers.core.workloads.selection import ANY
from schemas.api.placement import EdgePlacementSpec, UpsyncSet
from schemas.api.policy import BindingPolicySpec
from schemas.objects.objects import ALWAYS_THERE, BUILT_IN_KINDS, GroupResource
from schemas.values.alike import most_alike
from schemas.values.wording import some_of

UNKNOWN_KIND, NO_NAMESPACE, NOTHING_SELECTED = "UnknownKind", "NamespaceNotFound", "NothingSelected"
NAMED_MAX = 4
_NAMESPACED = frozenset(
    (group, entry.resource) for (group, _), entry in BUILT_IN_KINDS.items() if entry.namespaced
)

Spec = EdgePlacementSpec | BindingPolicySpec


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a placement cannot be as it was meant: a word, and what to do about it."""

    reason: str
    message: str


@dataclass(slots=True)
class MissingReferences:
    """What each placement names; each change returns the placements that it concerns."""

    # As long as it is not known which kinds are, no kind is unknown.
    served: AbstractSet[GroupResource] | None = None
    _specs: dict[str, Spec] = field(default_factory=dict)
    _naming: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _namespaces: set[str] = field(default_factory=lambda: set(ALWAYS_THERE))

    def put(self, name: str, spec: Spec) -> None:
        """Learn what a placement names."""
        self.remove(name)
        self._specs[name] = spec
        for namespace in _namespaces_in(spec):
            self._naming[namespace].add(name)

    def remove(self, name: str) -> None:
        spec = self._specs.pop(name, None)
        for namespace in _namespaces_in(spec) if spec else ():
            self._naming[namespace].discard(name)
            if not self._naming[namespace]:
                del self._naming[namespace]

    def serve(self, served: Iterable[GroupResource]) -> frozenset[str]:
        """Learn which kinds there are now."""
        before, self.served = self.served, frozenset(served)
        if before == self.served:
            return frozenset()
        return frozenset(self._specs)

    def put_namespace(self, namespace: str) -> frozenset[str]:
        """Learn that something is there that tells of a Namespace: itself, or what is in it."""
        if namespace in self._namespaces:
            return frozenset()
        self._namespaces.add(namespace)
        return frozenset(self._naming.get(namespace, ()))

    def remove_namespace(self, namespace: str) -> frozenset[str]:
        """Learn that neither a Namespace nor anything in it is there."""
        if namespace in ALWAYS_THERE or namespace not in self._namespaces:
            return frozenset()
        self._namespaces.discard(namespace)
        return frozenset(self._naming.get(namespace, ()))

    def of(self, name: str, selected: int, hidden: Iterable[tuple[str, str]] = ()) -> Lack | None:
        """What is missing for a placement that selects so many objects; None if nothing is.

        `hidden` has a word and a text for each kind that it may select and nobody can see.
        """
        spec = self._specs.get(name)
        if spec is None:
            return None
        found = [*self._kinds(spec), *hidden, *self._absent(spec)]
        upsync = spec.upsync if isinstance(spec, EdgePlacementSpec) else ()
        if not selected and not (upsync and next(_reaching(spec), None) is None):
            told = "so no object is selected" if found else _nothing(spec)
            found.append((NOTHING_SELECTED, told))
        elif not selected and (told := _brings_up_nothing(spec)):
            found.append((NOTHING_SELECTED, told))
        if not found:
            return None
        return Lack(found[0][0], some_of([message for _, message in found], NAMED_MAX, "; "))

    def _kinds(self, spec: Spec) -> Iterator[tuple[str, str]]:
        """GroupResource words that no kind goes by, and groups that have no kind."""
        for field_, group, resources in _reaching(spec):
            if self.served is None:
                return
            known = {resource for it, resource in self.served if group in (None, it)}
            if not known:
                groups = sorted({known for known, _ in self.served})
                told = f'{field_}.apiGroup: no kind has the API group "{group}"'
                yield UNKNOWN_KIND, told + _meant(str(group), groups)
                continue
            for word in resources:
                if word != ANY and word not in known:
                    told = f'the server doesn\'t have a resource type "{word}"'
                    within = f' in group "{group}"' if group else ""
                    where = f"{field_}.resources: "
                    close = self._close(word, known)
                    yield UNKNOWN_KIND, f"{where}{told}{within}{close}"

    def _close(self, word: str, known: AbstractSet[str]) -> str:
        elsewhere = sorted(group for group, resource in self.served or () if resource == word)
        if elsewhere:
            return f'; its apiGroup is "{elsewhere[0]}"'
        return _meant(word, sorted(known)) or "; apply its definition, or correct the word"

    def _absent(self, spec: Spec) -> Iterator[tuple[str, str]]:
        """Namespaces by name that are not there."""
        for at, clause in enumerate(spec.downsync):
            for namespace in clause.namespaces if ANY not in clause.namespaces else ():
                if namespace not in self._namespaces:
                    told = f'spec.downsync[{at}].namespaces: namespaces "{namespace}" not found'
                    yield NO_NAMESPACE, told


def _reaching(spec: Spec) -> Iterator[tuple[str, str | None, Sequence[str]]]:
    """Each field that says which kinds are meant, with the group and the resources it names."""
    for at, clause in enumerate(spec.downsync):
        yield f"spec.downsync[{at}]", clause.api_group, clause.resources
    if isinstance(spec, EdgePlacementSpec):
        if spec.namespace_selector is not None:
            yield "spec.namespaceSelector", None, ()
        for at, item in enumerate(spec.non_namespaced_objects):
            yield f"spec.nonNamespacedObjects[{at}]", item.api_group, item.resources


def _namespaces_in(spec: Spec) -> set[str]:
    return {name for clause in spec.downsync for name in clause.namespaces if name != ANY}


def _brings_up_nothing(spec: Spec) -> str:
    """What keeps all clauses of `upsync` from admitting anything; "" if one may."""
    clauses = spec.upsync if isinstance(spec, EdgePlacementSpec) else ()
    empty = [_empty_field(clause) for clause in clauses]
    if not all(empty):
        return ""
    return f'spec.upsync[0].{empty[0]}: empty, so nothing comes up; name some, or write ["*"]'


def _empty_field(clause: UpsyncSet) -> str:
    """The field without which a clause of `upsync` admits nothing; "" if it has all it needs."""
    if not clause.resources:
        return "resources"
    if not clause.names:
        return "names"
    within = all((clause.api_group, word) in _NAMESPACED for word in clause.resources)
    return "namespaces" if within and not clause.namespaces else ""


def _nothing(spec: Spec) -> str:
    if any(not field_.startswith("spec.downsync") for field_, _, _ in _reaching(spec)):
        return "no object is selected: apply some that the spec matches, or correct it"
    if not spec.downsync:
        return "no object is selected: spec.downsync is empty; say there what goes out"
    return "no object is selected: apply some that spec.downsync matches, or correct it"


def _meant(word: str, known: list[str]) -> str:
    close = most_alike(word, known)
    return f'; did you mean "{close}"?' if close else ""
