"""Which of several reasons is told first: the one that the others follow from.

A Namespace that is refused comes before what lies in it, a definition before its instances, and
what runs a webhook before what that cannot look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

_T = TypeVar("_T")
_CRD_GROUP = "apiextensions.k8s.io"
"""As schemas.objects has it, which a command that tells of nothing wrong shall not load."""
DEPTH_MAX = 16
"""So far causes of causes are followed."""
CountedCause = tuple[int, int, str, str]
"""Of one reason: how severe it is, at how many places, of which object, and the reason."""

_WORKLOADS = (
    "daemonsets.apps",
    "deployments.apps",
    "pods",
    "replicasets.apps",
    "statefulsets.apps",
)
_LACKING = re.compile(r'\b([a-z]+(?:\.[a-z0-9.-]+)?) "([^"]+)" not found')
_ACCOUNT = re.compile(r"error looking up service account ([^/ ]+)/([^: ]+)")
_ENDING = re.compile(r"in namespace ([^ ]+) because it is being terminated")
_NO_KIND = re.compile(
    r"no matches for kind|the server doesn't have a resource type|ensure CRDs are"
)
_WEBHOOK = re.compile(r"failed calling webhook .*?https://[^./]+\.([^./]+)\.svc", re.DOTALL)
_UNANSWERED = re.compile(r"failed calling webhook|see kubectl get apiservices")
_AWAITED = re.compile(r"^Waiting: for ([a-z][^ :]*/[^ :]+)")
_UNBOUND = re.compile(r"unbound immediate PersistentVolumeClaims")
_CONSEQUENCES = (_LACKING, _ACCOUNT, _ENDING, _NO_KIND, _UNANSWERED, _AWAITED, _UNBOUND)


def rank_of(obj: str, reason: str) -> tuple[bool, int]:
    """Where a reason stands among those as severe, whatever others there are.

    First what follows from no other object, as far as it says; then by the order of kinds.
    """
    return _is_consequence(reason), _order(obj)


def causes_first(items: Iterable[_T], said: Callable[[_T], CountedCause]) -> list[_T]:
    """The most severe first, then what is so at the most places; but no cause after what it does.

    Each item once, whatever follows from what.
    """
    listed = sorted(((said(item), item) for item in items), key=lambda it: _worst_first(it[0]))
    index = _Index([each for each, _ in listed])
    ordered: dict[int, None] = {}
    for at in range(len(listed)):
        index.put(at, ordered)
    return [listed[at][1] for at in ordered]


def said_in_form(form: Mapping[str, Any]) -> CountedCause:
    """The same of a reason as commands read it."""
    return form["severity"], form["count"], form["object"], form["reason"]


def _worst_first(said: CountedCause) -> tuple[int, int, int, str, str]:
    severity, count, obj, reason = said
    return severity, -count, _order(obj), obj, reason


class _Index:
    """Reasons by their objects, and by kind and namespace."""

    def __init__(self, listed: Sequence[CountedCause]) -> None:
        self._listed = listed
        self._by_object: dict[str, list[int]] = {}
        self._by_place: dict[tuple[str, str], list[int]] = {}
        for at, (_, _, obj, _) in enumerate(listed):
            self._by_object.setdefault(obj, []).append(at)
            self._by_place.setdefault((obj.partition("/")[0], _namespace(obj)), []).append(at)

    def put(self, at: int, ordered: dict[int, None], above: tuple[int, ...] = ()) -> None:
        """Add one, after those that it follows from; of a circle who is looked at first is last."""
        if at in ordered or at in above:
            return
        _, _, obj, reason = self._listed[at]
        if len(above) < DEPTH_MAX and _is_consequence(reason):
            for cause in self._causes(obj, reason):
                self.put(cause, ordered, (*above, at))
        ordered[at] = None

    def _causes(self, obj: str, reason: str) -> Iterator[int]:
        """Those of which a reason may be a consequence, as far as it says."""
        for named in dict.fromkeys(_named(obj, reason)):
            yield from self._by_object.get(named, ()) if named != obj else ()
        found = _WEBHOOK.search(reason)
        places = [(kind, found[1]) for kind in _WORKLOADS] if found else []
        if _UNBOUND.search(reason):
            places.append(("persistentvolumeclaims", _namespace(obj)))
        for place in places:
            yield from self._by_place.get(place, ())


def _named(obj: str, reason: str) -> Iterator[str]:
    """The objects that a reason names, in all forms in which they may be listed."""
    namespace, kind = _namespace(obj), obj.partition("/")[0]
    for resource, name in _LACKING.findall(reason):
        for plural in (resource, f"{resource}s"):
            yield f"{plural}/{name}"
            yield f"{plural}/{namespace}/{name}"
    for place, name in _ACCOUNT.findall(reason):
        yield f"serviceaccounts/{place}/{name}"
    for name in _ENDING.findall(reason):
        yield f"namespaces/{name}"
    yield from _AWAITED.findall(reason)
    if _NO_KIND.search(reason):
        yield f"customresourcedefinitions.{_CRD_GROUP}/{kind}"


def _namespace(obj: str) -> str:
    parts = obj.split("/")
    return parts[1] if len(parts) == 3 else ""


@lru_cache(maxsize=4096)
def _is_consequence(reason: str) -> bool:
    return any(pattern.search(reason) for pattern in _CONSEQUENCES)


@lru_cache(maxsize=1024)
def _order_of_kind(kind: str) -> int:
    resource, _, group = kind.partition(".")
    # Here, as a command that tells of nothing wrong shall not load it.
    from schemas.objects.objects import apply_order  # noqa: PLC0415

    return apply_order(group, resource)


def _order(obj: str) -> int:
    return _order_of_kind(obj.partition("/")[0]) if obj else -1
