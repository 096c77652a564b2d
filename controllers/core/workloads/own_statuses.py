"""Objects that are read at the centre alone say in their own status what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from controllers.core.conditions import STANDING, merged, ready, reconciling, stalled
from controllers.core.workloads.collectors import COLLECTORS
from controllers.core.workloads.customizers import CUSTOMIZERS
from controllers.core.workloads.health_rules import HEALTH_RULES
from controllers.core.workloads.missing_references import UNKNOWN_KIND
from controllers.core.workloads.renature import DENATUREDS
from controllers.core.workloads.space import Workloads
from controllers.core.workloads.transforms import TRANSFORMS
from schemas.api.shared import Condition
from schemas.objects.objects import Object, ObjectKey, kind_name
from schemas.objects.source_objects import generation_of
from schemas.values.wording import some_of

ERRORS_MAX = 20
NAMED_MAX = 3
_KINDS = (COLLECTORS, TRANSFORMS, CUSTOMIZERS, DENATUREDS, HEALTH_RULES)

_COUNTS = {HEALTH_RULES: "it is valid, and counts for all objects of its kind"}


def concerned(workloads: Workloads, changed: Iterable[ObjectKey]) -> frozenset[ObjectKey]:
    """Whose own status may say something else now that these changed."""
    found = {key for key in changed if key.group_resource in _KINDS}
    # Transforms name each other, and one rule may count in the place of another.
    for kind in {TRANSFORMS, HEALTH_RULES} & {key.group_resource for key in found}:
        found |= {ObjectKey(*kind, "", name) for name in workloads.read[kind].objects}
    return frozenset(found)


def own_status(
    workloads: Workloads, key: ObjectKey, now_ms: int
) -> tuple[Object, dict[str, Any]] | None:
    """An object and what its status is to say; None if it is not there."""
    obj, errors, warnings = _known(workloads, key)
    if obj is None:
        return None
    status: dict[str, Any] = {"observedGeneration": generation_of(obj)}
    status |= {"errors": list(errors[:ERRORS_MAX])} if errors else {}
    status |= {"warnings": list(warnings)} if warnings else {}
    before = (obj.get("status") or {}).get("conditions")
    counts = _COUNTS.get(key.group_resource, "it is valid, and counts where it is named")
    said = _standing(errors, [counts, *warnings[:NAMED_MAX]], _unserved(workloads, key))
    status["conditions"] = merged(before, said, now_ms, STANDING)
    return obj, status


def of_served_kinds(workloads: Workloads) -> frozenset[ObjectKey]:
    """Whose own status may say something else when other kinds are served."""
    transforms = (ObjectKey(*TRANSFORMS, "", name) for name in workloads.transforms.objects)
    denatureds = (ObjectKey(*DENATUREDS, "", name) for name in workloads.renatured.objects)
    return frozenset((*transforms, *denatureds))


def _standing(errors: tuple[str, ...], good: Sequence[str], unserved: str) -> tuple[Condition, ...]:
    """It is ready as soon as it can be read; what cannot be read a person has to mend."""
    if errors:
        return stalled("Invalid", some_of(errors, NAMED_MAX, "; "))
    if unserved:
        return reconciling(UNKNOWN_KIND, unserved)
    return ready("Valid", "; ".join(good))


def _unserved(workloads: Workloads, key: ObjectKey) -> str:
    """That the kind of what a Denatured holds is not served; "" if it is, or nobody knows."""
    inner = workloads.renatured.inner(key.name) if key.group_resource == DENATUREDS else None
    served = workloads.missing.served
    if inner is None or served is None or inner.group_resource in served:
        return ""
    what = f'the server doesn\'t have a resource type "{kind_name(*inner.group_resource)}"'
    return f"{what}; correct spec.template, or apply its definition"


def _known(
    workloads: Workloads, key: ObjectKey
) -> tuple[Object | None, tuple[str, ...], tuple[str, ...]]:
    """An object, what is wrong with it, and what else is to be known of it."""
    if key.group_resource == CUSTOMIZERS:
        customizers = workloads.resolver.customizers
        return customizers.objects.get((key.namespace, key.name)), customizers.errors(key), ()
    if key.group_resource == DENATUREDS:
        denatureds = workloads.renatured
        return denatureds.objects.get(key.name), denatureds.invalid.get(key.name, ()), ()
    listed = workloads.read[key.group_resource]
    if (obj := listed.objects.get(key.name)) is None:
        return None, (), ()
    warnings = listed.warnings(key.name, workloads.missing.served)
    return obj, listed.invalid.get(key.name, ()), warnings
