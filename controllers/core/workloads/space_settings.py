"""What who runs a space says for all of it, by annotations of its Namespace `leafcast-system`.

Tracking marks, by which Helm, Argo CD and Flux know what is theirs, stay at home: at an edge they
would make an object that of the tool there. Values of Secrets come up from edges, and into rows of
collectors, only if they are let: else whoever may create a placement would read all Secrets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from controllers.core.workloads.selection import Rules
from schemas.objects.annotations import MAY_COME_UP, TRACKING_MARKS
from schemas.objects.objects import Object, ObjectKey, texts_of
from schemas.reports.collectors import Program
from schemas.reports.upsync import SECRETS
from schemas.values.faults import Fault
from schemas.values.groups import SYSTEM_NAMESPACE
from schemas.values.wire import replace as changed

STANDARD = (
    "meta.helm.sh/*",
    "argocd.argoproj.io/tracking-id",
    "argocd.argoproj.io/installation-id",
    "kustomize.toolkit.fluxcd.io/name",
    "kustomize.toolkit.fluxcd.io/namespace",
    "kustomize.toolkit.fluxcd.io/checksum",
    "helm.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/namespace",
    "applyset.kubernetes.io/part-of",
    "config.k8s.io/owning-inventory",
)
"""What stays in a space on an API server, where such tools write."""
_STANDARD_WORD = "standard"
_REMEDY = (
    f"leave them out; or let who runs the space annotate its Namespace {SYSTEM_NAMESPACE} with "
    f"{MAY_COME_UP}: {SECRETS[1]}"
)
_SYSTEM = ObjectKey("", "namespaces", "", SYSTEM_NAMESPACE)


class SpaceSettings:
    """Of one space; in an embedded one, where no tool writes, nothing is said by itself."""

    def __init__(self) -> None:
        self.by_tools = False
        """Whether tools write into this space."""
        self.secrets_come_up = False
        self._marks: str | None = None

    @property
    def mark_patterns(self) -> tuple[str, ...]:
        """Which keys of labels and annotations stay at home."""
        standard = STANDARD if self.by_tools else ()
        if self._marks is None:
            return standard
        listed = (STANDARD if it == _STANDARD_WORD else (it,) for it in _words(self._marks))
        return tuple(dict.fromkeys(key for keys in listed for key in keys))

    def put(self, key: ObjectKey, obj: Object | None) -> bool:
        """Take the present state of an object, None of one that is gone; whether it says news."""
        if key != _SYSTEM:
            return False
        before, said = (self._marks, self.secrets_come_up), texts_of(obj or {}, "annotations")
        marks = said.get(TRACKING_MARKS)
        self._marks = None if marks is None else str(marks)
        self.secrets_come_up = SECRETS[1] in _words(str(said.get(MAY_COME_UP) or ""))
        return before != (self._marks, self.secrets_come_up)

    def limited(self, rules: Rules) -> Rules:
        """The rules of a placement, with what is allowed."""
        return replace(rules, brings_up_secrets=self.secrets_come_up)

    def allowed(self, program: Program) -> Program:
        """A collector, with what is allowed; the merge of statuses reads no Secret."""
        if not self.secrets_come_up or program.is_aggregate:
            return program
        return changed(program, reads_secrets=True)


def secret_faults(rules: Rules) -> Iterator[Fault]:
    """That Secrets do not come up which a placement names."""
    for at, clause in enumerate(rules.upsync):
        if clause.admits_kind(*SECRETS) and not rules.brings_up_secrets:
            yield Fault(f"spec.upsync[{at}].resources", "Secrets do not come up here", _REMEDY)


def take_off_marks(obj: MutableMapping[str, Any], patterns: tuple[str, ...]) -> None:
    """Remove an object's labels and annotations that stay at home."""
    for field, key in list(marks_of(obj, patterns)):
        metadata = obj["metadata"]
        del metadata[field][key]
        if not metadata[field]:
            del metadata[field]


def marks_of(obj: Object, patterns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Which of an object's labels and annotations stay at home, each as field and key."""
    metadata = obj.get("metadata")
    for field in ("annotations", "labels"):
        said = metadata.get(field) if isinstance(metadata, Mapping) else None
        for key in said if isinstance(said, Mapping) else ():
            if any(fnmatchcase(str(key), pattern) for pattern in patterns):
                yield field, key


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()
