"""Whether values of Secrets may come up from edges, and into rows of collectors.

Whoever may create a placement or a collector would read all Secrets else, those of other edges and
of the space itself. Who runs the space allows it, by an annotation of its Namespace
`leafcast-system`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from controllers.core.workloads.selection import Rules
from schemas.objects.annotations import MAY_COME_UP
from schemas.objects.objects import ObjectKey, texts_of
from schemas.reports.collectors import Program
from schemas.reports.upsync import SECRETS
from schemas.values.faults import Fault
from schemas.values.groups import SYSTEM_NAMESPACE
from schemas.values.wire import replace as changed

_SYSTEM = ObjectKey("", "namespaces", "", SYSTEM_NAMESPACE)
_REMEDY = (
    f"leave them out; or let who runs the space annotate its Namespace {SYSTEM_NAMESPACE} with "
    f"{MAY_COME_UP}: {SECRETS[1]}"
)


class SecretKinds:
    """What is allowed in one space now: nothing, unless it is said."""

    def __init__(self) -> None:
        self.may_come_up = False

    def put(self, key: ObjectKey, obj: Mapping[str, Any] | None) -> bool:
        """Take the present state of an object, None of one that is gone; whether it says news."""
        if key != _SYSTEM:
            return False
        said = texts_of(obj or {}, "annotations").get(MAY_COME_UP)
        words = str(said or "").replace(",", " ").split()
        before, self.may_come_up = self.may_come_up, SECRETS[1] in words
        return before != self.may_come_up

    def limited(self, rules: Rules) -> Rules:
        """The rules of a placement, with what is allowed."""
        return replace(rules, brings_up_secrets=self.may_come_up)

    def allowed(self, program: Program) -> Program:
        """A collector, with what is allowed; the merge of statuses reads no Secret."""
        if not self.may_come_up or program.is_aggregate:
            return program
        return changed(program, reads_secrets=True)


def secret_faults(rules: Rules) -> Iterator[Fault]:
    """That Secrets do not come up which a placement names."""
    for at, clause in enumerate(rules.upsync):
        if clause.admits_kind(*SECRETS) and not rules.brings_up_secrets:
            yield Fault(f"spec.upsync[{at}].resources", "Secrets do not come up here", _REMEDY)
