"""Why a placement does not select an object, or a destination: by the predicates that decide it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from controllers.core.workloads.selection import CLUSTER, Clause, ClauseField
from leafcast.explain.facts import Explanation
from leafcast.show.stages import CopyStage
from relay.core.gates import Unmet
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import IN, LabelSelector, Requirement
from schemas.records.placements import kind_of, short_title, title
from schemas.records.records import OVER_LOCATION, Profile
from schemas.values.wording import some_of

VALUES_NAMED_MAX = 4
UNMET_NAMED_MAX = 3
_LATER: tuple[str, ...] = get_args(ClauseField)
"""The later the field at which a clause stops, the more of it is met."""

NOT_NEAR = _LATER.index("namespaces")
"""Who misses a clause there or before has little to do with it."""
ClauseMiss = tuple[Clause, ClauseField | Literal[""]]
_Labels = Mapping[str, str]


def nearest(misses: Iterable[ClauseMiss]) -> ClauseMiss | None:
    """The clause that is met the farthest; None if there is none."""
    listed = [miss for miss in misses if miss[1]]
    return max(listed, key=lambda miss: _rank(miss[1]), default=None)


def how_near(misses: Iterable[ClauseMiss]) -> int:
    """How much of the nearest clause is met, to compare placements by."""
    found = nearest(misses)
    return _rank(found[1]) if found is not None else -1


def object_unmet(
    placement: str,
    key: ObjectKey,
    labels: _Labels,
    namespace: _Labels | None,
    misses: Iterable[ClauseMiss],
) -> Explanation:
    """Why the `downsync` of a placement does not select an object that is there."""
    found = nearest(misses)
    see = f"leafcast describe {short_title(placement)}"
    if found is None:
        said = f"{title(placement)} has no downsync clause"
        return Explanation(CopyStage.NOT_SELECTED, said, f"say what it selects; {see}")
    clause, field = found
    said, remedy = _clause_said(clause, field, key, labels, namespace)
    remedy = f"{remedy}, or change the placement: {see}" if remedy else f"change one of them: {see}"
    return Explanation(CopyStage.NOT_SELECTED, said, remedy)


def place_unmet(placement: str, profile: Profile, found: Iterable[Unmet]) -> Explanation:
    """Why a placement does not mean a destination: which requirement, and which value."""
    listed = list(found)
    see = f"leafcast describe {short_title(placement)}"
    if not listed:
        said = f"{title(placement)} has no {kind_of(placement).selectors}"
        return Explanation(CopyStage.NOT_SELECTED, said, f"say where it goes; {see}")
    said = some_of([_unmet(each) for each in listed], UNMET_NAMED_MAX, "; ")
    first = next((it for it in listed if it.requirement and it.requirement.operator == IN), None)
    command = _label_command(first) if first is not None else ""
    if not command and all(each.judged is None for each in listed):
        command = f"leafcast get locations; leafcast describe synctarget {profile.source.name}"
        return Explanation(CopyStage.NOT_SELECTED, said, command)
    remedy = (
        f"{command}, or change the placement: {see}" if command else f"change one of them: {see}"
    )
    return Explanation(CopyStage.NOT_SELECTED, said, remedy)


def _unmet(each: Unmet) -> str:
    over = "location" if each.alternative.over == OVER_LOCATION else "synctarget"
    if each.judged is None or each.requirement is None:
        return "it belongs to no Location" if over == "location" else "it is of another space"
    return _labels_said(over, each.judged.source.name, each.judged.labels, each.requirement)


def _labels_said(what: str, name: str, labels: _Labels, requirement: Requirement) -> str:
    """`location.labels.env is "dev" (stores), the placement wants "prod"`."""
    said, wanted = requirement.refusal(labels)
    return f"{what}.labels.{requirement.key} {said} ({name}), the placement {wanted}"


def _label_command(each: Unmet) -> str:
    """The command that gives the first value that is wanted."""
    assert each.judged is not None
    assert each.requirement is not None
    kind = "location" if each.alternative.over == OVER_LOCATION else "synctarget"
    key = each.requirement.key
    force = " --overwrite" if key in each.judged.labels else ""
    value = each.requirement.values[0]
    return f"leafcast label {kind} {each.judged.source.name} {key}={value}{force}"


def _clause_said(
    clause: Clause, field: str, key: ObjectKey, labels: _Labels, namespace: _Labels | None
) -> tuple[str, str]:
    match field:
        case "apiGroup":
            group = f'"{clause.group}"' if clause.group else "the core group"
            return f'its group is "{key.group}", the placement wants {group}', ""
        case "resources":
            wanted = _some(clause.resources)
            return f"it is one of {key.resource}, the placement wants {wanted}", ""
        case "scope":
            where = "in no namespace" if clause.scope == CLUSTER else "in a namespace"
            return f"the placement wants what is {where}", ""
        case "namespaces":
            wanted = _some(clause.namespaces)
            return f'its namespace is "{key.namespace}", the placement wants {wanted}', ""
        case "objectNames" if clause.names:
            return f'its name is "{key.name}", the placement wants {_some(clause.names)}', ""
        case "objectNames":
            return "Helm keeps a release in it: only who names it sends it", ""
        case "namespaceSelectors":
            if namespace is None:
                where = f'namespace "{key.namespace}" is not there'
                return f"{where}, and the placement selects by its labels", ""
            return _selectors_said(
                "namespace", key.namespace, clause.namespace_selectors, namespace
            )
        case _:
            return _selectors_said(key.resource, key.name, clause.selectors, labels, key.namespace)


def _selectors_said(
    kind: str, name: str, selectors: Iterable[LabelSelector], labels: _Labels, inside: str = ""
) -> tuple[str, str]:
    """What the first of these selectors misses, and the command that gives it."""
    requirements = [it for it in (each.unmet(labels) for each in selectors) if it is not None]
    if not requirements:
        return "its labels are not those that the placement wants", ""
    first = requirements[0]
    said, wanted = first.refusal(labels)
    what = "namespace.labels" if kind == "namespace" else "metadata.labels"
    told = f"{what}.{first.key} {said}, the placement {wanted}"
    if first.operator != IN:
        return told, ""
    where = f" -n {inside}" if inside else ""
    force = " --overwrite" if first.key in labels else ""
    return told, f"leafcast label {kind} {name}{where} {first.key}={first.values[0]}{force}"


def _some(values: Iterable[str]) -> str:
    return some_of([f'"{value}"' for value in sorted(values)], VALUES_NAMED_MAX)


def _rank(field: str) -> int:
    return _LATER.index(field) if field in _LATER else -1
