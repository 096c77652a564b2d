"""By which HealthRules the objects of a space count, as they are seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relay.core.destination.claims import DesiredObject
from relay.syncer.observed import ObservedState, look_at
from relay.syncer.ownership import ManagedFields
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HealthProgram

RuleOf = Callable[[DesiredObject], HealthProgram | None]


def no_rule(_wanted: DesiredObject) -> HealthProgram | None:
    """What is said where there are no HealthRules."""
    return None


class RuledObjects:
    """The HealthRule of each object that has one."""

    def __init__(self) -> None:
        self._rules: dict[ObjectKey, HealthProgram] = {}

    def set(self, wanted: Iterable[DesiredObject], rule_of: RuleOf) -> list[ObjectKey]:
        """Take the rules of what is wanted now; the objects that have another one than before."""
        fresh = {want.key: rule for want in wanted if (rule := rule_of(want)) is not None}
        before, self._rules = self._rules, fresh
        return [key for key in {**before, **fresh} if before.get(key) != fresh.get(key)]

    def look_at(
        self, key: ObjectKey, obj: Mapping[str, Any], hold: ManagedFields | None = None
    ) -> ObservedState:
        """Take in an object; raises CodecError if it is no JSON value."""
        return look_at(obj, hold, self._rules.get(key))
