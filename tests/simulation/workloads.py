"""The workload description space of a simulated centre: objects and placements, as people write."""

from __future__ import annotations

from relay.space_port import Object
from schemas.records.placements import bare_name, kind_of, placement_key
from schemas.reports.collectors import CombinedField, Expression, Program
from schemas.values.groups import CONTROL_GROUP, GROUP
from tests.doubles.memory_space import MemorySpace
from tests.simulation.collectors import PROGRAMS
from tests.simulation.inventory import USER, said_of
from tests.simulation.model import WORKLOADS, Placed
from tests.simulation.space import now

VERSIONS = {GROUP: "v2alpha1", CONTROL_GROUP: "v1alpha1"}


class WorkloadsSpace(MemorySpace):
    """A space under the name by which the model knows it."""

    async def identity(self) -> str:
        return WORKLOADS

    def put_collectors(self) -> None:
        """Write the collectors that every placement names."""
        for program in PROGRAMS:
            self._say("StatusCollector", CONTROL_GROUP, program.name, _collector(program))

    def put_object(self, obj: Object) -> None:
        now(self.apply(obj, USER))

    def put_placement(self, name: str, placed: Placed) -> None:
        """Write a placement of just the objects that the model has."""
        kind = kind_of(name)
        clause: Object = {
            "apiGroup": "",
            "resources": ["configmaps"],
            "namespaces": ["default"],
            "objectNames": [key.name for key, _ in placed.arm.contents],
            "statusCollectors": [program.name for program in PROGRAMS],
        }
        spec: Object = {
            kind.selectors: [said_of(each.selector) for each in placed.alternatives],
            "downsync": [clause] if placed.arm.contents else [],
        }
        self._say(kind.kind, kind.group, bare_name(name), spec)

    def remove_placement(self, name: str) -> None:
        now(self.delete(placement_key(name)))

    def _say(self, kind: str, group: str, name: str, spec: Object) -> None:
        said: Object = {
            "apiVersion": f"{group}/{VERSIONS[group]}",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        now(self.apply(said, USER))


def _collector(program: Program) -> Object:
    said: Object = {
        "groupBy": [_column(it) for it in program.group_by],
        "combinedFields": [_field(it) for it in program.combined],
        "select": [_column(it) for it in program.select],
        "limit": program.limit,
        "scope": program.scope,
    }
    return {**said, "filter": program.filter} if program.filter else said


def _column(expression: Expression) -> Object:
    return {"name": expression.name, "def": expression.definition}


def _field(field: CombinedField) -> Object:
    said: Object = {"name": field.name, "type": field.type}
    if field.subject:
        said["subject"] = field.subject
    return {**said, "top": field.top} if field.type == "TOP" else said
