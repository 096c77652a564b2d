"""What a wait waits for, and the line that shows how far it is."""

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from leafcast.ask.wait_goals import Goal, Reached, check_share, without
from leafcast.cli.commands.wait import wait
from leafcast.cli.waiting import Line
from leafcast.show.wait_states import live_line, met_text


def row(path, state="pending"):
    return {"path": path, "state": state}


@pytest.mark.parametrize(
    ("share", "reached", "whole", "met"),
    [
        ("", 10, 10, True),
        ("", 9, 10, False),
        ("95%", 1900, 2000, True),
        ("95%", 1899, 2000, False),
        # Rounded up: two of three are no 95 %.
        ("95%", 2, 3, False),
        ("50%", 1, 2, True),
        ("100%", 2, 2, True),
        ("0.1%", 1, 2000, False),
        ("0.1%", 2, 2000, True),
        # Of none nobody can say it.
        ("", 0, 0, False),
        ("1%", 0, 0, False),
    ],
)
def test_a_share_of_the_destinations_is_enough(share, reached, whole, met):
    assert Goal(share).is_met(Reached(whole, reached, 0)) == met


def test_who_cannot_be_reached_is_left_out_if_that_is_asked_for():
    found = Reached(10, 8, 2)
    assert not Goal().is_met(found)
    assert Goal(except_unreachable=True).is_met(found)
    assert not Goal(except_unreachable=True).is_met(Reached(10, 7, 2))
    assert not Goal(except_unreachable=True).is_met(Reached(2, 0, 2))
    assert Goal("50%", except_unreachable=True).is_met(Reached(10, 4, 2))


def test_who_is_excepted_is_left_out_and_nobody_else():
    found = Reached(10, 8, 0)
    unmet = [row("/r/s1"), row("/r/s2", "failing")]
    for excepted, met in (
        (["/r/s1", "/r/s2"], True),
        (["/r/s1"], False),
        (["/r/s1", "/r/s2", "/r/s3"], True),
        ([], False),
    ):
        assert Goal().is_met(without(found, unmet, excepted, [])) == met
    assert without(found, unmet, ["/r/s1", "/r/s2", "/r/s3"], []) == Reached(7, 7, 0)


def test_who_lacks_the_newest_content_counts_for_nothing_and_is_taken_for_none_of_the_excepted():
    held = Reached(4, 4, 0, lacking=1)
    assert not Goal().is_met(held)
    assert Goal("75%").is_met(held)
    assert not Goal().may_be_met(held, 1)
    assert not Goal().is_met(without(held, [], ["/r/s1"], []))
    assert Goal("66%").is_met(without(held, [], ["/r/s1"], []))


def test_who_is_excepted_and_never_joined_was_not_counted_anyway():
    unmet = [row("/r/s1"), row("/r/s9", "never joined")]
    assert without(Reached(3, 2, 0), unmet, ["/r/s1", "/r/s9"], []) == Reached(2, 2, 0)


def test_those_behind_a_relay_that_does_not_answer_count_as_unreachable():
    found = Reached(10, 6, 4)
    assert without(found, [], ["/r/s1", "/r/s2"], ["/r"]) == Reached(8, 6, 2)
    goal = Goal(except_unreachable=True)
    assert goal.is_met(without(found, [], ["/r/s1", "/r/s2"], ["/r"]))


@given(
    st.sampled_from(["", "1%", "50%", "95%", "100%"]),
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=12),
)
def test_it_is_met_just_if_enough_of_those_that_count_are_as_they_should(share, silent, places):
    """Each place: whether it is so there, whether it is silent, whether it is excepted."""
    listed = [
        (f"/r/s{at}", ok and not away, away, out) for at, (ok, away, out) in enumerate(places)
    ]
    whole = Reached(len(listed), sum(it[1] for it in listed), sum(it[2] for it in listed))
    excepted = [path for path, _, _, out in listed if out]
    unmet = [
        row(path, "unreachable" if away else "pending") for path, ok, away, _ in listed if not ok
    ]
    goal = Goal(share, silent)
    left = [it for it in listed if not it[3] and not (silent and it[2])]
    good = sum(it[1] for it in left)
    expected = bool(left) and good >= goal.needed(len(left))
    assert goal.is_met(without(whole, unmet, excepted, [])) == expected
    if expected:
        assert goal.may_be_met(whole, len(excepted))


