"""The first stage at which a copy stops is told, in one order, with since when and what to do."""

from dataclasses import replace

import pytest

from leafcast.explain.answers import (
    child_on_the_way,
    copy_said,
    form_of,
    node_on_the_way,
    samples_said,
    words_said,
)
from leafcast.explain.explanation import explained
from leafcast.explain.facts import CopyFacts, CopySaid, Explanation, NodeOnTheWay
from leafcast.show.explanations import exit_code, explanation_lines
from leafcast.show.faults import FaultSample, faults
from leafcast.show.stages import LEADS, stage_of
from leafcast.show.stages import CopyStage as Stage
from relay.core.destination.copies_here import PruneWait

NOW_MS = 1_800_000_000_000
EDGE = "/region-2/site-3"
WEB = "deployments.apps/shop/web"
ROOT, REGION, SITE = (NodeOnTheWay(path, generation=7) for path in ("/", "/region-2", EDGE))
GOOD = CopySaid(wanted=True, claimed=True, known=True, present=True, state="synced")
FINE = CopyFacts(
    NOW_MS,
    EDGE,
    "epl/shop",
    nodes=(ROOT, REGION, SITE),
    state="synced",
    health="healthy",
    see="leafcast status epl/shop --destinations",
)
OF_WEB = replace(FINE, object=WEB, copy=replace(GOOD, health="healthy"))


def says(reason, severity=0, obj=""):
    return FaultSample("epl/shop", severity, obj, reason, 1, EDGE)


def nodes(*, region=None, site=None):
    return (ROOT, replace(REGION, **(region or {})), replace(SITE, **(site or {})))


def going(**said):
    """An object that nothing wants, at the edge."""
    copy = CopySaid(known=True, present=True, **said)
    return replace(OF_WEB, meant=False, copy=copy)


