"""The workload description space of a simulated centre: objects and placements, as people write."""

from __future__ import annotations

from collections.abc import Callable

from controllers.core.rollout.rollouts import rollout_key
from relay.space_port import Object
from schemas.objects.annotations import DEPENDS_ON, MOVE, ROLLOUT_REQUEST
from schemas.objects.objects import ObjectKey
from schemas.records.placements import BINDING_POLICIES, bare_name, kind_of, placement_key
from schemas.records.placing import MAKE_BEFORE_BREAK
from schemas.records.records import OVER_LOCATION, OVER_SYNC_TARGET
from schemas.reports.collectors import CombinedField, Expression, Program
from schemas.values.groups import CONTROL_GROUP, DENATURED_GROUP, GROUP, ROLLOUTS
from tests.doubles.memory_space import MemorySpace
from tests.simulation.collectors import PROGRAMS
from tests.simulation.inventory import USER, said_of
from tests.simulation.model import WORKLOADS, Placed
from tests.simulation.space import now

VERSIONS = {GROUP: "v2alpha1", CONTROL_GROUP: "v1alpha1", DENATURED_GROUP: "v1alpha1"}


class WorkloadsSpace(MemorySpace):
    """A space under the name by which the model knows it."""

    on_rollout: Callable[[str, Object], None]
    """Hears which status a Rollout gets."""

    async def identity(self) -> str:
        return WORKLOADS

    def put_collectors(self) -> None:
        """Write the collectors that every placement names."""
        for program in PROGRAMS:
            self._say("StatusCollector", CONTROL_GROUP, program.name, _collector(program))

    def put_object(self, obj: Object) -> int:
        """Write an object; at which revision it is now."""
        written: Object = now(self.apply(obj, USER))
        return int(written["metadata"]["resourceVersion"])

    def put_placement(self, name: str, placed: Placed) -> None:
        """Write a placement of just the objects that the model has."""
        kind = kind_of(name)
        over = OVER_SYNC_TARGET if kind is BINDING_POLICIES else OVER_LOCATION
        assert all(each.over == over for each in placed.alternatives), f"{name} cannot say that"
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
        asked = {DEPENDS_ON: ",".join(placed.after)} if placed.after else {}
        if placed.moves:
            asked[MOVE] = MAKE_BEFORE_BREAK
        self._say(kind.kind, kind.group, bare_name(name), spec, asked)

    def put_rollout(self, name: str, spec: Object, request: str = "") -> None:
        """Write a Rollout, perhaps with what a person asks of it."""
        asked = {ROLLOUT_REQUEST: request} if request else {}
        self._say("Rollout", DENATURED_GROUP, name, spec, asked)

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        if key.group_resource == ROLLOUTS:
            self.on_rollout(key.name, status)
        return await super().set_status(key, status)

    def lose_status(self, name: str) -> None:
        """A Rollout says nothing of how far it is any more."""
        now(super().set_status(rollout_key(name), {}))

    def remove_placement(self, name: str) -> None:
        now(self.delete(placement_key(name)))

    def _say(
        self, kind: str, group: str, name: str, spec: Object, asked: Object | None = None
    ) -> None:
        said: Object = {
            "apiVersion": f"{group}/{VERSIONS[group]}",
            "kind": kind,
            "metadata": {"name": name, "annotations": asked or {}},
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