@pytest.mark.parametrize("wrong", ["0%", "101%", "abc", "95", "-1%", "", "%", "1e2%", "95 %"])
def test_what_is_no_share_to_wait_for_is_refused_with_the_remedy(wrong):
    with pytest.raises(ValueError, match="more than 0% and at most 100%, such as 95%"):
        check_share(wrong)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shop", "--for", "synced", "--at-least", "0%"], "more than 0% and at most 100%"),
        (["shop", "--for", "synced", "--at-least", "101%"], "more than 0% and at most 100%"),
        (["shop", "--for", "synced", "--at-least", "abc"], '"abc" is no share of destinations'),
        (["shop", "--for", "ready", "--at-least", "95%"], "spec.readiness.maxUnavailable"),
        (["shop", "--for", "rolled-out", "--except-unreachable"], "--for synced or healthy"),
        (["shop", "--all", "--for", "synced"], "name placements or say --all, not both"),
        (["--for", "synced"], "name a placement, or say --all"),
        (["--all", "--for", "delete"], "name the placements"),
        (["epl/shop", "--for", "delete", "--for", "synced"], "wait for it alone"),
        (["shop", "--for", "synced", "--except", "a=b=c"], "a=b=c"),
        (["shop"], "--for"),
    ],
)
def test_wrong_usage_is_refused_before_anyone_is_asked(words, told):
    said = CliRunner().invoke(wait, words)
    assert said.exit_code == 2
    assert told in said.output


def state(name="shop", **said):
    return {
        "name": name,
        "destinations": 2000,
        "never_joined": 0,
        "states": {"synced": 1200, "pending": 796, "unreachable": 4},
        "health": {"healthy": 900},
        "complete": True,
        "exceptions": [
            {"severity": 3, "object": "", "reason": "Slow", "count": 9, "path": "/emea/a"},
            {
                "severity": 0,
                "object": "pods/shop/p",
                "reason": "Bad",
                "count": 1,
                "path": "/emea/b",
            },
        ],
        **said,
    }


def test_a_line_at_a_terminal_says_how_far_it_is_and_what_is_worst():
    assert live_line([state()], [], 12, 100) == (
        "12s shop: 1200 of 2000 synced, 900 healthy, 4 unreachable · shop/pods/p: Bad"
    )
    others = [state("a"), state("b"), state("c")]
    assert live_line(others, ["b"], 0, 120).endswith("Bad · 1 more to wait for")
    assert live_line([state()], ["shop"], 12, 80) == ""


@given(st.integers(1, 200), st.integers(0, 10**6))
def test_the_line_never_wraps(width, seconds):
    assert len(live_line([state(), state("other")], [], seconds, width)) <= width


def test_the_line_is_drawn_at_a_terminal_and_in_a_pipe_there_is_none(monkeypatch, capsys):
    for is_seen in (False, True):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_seen=is_seen: is_seen)
        line = Line(0.0)
        line.show([state()], set(), 12.0)
        line.clear()
        out, err = capsys.readouterr()
        assert out == ""
        assert ("12s shop: 1200 of 2000 synced" in err) == is_seen
        assert bool(err) == is_seen
    assert err.endswith("\r\x1b[K")


def test_whom_nobody_waited_for_is_told():
    assert met_text(state(states={"synced": 2000}, health={"healthy": 2000}), ["healthy"]) == (
        "edgeplacement.edge.kubestellar.io/shop condition met"
    )
    said = met_text(state(excepted=["/r/s1"], never_joined=3), ["synced"])
    assert said.endswith(
        "condition met (1200 of 2000 destinations, 4 unreachable, 1 excepted, 3 never joined)"
    )
