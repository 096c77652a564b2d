"""What is wrong in placements, grouped by cause: a stage, an element and a category.

However many errors there are, a cause is told once: at how many destinations, at how many nodes of
each tier, and one example. The words are few, and fixed: see docs/operations/why.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from leafcast.show.faults import SAMPLES_MAX, FaultGroup, FaultSample, faults, samples_of
from leafcast.show.holds import milliseconds
from leafcast.show.layout import Group, Table, Text, View
from leafcast.show.stages import CopyStage, stage_of, stage_of_hold
from leafcast.show.tree_tables import centre_troubles
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    INVALID,
    KIND_UNREADABLE,
    OBJECTS_REFUSED,
    OVERRIDDEN,
    WAITING,
)
from schemas.reports.states import AT_WORK
from schemas.values.wording import many, namespace_first, some_of

Form = Mapping[str, Any]

PLACE, NODE, PLACEMENT = "place", "node", "placement"
"""Elements that are no kind of object."""
PLACEMENTS_NAMED_MAX = 3
CAUSES_MAX = 50
LACK, UNREACHABLE = "Lack", "unreachable"
_OF_PROBLEMS = frozenset({INVALID, OBJECTS_REFUSED})
_OF_LACKS = frozenset({KIND_UNREADABLE, CUSTOMIZATION_FROZEN})
"""Holds that say the same as the problem, or the lack, of a placement, and more of it."""
_OF_REPORTS = frozenset({CUSTOMIZATION_FROZEN, OVERRIDDEN, WAITING})
"""Holds that are made of what destinations report, who say it of each object."""
_Key = tuple[CopyStage, str, str]


@dataclass(slots=True)
class _Cause:
    """One cause, as it is put together."""

    severity: int
    example: FaultSample
    remedy: str
    # The destinations of each placement that has it.
    counts: Counter[str] = field(default_factory=Counter)
    nodes: set[str] = field(default_factory=set)
    # Those of these that are destinations themselves.
    edges: set[str] = field(default_factory=set)
    since_ms: int | None = None


def causes(forms: Sequence[Form]) -> list[dict[str, Any]]:
    """The causes of all that is wrong in these placements, the worst first, as JSON.

    Of each form the `nodes`, or at least the `children`, say where: each tier counts for itself.
    """
    found: dict[_Key, _Cause] = {}
    for form in forms:
        _put_faults(form, found)
        _put_holds(form, found)
        _put_troubles(form, found)
        _put_silent(form, found)
    tiers = Counter(_depth(path) for path in {it["path"] for form in forms for it in _nodes(form)})
    ranked = sorted(found.items(), key=lambda it: (it[1].severity, -_destinations(it[1]), it[0]))
    # A report that names as many as it may lacks others.
    exact = all(
        form.get("complete", True) and len(form["exceptions"]) < SAMPLES_MAX for form in forms
    )
    return [_form(key, cause, tiers, exact=exact) for key, cause in ranked[:CAUSES_MAX]]


def causes_form(
    forms: Sequence[Form],
    silent: Sequence[str] = (),
    lost_spaces: Mapping[str, str] = MappingProxyType({}),
    backup_trouble: str = "",
) -> dict[str, Any]:
    """The causes, as JSON, with who was not heard, and what is wrong at the centre itself.

    Nodes that were asked and did not answer are `silent`.
    """
    unanswered = {path for form in forms for path in form.get("blocking", ())}.union(silent)
    return {
        "causes": causes(forms),
        "complete": not silent and all(form.get("complete", True) for form in forms),
        "unanswered": sorted(unanswered),
        "lostSpaces": dict(lost_spaces),
        "backupTrouble": backup_trouble,
    }


def causes_view(form: Form) -> View:
    """A row a cause, then what to do about each; then who was not heard."""
    more: list[View] = [*centre_troubles(form["lostSpaces"], form["backupTrouble"])]
    if not form["complete"]:
        more.append(Text(_unheard(form), style="yellow", overflow="fold"))
    if form["causes"]:
        return Group(_listed(form["causes"]), *([Text(), *more] if more else []))
    return Group(*more) if more else Text("nothing is wrong", style="green")


def _unheard(form: Form) -> str:
    """That something may be wrong of which nobody has said anything."""
    paths = form["unanswered"]
    verb = "has" if paths[1:] == [] else "have"
    named = some_of(paths, PLACEMENTS_NAMED_MAX)
    said = f"{many(len(paths), 'node')} {verb} not answered: {named}"
    said = said if paths else "not all nodes have answered"
    wrong = form["causes"] or form["lostSpaces"] or form["backupTrouble"]
    return said if wrong else f"nothing is wrong that was heard of; {said}"


def _listed(listed: Sequence[Form]) -> View:
    table = Table()
    for name in ("STAGE", "ELEMENT", "CATEGORY"):
        table.add_column(name, no_wrap=True)
    table.add_column("AT", justify="right", no_wrap=True)
    depths = sorted({tier["tier"] for each in listed for tier in each["tiers"]})
    for depth in depths:
        table.add_column(f"TIER {depth}", justify="right", no_wrap=True)
    table.add_column("FOR EXAMPLE", overflow="fold")
    for each in listed:
        by_tier = {tier["tier"]: f"{tier['nodes']}/{tier['of']}" for tier in each["tiers"]}
        count = each["destinations"]
        table.add_row(
            each["stage"],
            each["element"],
            each["category"],
            "-" if count is None else f"{'' if each['exact'] else '>='}{count}",
            *(by_tier.get(depth, "-") for depth in depths),
            _example(each),
        )
    parts: list[View] = [table]
    for each in listed:
        if each["remedy"]:
            where = some_of(each["placements"], PLACEMENTS_NAMED_MAX)
            parts += [Text(), Text(f"{each['cause']} ({where})")]
            parts.append(Text(f"  do: {each['remedy']}", overflow="fold"))
    return Group(*parts)


def _example(each: Form) -> str:
    one = each["example"]
    said = ": ".join(filter(None, (namespace_first(one["object"]), one["reason"])))
    return " ".join(filter(None, (one["path"], said)))


def _put_faults(form: Form, found: dict[_Key, _Cause]) -> None:
    for group in faults(samples_of(form)):
        cause = _cause(found, _key(group), group.severity, group.first, group.remedy(_see(form)))
        cause.counts[form["name"]] = max(cause.counts[form["name"]], group.count)
    for node in _nodes(form):
        for group in faults(samples_of({**node, "name": form["name"]})):
            known = found.get(_key(group))
            if known is None:
                continue
            known.nodes.add(str(node["path"]))
            if node.get("role") == "edge":
                known.edges.add(str(node["path"]))


def _put_holds(form: Form, found: dict[_Key, _Cause]) -> None:
    reported = {_key(group)[0] for group in faults(samples_of(form))}
    for hold in form.get("held", ()):
        stage = stage_of_hold(hold["reason"])
        # What the centre itself freezes no destination reports: the lack says so.
        is_frozen_here = hold["reason"] == CUSTOMIZATION_FROZEN and bool(form.get("lack"))
        if hold["reason"] in _OF_REPORTS and stage in reported and not is_frozen_here:
            continue
        key = stage, PLACEMENT, str(hold["reason"])
        sample = FaultSample(form["name"], 1, "", str(hold.get("message", "")), 1, "")
        cause = _cause(found, key, 1, sample, str(hold.get("remedy", "")))
        cause.since_ms = cause.since_ms or milliseconds(str(hold.get("since") or ""))
        if hold.get("destinations") is not None:
            cause.counts[form["name"]] = hold["destinations"]


def _put_troubles(form: Form, found: dict[_Key, _Cause]) -> None:
    """Why a placement cannot go out as it is, and what it lacks, unless a hold says so."""
    name, held = form["name"], {hold["reason"] for hold in form.get("held", ())}
    if (problem := str(form.get("problem") or "")) and not held & _OF_PROBLEMS:
        sample = FaultSample(name, 0, "", problem, 1, "")
        key = CopyStage.HELD, PLACEMENT, INVALID
        _cause(found, key, 0, sample, f"correct it and apply it; {_see(form)}")
    if (lack := str(form.get("lack") or "")) and not held & _OF_LACKS:
        sample = FaultSample(name, 1, "", lack, 1, "")
        stage = CopyStage.SPACE if form.get("lacksKind") else CopyStage.NOT_SELECTED
        remedy = f"apply what is missing, or correct it; {_see(form)}"
        _cause(found, (stage, PLACEMENT, LACK), 1, sample, remedy)


def _put_silent(form: Form, found: dict[_Key, _Cause]) -> None:
    """Who is away; destinations behind nodes that others know of count where nobody is named."""
    for silent in form.get("unreachable", ()):
        path, word = str(silent["path"]), str(silent["state"])
        sample = FaultSample(form["name"], 0, "", f"{path} is {word}", 1, path)
        cause = _cause(found, (CopyStage.MAILBOX, NODE, word), 0, sample, "leafcast doctor")
        cause.counts[form["name"]] += silent["destinations"]
        cause.nodes.add(path)
        cause.since_ms = min(filter(None, (cause.since_ms, silent["since_ms"])), default=None)
    named = sum(silent["destinations"] for silent in form.get("unreachable", ()))
    more = form.get("states", {}).get(UNREACHABLE, 0) - named
    if more > 0:
        said = f"{many(more, 'destination')} cannot be reached"
        sample = FaultSample(form["name"], 0, "", said, more, "")
        cause = _cause(found, (CopyStage.MAILBOX, NODE, UNREACHABLE), 0, sample, "leafcast doctor")
        cause.counts[form["name"]] += more


def _cause(
    found: dict[_Key, _Cause], key: _Key, severity: int, example: FaultSample, remedy: str
) -> _Cause:
    cause = found.setdefault(key, _Cause(severity, example, remedy))
    cause.severity = min(cause.severity, severity)
    cause.counts.setdefault(example.placement, 0)
    return cause


def _key(group: FaultGroup) -> _Key:
    """The stage, what it befalls, and what it is."""
    kind = group.first.object.partition("/")[0]
    element = PLACE if group.kind.of_place else kind or PLACEMENT
    return stage_of(group.kind, group.severity), element, group.kind.name


def _form(key: _Key, cause: _Cause, tiers: Mapping[int, int], *, exact: bool) -> dict[str, Any]:
    stage, element, category = key
    counts = Counter(_depth(path) for path in cause.nodes)
    example = cause.example
    return {
        "cause": f"{stage}/{element}/{category}",
        "stage": stage.value,
        "element": element,
        "category": category,
        "atWork": cause.severity >= AT_WORK,
        "destinations": _destinations(cause) or None,
        "exact": exact,
        "tiers": [
            {"tier": depth, "nodes": counts[depth], "of": tiers[depth]}
            for depth in sorted(counts)
            if depth
        ],
        "placements": sorted(cause.counts),
        "sinceMs": cause.since_ms,
        "example": {
            "placement": example.placement,
            "object": example.object,
            "reason": example.reason,
            "path": example.path,
        },
        "remedy": cause.remedy,
    }


def _destinations(cause: _Cause) -> int:
    """At how many, in the placement that has most of it: several may be at the same ones."""
    return max(len(cause.edges), *cause.counts.values(), 0)


def _nodes(form: Form) -> Iterator[Form]:
    yield from form.get("nodes") or form.get("children") or ()


def _depth(path: str) -> int:
    return len([name for name in path.split("/") if name])


def _see(form: Form) -> str:
    return f"leafcast status {form['name']} --destinations"
