"""A trace is told on one clock, as far as it is known; what is not known is a gap."""

from __future__ import annotations

import pytest

from leafcast.ask.decode import BadAnswer
from leafcast.explain.waterfall import NodeTrace, next_child, read_trace, waterfall
from leafcast.show.waterfalls import took_text, waterfall_lines
from schemas.records.asks import AskFault

BEGAN = 1_000_000
CENTRE = {"judged": 0, "seen": 2, "signed": 5, "issued": 9, "first passed on": 10}
CENTRE |= {"last passed on": 12, "counted delivered": 90, "counted working": 900}
REGION = {"received": 20, "content complete": 30, "first passed on": 31, "last passed on": 33}
REGION |= {"reported delivered": 85, "reported working": 880}
SITE = {"received": 40, "content complete": 50, "planned": 51, "first applied": 60}
SITE |= {"applied": 70, "healthy": 800, "reported delivered": 75, "reported working": 820}
HOPS = [5]


def said(stages, ahead=0, hops=(), *, is_edge=False, **more):
    form = {
        "nowMs": BEGAN + 5000,
        "beganMs": 0,
        "forgotten": 0,
        "generation": 7,
        "held": 7,
        "isEdge": is_edge,
        "stages": {word: BEGAN + at + ahead for word, at in stages.items()},
        "hops": [BEGAN + at for at in hops],
        "generations": [7],
        "late": [],
        "lateCount": 0,
        "lastChild": "",
        "children": [],
    }
    return read_trace({**form, **more})


def way(**site):
    return [
        NodeTrace("/", said(CENTRE)),
        NodeTrace("/r1", said(REGION), 3, 5),
        NodeTrace("/r1/s1", said(SITE, hops=HOPS, is_edge=True, **site), 0, 4),
    ]


def spans(form):
    return {it["stage"]: (it["startMs"] - BEGAN, it["endMs"] - BEGAN) for it in form["spans"]}


def test_each_span_begins_where_another_ended_also_at_the_node_above_or_below():
    centre, region, site = map(spans, waterfall(way(), 7))
    assert centre["seen"] == (0, 2)
    assert region["received"] == (12, 20)
    assert region["last passed on"] == (31, 33)
    assert site["received"] == (33, 40)
    assert site["healthy"] == (75, 800)
    assert region["reported delivered"] == (75, 85)
    assert region["reported working"] == (820, 880)
    assert centre["counted delivered"] == (85, 90)
    assert centre["counted working"] == (880, 900)


def test_a_clock_is_corrected_only_by_more_than_is_unsure():
    nodes = way()
    nodes[2] = NodeTrace("/r1/s1", said(SITE, ahead=6000, is_edge=True, hops=HOPS), 6000, 4)
    forms = waterfall(nodes, 7)
    assert [form["correctedMs"] for form in forms] == [0, 0, 6000]
    assert spans(forms[2])["received"] == (33, 40)
    assert waterfall(way(), 7)[1]["clockMs"] == 3


GAPS = {
    "older program": ({"fault": AskFault("UnknownVerb", "", "")}, "older than traces"),
    "away": ({"fault": AskFault("Unreachable", "/r1/s1 is away", "")}, "/r1/s1 is away"),
    "older content": ({"said": said({}, held=6)}, "it has generation 6"),
    "nothing held": ({"said": said({}, held=0)}, "it has no generation of it"),
    "began anew": ({"said": said({}, beganMs=BEGAN + 500)}, "it began anew 4s ago"),
    "newer ones": ({"said": said({}, forgotten=3)}, "keeps 512 newer changes"),
    "nothing noted": ({"said": said({})}, "it noted nothing"),
}


@pytest.mark.parametrize("why", GAPS)
def test_a_gap_says_why(why):
    found, text = GAPS[why]
    forms = waterfall([*way()[:2], NodeTrace("/r1/s1", **found)], 7)
    assert text in forms[2]["gap"]
    assert forms[2]["gap"].startswith("no span: ")
    assert not forms[2]["spans"]


def test_what_has_not_come_yet_is_told_apart_from_what_is_lost():
    half = {word: at for word, at in SITE.items() if at <= 60}
    waiting = NodeTrace("/r1/s1", said(half, is_edge=True))
    assert [waterfall([*way()[:2], waiting], 7)[2][it] for it in ("gap", "waits")] == [
        "",
        "applied",
    ]
    rest = {word: at for word, at in SITE.items() if at > 60}
    lost = NodeTrace("/r1/s1", said(rest, is_edge=True, beganMs=BEGAN + 65))
    form = waterfall([*way()[:2], lost], 7)[2]
    assert form["gap"] == (
        "no span of received, content complete, planned, first applied: it began anew 4s ago"
    )
    assert not form["waits"]
    newer = NodeTrace("/r1/s1", said(half, is_edge=True, held=8))
    form = waterfall([*way()[:2], newer], 7)[2]
    assert form["gap"] == "generation 8 took its place before it was applied"


def test_what_is_meant_for_nobody_waits_for_nothing():
    issued = {word: CENTRE[word] for word in ("judged", "seen", "signed", "issued")}
    [centre] = waterfall([NodeTrace("/", said(issued))], 7)
    assert (centre["gap"], centre["waits"]) == (
        "it is meant for no destination, so nobody gets it",
        "",
    )
    for meant in (said(issued, children=["r1"]), said(issued, held=6, children=[])):
        [centre] = waterfall([NodeTrace("/", meant)], 7)
        assert centre["waits"] == "first passed on"


def test_the_slowest_child_lacks_the_change_or_was_counted_last():
    assert next_child(said({}, late=["s2", "s3"], lastChild="s1")) == ("s2", "late")
    assert next_child(said({}, lastChild="s1", children=["s0"])) == ("s1", "last")
    assert next_child(said({}, children=["s0"])) == ("s0", "any")
    assert next_child(said({})) == ("", "")


def test_a_newer_node_may_note_more_and_what_is_no_answer_is_refused():
    assert not said({"taken home": 3}).stages
    for junk in (None, [], {}, {"nowMs": -1}, {"stages": {"received": "soon"}}):
        with pytest.raises(BadAnswer):
            read_trace(junk)


@pytest.mark.parametrize("width", [80, 120])
def test_the_waterfall_fits_its_screen_and_bars_stand_where_things_were(width):
    nodes = [*way()[:2], NodeTrace("/r1/s1", said({}, held=6), 4000, 3)]
    form = {
        "placement": "edgeplacement/shop",
        "generation": 7,
        "held": 7,
        "traceId": "0" * 32,
        "path": "/r1/s1",
        "chosen": "late",
        "late": 2,
        "nowMs": BEGAN + 5000,
    }
    lines = list(waterfall_lines({**form, "nodes": waterfall(nodes, 7)}, width))
    assert max(map(len, lines)) <= width
    last = next(line for line in lines if "counted working" in line)
    assert last.endswith("█")
    assert len(last) > width - 4
    at = lines.index("/r1/s1   clock 4.00s ahead, corrected")
    assert lines[at + 1 : at + 3] == ["  no span: it has generation 6", "  not yet received"]
    # What was told back up comes last, as it was.
    told = [line.split()[0] for line in lines[at + 3 :]]
    assert told == ["/r1", "reported", "reported", "/", "counted", "counted"]
    assert took_text(90_000) == "90s"