SCENES = [
    (FINE, Stage.AS_MEANT, "applied, and healthy"),
    (OF_WEB, Stage.AS_MEANT, "applied, and healthy"),
    (
        replace(FINE, decided=(Explanation(Stage.NOT_SELECTED, "label"),), meant=False),
        Stage.NOT_SELECTED,
        "label",
    ),
    (replace(FINE, decided=(Explanation(Stage.GATE, "wave"),)), Stage.GATE, "wave"),
    (
        replace(FINE, nodes=nodes(region={"state": "unreachable", "since_ms": NOW_MS - 9})),
        Stage.MAILBOX,
        "/region-2 is unreachable; what it said last: synced, healthy",
    ),
    (replace(FINE, nodes=nodes(site={"state": "never joined"})), Stage.MAILBOX, "never joined"),
    (replace(FINE, nodes=nodes(site={"refusal": "no"})), Stage.MAILBOX, "does not answer: no"),
    (
        replace(FINE, nodes=nodes(site={"refusal": f"{EDGE} cannot be reached"})),
        Stage.MAILBOX,
        f"{EDGE} cannot be reached",
    ),
    (
        replace(FINE, nodes=nodes(site={"refusal": "late", "refusal_reason": "Expired"})),
        Stage.CLOCK,
        "two minutes ahead",
    ),
    (
        replace(FINE, nodes=nodes(site={"generation": 6, "lag": 2})),
        Stage.MAILBOX,
        "has not read the newest version: 2 messages not read",
    ),
    (replace(FINE, nodes=nodes(site={"generation": None})), Stage.MAILBOX, "has not read"),
    (replace(FINE, nodes=nodes(region={"stale": True})), Stage.STALE, "/region-2 was shown"),
    (replace(FINE, nodes=nodes(site={"orphaned": True})), Stage.HELD, "a newer version"),
    (replace(FINE, nodes=nodes(site={"head_only": True})), Stage.WITHHELD, "its content"),
    (
        replace(FINE, nodes=nodes(site={"outdated": True, "generation": 6, "lag": 4})),
        Stage.WITHHELD,
        "a newer version",
    ),
    (
        replace(
            FINE,
            nodes=nodes(
                region={"missing": ("41fc" * 16,), "missing_count": 1, "refused_ms": 40_000},
                site={"generation": 6},
            ),
        ),
        Stage.CONTENT,
        "blob 41fc41fc41fc... is not at /region-2",
    ),
    (
        replace(FINE, nodes=nodes(site={"unclaimed": "another edge"})),
        Stage.SPACE,
        "another edge",
    ),
    (replace(FINE, state="maintenance"), Stage.HELD, "in maintenance"),
    (replace(FINE, state="waiting"), Stage.WINDOW, "by its own clock"),
    (
        replace(FINE, state="waiting", nodes=nodes(site={"clock_ms": 7_200_000})),
        Stage.CLOCK,
        "120m ahead of ours",
    ),
    (
        replace(FINE, state="frozen", samples=(says("Frozen: no property zone", obj=WEB),)),
        Stage.FROZEN,
        "no property zone",
    ),
    (
        replace(FINE, state="failing", samples=(says("Overridden: edgeplacement/b says", 1, WEB),)),
        Stage.OVERRIDDEN,
        "edgeplacement/b",
    ),
    (
        replace(FINE, state="pending", samples=(says("Waiting: for namespaces/shop", 3, WEB),)),
        Stage.EARLIER,
        "for namespaces/shop",
    ),
    (
        replace(FINE, state="failing", samples=(says("Forbidden: exceeded quota: q", 0, WEB),)),
        Stage.REFUSED,
        "exceeded quota",
    ),
    (replace(FINE, health="degraded", samples=(says("x", 2, WEB),)), Stage.NOT_HEALTHY, "x"),
    (replace(FINE, state="pending"), Stage.UNDER_WAY, "pending"),
    (
        replace(OF_WEB, copy=replace(GOOD, state="failing", reason="Invalid: spec.replicas")),
        Stage.REFUSED,
        "Invalid: spec.replicas",
    ),
    (
        replace(OF_WEB, copy=replace(GOOD, health="degraded", reason="CrashLoopBackOff")),
        Stage.NOT_HEALTHY,
        "CrashLoopBackOff",
    ),
    (
        replace(OF_WEB, copy=replace(GOOD, health="progressing")),
        Stage.NOT_HEALTHY,
        "progressing",
    ),
    (replace(OF_WEB, copy=replace(GOOD, state="pending")), Stage.UNDER_WAY, "about to apply"),
    (
        # What is wrong with others of the placement is not this one's.
        replace(OF_WEB, state="failing", samples=(says("Invalid: x", 0, "pods/shop/y"),)),
        Stage.AS_MEANT,
        "applied, and healthy",
    ),
    *(
        # The edge judges the copy by the version that it has; a newer one is not taken.
        (replace(OF_WEB, state=state, health=health, samples=tuple(samples)), stage, said)
        for state, health, samples, stage, said in (
            ("frozen", "unknown", [says("Frozen: no z", obj="a/b/c")], Stage.FROZEN, "b/a/c: no z"),
            ("frozen", "unknown", [], Stage.FROZEN, "says frozen, and not why"),
            ("waiting", "unknown", [], Stage.WINDOW, "by its own clock"),
            ("waiting", "unknown", [says("Waiting: for b", 3)], Stage.EARLIER, "for b"),
            ("pending", "unknown", [says("Sealed: no key", 3)], Stage.CONTENT, "no key"),
            ("pending", "unknown", [], Stage.UNDER_WAY, "says pending, and not why"),
            ("withheld", "unknown", [], Stage.WITHHELD, "says withheld, and not why"),
            ("failing", "unknown", [says("Withheld: head only")], Stage.STALE, "head only"),
            ("", "", [], Stage.UNKNOWN, "does not say"),
        )
    ),
    (
        # Another object is pending: all of the content is taken.
        replace(OF_WEB, state="pending", health="progressing"),
        Stage.AS_MEANT,
        "applied, and healthy",
    ),
    (
        replace(OF_WEB, copy=None, samples=(says("Invalid: x", 0, WEB),)),
        Stage.REFUSED,
        "Invalid: x",
    ),
    (replace(OF_WEB, copy=None), Stage.UNKNOWN, "does not say what became of it"),
    (replace(OF_WEB, copy=CopySaid(known=True)), Stage.UNDER_WAY, "has not taken it up yet"),
    (replace(OF_WEB, copy=replace(GOOD, state="")), Stage.UNKNOWN, "does not say"),
    (replace(OF_WEB, copy=replace(GOOD, state="failing")), Stage.REFUSED, "failing, and not why"),
    (replace(FINE, state="", health=""), Stage.UNKNOWN, "does not say"),
    (going(kept=True), Stage.SURPLUS, "kept"),
    (going(error="Forbidden: no"), Stage.LEAVING, "refuses its removal: Forbidden: no"),
    (going(waits="pods/shop/x to be gone"), Stage.LEAVING, "pods/shop/x"),
    (going(stays_as=PruneWait.UNSETTLED.value), Stage.LEAVING, "settled"),
    (going(stays_as=PruneWait.NEEDED.value), Stage.LEAVING, "others that waited"),
    (going(stays_as=PruneWait.UNKNOWN.value), Stage.LEAVING, "not all there"),
    (going(), Stage.LEAVING, "being removed"),
    (going(wanted=True, claimers=("edgeplacement/b",)), Stage.LEAVING, "edgeplacement/b"),
    (
        replace(OF_WEB, meant=False, copy=CopySaid(), lies_there=True),
        Stage.SURPLUS,
        "somebody else put it there",
    ),
    (
        replace(OF_WEB, meant=False, copy=CopySaid(), lies_there=False),
        Stage.AS_MEANT,
        "not meant to be there",
    ),
]


