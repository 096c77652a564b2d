"""What users of the field know and Leafcast does not do yet, by name, so that it can say so.

One table of each sort: once something is there, its entry is taken out, and that is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_GROUPS = ("edge.kubestellar.io", "control.kubestellar.io")

_KINDS: Mapping[str, str] = {
    "CombinedStatus": "an EdgePlacement's status has the counts",
    "StatusCollector": "an EdgePlacement's status has the counts",
}
"""Kinds of these groups, and what there is instead."""

_CLAUSE_FIELDS = ("statusCollectors", "wantMultiWECReportedState")


def kind_not_supported(group: str, kind: str) -> str:
    """That a kind does nothing yet, and what there is instead; "" of all others."""
    if group not in _GROUPS or kind not in _KINDS:
        return ""
    return f"{kind} is not supported yet; {_KINDS[kind]}"


def fields_not_supported(spec: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a placement's spec, as written, that say something and do nothing yet."""
    clauses = spec.get("downsync")
    for at, clause in enumerate(clauses if isinstance(clauses, (list, tuple)) else ()):
        if isinstance(clause, Mapping):
            for field in _CLAUSE_FIELDS:
                if clause.get(field):
                    yield f"spec.downsync[{at}].{field}"
