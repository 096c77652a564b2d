"""Tracking marks: by which Helm, Argo CD and Flux know what is theirs, and which stay at home.

At an edge such a mark would make an object that of the tool there. Who runs a space may say which
marks are meant, by an annotation of its Namespace `leafcast-system`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from fnmatch import fnmatchcase
from typing import Any

from schemas.objects.annotations import TRACKING_MARKS
from schemas.objects.objects import ObjectKey, texts_of
from schemas.values.groups import SYSTEM_NAMESPACE

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
_SYSTEM = ObjectKey("", "namespaces", "", SYSTEM_NAMESPACE)

Object = Mapping[str, Any]


class TrackingMarks:
    """The marks of one space; in an embedded one, where no tool writes, none by themselves."""

    def __init__(self) -> None:
        self.by_tools = False
        """Whether tools write into this space."""
        self._said: str | None = None

    @property
    def patterns(self) -> tuple[str, ...]:
        """Which keys of labels and annotations stay at home."""
        standard = STANDARD if self.by_tools else ()
        if self._said is None:
            return standard
        words = [word for word in self._said.replace(",", " ").split() if word]
        listed = (STANDARD if word == _STANDARD_WORD else (word,) for word in words)
        return tuple(dict.fromkeys(key for keys in listed for key in keys))

    def put(self, key: ObjectKey, obj: Object | None) -> bool:
        """Take the present state of an object, None of one that is gone; whether marks changed."""
        if key != _SYSTEM:
            return False
        said = texts_of(obj or {}, "annotations").get(TRACKING_MARKS)
        before, self._said = self._said, str(said) if said is not None else None
        return before != self._said


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