@pytest.mark.parametrize(("facts", "stage", "said"), SCENES)
def test_the_first_stage_that_blocks_is_told(facts, stage, said):
    found = explained(facts)

    assert found.stage is stage, found
    assert said in found.said
    assert found.blocks == (stage is not Stage.AS_MEANT)
    assert bool(found.remedy) or stage in (
        Stage.AS_MEANT,
        Stage.NOT_SELECTED,
        Stage.GATE,
    )


def test_every_stage_is_told_of_or_decided_at_the_centre():
    at_the_centre = {Stage.APPROVAL}

    told = {stage for _, stage, _ in SCENES} | at_the_centre
    assert told == set(Stage)
    assert LEADS.keys() == set(Stage)


def test_what_stops_above_is_told_before_what_stops_below():
    both = nodes(
        region={"missing": ("41fc",), "missing_count": 1}, site={"state": "x", "since_ms": 1}
    )
    assert explained(replace(FINE, nodes=both)).at == "/region-2"


@pytest.mark.parametrize("width", [None, 200, 40])
def test_what_to_do_stands_behind_what_is_so_where_there_is_room(width):
    lost = replace(FINE, nodes=nodes(region={"missing": ("41fc",), "missing_count": 1}))
    found = explained(replace(lost, nodes=(ROOT, replace(lost.nodes[1], refused_ms=40_000))))
    form = {
        "explanations": [
            {
                "placement": "edgeplacement/shop",
                "stage": found.stage.value,
                "said": found.said,
                "remedy": found.remedy,
                "sinceMs": found.since_ms,
            }
        ]
    }
    said = "  ✗ waits for content: blob 41fc... is not at /region-2 since 40s"
    remedy = "do: it is asked for again and again; if it stays, apply the placement again"

    lines = list(explanation_lines(form, NOW_MS, width))
    assert lines == ([f"{said}   {remedy}"] if width != 40 else [said, f"    {remedy}"])


def test_a_window_that_opens_at_a_time_is_waited_for_since_another():
    one = {"placement": "a", "stage": "window", "said": "the window opens at 02:00", "remedy": ""}
    (line,) = explanation_lines(
        {"explanations": [{**one, "sinceMs": NOW_MS - 14_000}]}, NOW_MS, None
    )
    assert line.endswith("the window opens at 02:00; it has waited for 14s")


@pytest.mark.parametrize(
    ("stages", "code"),
    [
        (["as-meant"], 0),
        (["as-meant", "refused"], 1),
        (["refused", "unknown"], 1),
        (["as-meant", "unknown"], 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst_answer(stages, code):
    assert exit_code({"explanations": [{"stage": stage} for stage in stages]}) == code


def test_placements_that_were_not_looked_at_are_counted():
    one = {"placement": "a", "stage": "unknown", "said": "x", "remedy": "", "sinceMs": None}
    lines = list(explanation_lines({"explanations": [one], "more": 2}, NOW_MS, None))
    assert lines[0] == "  ? it cannot be told: x"
    assert lines[1].startswith("2 placements more were not looked at")


@pytest.mark.parametrize(
    ("reason", "severity", "stage"),
    [
        ("Withheld: x", 1, Stage.STALE),
        ("ContentRefused: x", 0, Stage.CONTENT),
        ("Overridden: x", 1, Stage.OVERRIDDEN),
        ("Frozen: x", 0, Stage.FROZEN),
        ("Waiting: for x", 3, Stage.EARLIER),
        ("NoZone: x", 1, Stage.WINDOW),
        ("Forbidden: x", 0, Stage.REFUSED),
        ("ImagePullBackOff: x", 2, Stage.NOT_HEALTHY),
        ("0 of 2 replicas ready", 3, Stage.NOT_HEALTHY),
    ],
)
def test_what_an_edge_reports_has_its_stage(reason, severity, stage):
    [group] = faults([says(reason, severity, WEB)])
    assert stage_of(group.kind, group.severity) is stage


JUNK = [None, 7, "x", [], {"a": 1}, -1, True, "x" * 10_000, float("nan")]
WORDS = ("here", "generation", "known", "states", "health", "exceptions")
INSIDE = ("nowMs", "missing", "missingCount", "refusedMs", "unclaimed", "child", "copy", "stale")


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: str(junk)[:8])
def test_what_a_node_answers_otherwise_than_it_should_counts_as_not_said(junk):
    whole = dict.fromkeys(WORDS, junk)
    inside = {"here": dict.fromkeys(INSIDE, junk), "exceptions": [junk, {"reason": junk}]}
    deep = {"here": {"copy": dict.fromkeys(("state", "claimers", "wanted"), junk), "child": {}}}
    for answer in (whole, inside, deep, {"states": {1: junk}}):
        form = form_of(answer)
        node = node_on_the_way("/r1", form, child_on_the_way("/r1", form), NOW_MS)
        facts = replace(
            FINE,
            nodes=(ROOT, node),
            state=words_said(form)[0],
            samples=tuple(samples_said("epl/shop", EDGE, form)),
            copy=copy_said(form),
        )
        found = explained(facts)
        assert len(found.said) < 2_000
        assert found.stage in Stage
