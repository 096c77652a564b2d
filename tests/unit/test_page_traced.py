"""A trace at the page: down the tree, back up, what is missing, and what has not come yet."""

from leafcast.ui.traced import trace_form
from tests.doubles.page_facts import traced


def test_stages_come_down_the_tree_and_then_back_up_each_in_its_place():
    seen = trace_form(traced(waits=""))
    assert [(row["path"], row["stage"]) for row in seen["rows"]] == [
        ("/", "seen"),
        ("/", "signed"),
        ("/", "last passed on"),
        ("/region-1", "received"),
        ("/region-1", "applied"),
        ("/region-1", "reported delivered"),
        ("/", "counted delivered"),
    ]
    assert (seen["headline"], seen["tone"]) == ("To /region-1 and back: 2.00s", "good")
    applied = seen["rows"][4]
    assert (applied["at"], applied["took"]) == ("+1.90s", "1.38s")
    assert (applied["from"], applied["share"]) == (26.0, 69.0)
    assert seen["clocks"] == ["/region-1: clock 6.00s ahead, corrected"]


def test_a_gap_is_shown_as_one_and_so_is_what_has_not_come_yet():
    rows = {row["id"]: row for row in trace_form(traced(gap="no span: it is away"))["rows"]}
    assert (rows["/region-1 gap"]["tone"], rows["/region-1 gap"]["share"]) == ("away", None)
    seen = trace_form(traced() | {"nodes": [traced()["nodes"][1]]})
    assert seen["headline"] == "To /region-1 and back: 2.86s so far"
    waits = rows["/region-1 waits"]
    assert (waits["stage"], waits["took"]) == ("not yet healthy", "1.05s so far")


def test_of_what_nobody_noted_there_is_no_row_and_no_time():
    seen = trace_form(
        traced(spans=[], gap="", waits="") | {"nodes": [traced(spans=[])["nodes"][1]]}
    )
    assert [row["id"] for row in seen["rows"]] == ["/region-1 waits"]
    assert seen["headline"] == "To /region-1 and back: 0ms so far"
