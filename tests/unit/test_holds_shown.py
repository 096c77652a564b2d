"""What holds placements is told in lines: what, since when, at how many, and the next command."""

from leafcast.show.holds import LINES_MAX, going_out, held_lines, hold_lines, hold_text
from leafcast.show.tree_tables import placement_view, placements_view

NOW_MS = 1_800_000_310_000
HOLD = {
    "reason": "RolloutPaused",
    "since": "2027-01-15T08:00:00Z",
    "destinations": 3,
    "message": 'rollout "shop": paused by a person',
    "remedy": "leafcast rollout resume shop",
}
FORM = {
    "name": "shop",
    "selected": 2,
    "destinations": 4,
    "never_joined": 0,
    "states": {"synced": 4},
    "health": {"healthy": 4},
    "complete": True,
    "blocking": [],
    "exceptions": [],
    "unreachable": [],
    "children": [],
    "problem": "",
    "lack": "",
    "held": [HOLD],
    "keptBack": 3,
}


def test_a_hold_says_since_when_and_how_many_lack_the_content():
    assert hold_text(HOLD, NOW_MS) == (
        'RolloutPaused for 5m10s, 3 destinations: rollout "shop": paused by a person'
    )
    unknown = {**HOLD, "destinations": None}
    assert hold_text(unknown) == 'RolloutPaused: rollout "shop": paused by a person'
    assert list(hold_lines([HOLD], NOW_MS))[1].strip() == "next: leafcast rollout resume shop"


def test_holds_of_many_placements_are_told_in_part():
    many = [{**HOLD, "placement": f"p{at}"} for at in range(LINES_MAX + 5)]
    lines = list(held_lines(many, NOW_MS))
    assert lines[0].startswith("epl/p0 held: RolloutPaused")
    assert lines[-1] == "and 5 more: leafcast status"


def test_one_placement_shows_its_holds_and_the_next_command():
    shown = "\n".join(placement_view(FORM, NOW_MS).lines())
    assert "held: RolloutPaused for 5m10s, 3 destinations" in shown
    assert "next: leafcast rollout resume shop" in shown
    assert "still to get" not in shown


def test_what_goes_out_by_waves_says_how_many_are_still_to_get_it():
    going = {**FORM, "held": []}
    assert going_out(going) == "3 still to get the newest content"
    assert "3 still to get the newest content" in "\n".join(placement_view(going, NOW_MS).lines())
    assert going_out({**going, "keptBack": 0}) == ""


def test_in_the_list_of_placements_a_hold_is_the_worst():
    first, second = {**FORM, "name": "a", "held": []}, {**FORM, "name": "b"}
    lines = placements_view([first, second], NOW_MS).lines()
    assert lines[1].startswith("b ")
    assert "RolloutPaused, 3 destinations" in lines[1]
