"""What is wrong in placements, grouped by cause: a stage, an element and a category.

However many errors there are, a cause is told once: at how many destinations, at how many nodes of
each tier, and one example. The words are few, and fixed: see docs/operations/why.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leafcast.show.faults import SAMPLES_MAX, FaultGroup, FaultSample, faults, samples_of
from leafcast.show.holds import milliseconds
from leafcast.show.layout import Group, Table, Text, View
from leafcast.show.stages import CopyStage, stage_of, stage_of_hold
from schemas.reports.states import AT_WORK
from schemas.values.wording import namespace_first, some_of

Form = Mapping[str, Any]

PLACE, NODE, PLACEMENT = "place", "node", "placement"
"""Elements that are no kind of object."""
PLACEMENTS_NAMED_MAX = 3
CAUSES_MAX = 50
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
        _put_silent(form, found)
    tiers = Counter(_depth(path) for path in {it["path"] for form in forms for it in _nodes(form)})
    ranked = sorted(found.items(), key=lambda it: (it[1].severity, -_destinations(it[1]), it[0]))
    # A report that names as many as it may lacks others.
    exact = all(
        form.get("complete", True) and len(form["exceptions"]) < SAMPLES_MAX for form in forms
    )
    return [_form(key, cause, tiers, exact=exact) for key, cause in ranked[:CAUSES_MAX]]


def causes_view(form: Form) -> View:
    """A row a cause, then what to do about each."""
    listed = form["causes"]
    if not listed:
        return Text("nothing is wrong", style="green")
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
    for hold in form.get("held", ()):
        key = stage_of_hold(hold["reason"]), PLACEMENT, str(hold["reason"])
        sample = FaultSample(form["name"], 1, "", str(hold.get("message", "")), 1, "")
        cause = _cause(found, key, 1, sample, str(hold.get("remedy", "")))
        cause.since_ms = cause.since_ms or milliseconds(str(hold.get("since") or ""))
        if hold.get("destinations") is not None:
            cause.counts[form["name"]] = hold["destinations"]


def _put_silent(form: Form, found: dict[_Key, _Cause]) -> None:
    for silent in form.get("unreachable", ()):
        path, word = str(silent["path"]), str(silent["state"])
        sample = FaultSample(form["name"], 0, "", f"{path} is {word}", 1, path)
        cause = _cause(found, (CopyStage.MAILBOX, NODE, word), 0, sample, "leafcast doctor")
        cause.counts[form["name"]] += silent["destinations"]
        cause.nodes.add(path)
        cause.since_ms = min(filter(None, (cause.since_ms, silent["since_ms"])), default=None)


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
