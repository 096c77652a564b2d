"""What a person sees of a Rollout: a line, its waves, what it waits for, what to do."""

from __future__ import annotations

from typing import Any

from leafcast.show.layout import View
from leafcast.show.rollout_tables import history_view, rollout_view, rollouts_view

CANARY = {
    "name": "canary",
    "gate": "ring=canary",
    "phase": "Done",
    "members": 12,
    "healthy": 12,
    "failing": 0,
    "waiting": 0,
    "unreachable": 0,
    "definition": {"name": "canary", "soak": "30m"},
}
TENTH = {
    "name": "tenth",
    "gate": "10%",
    "phase": "Soaking",
    "soaked": 2520,
    "members": 99871,
    "healthy": 99610,
    "failing": 11,
    "waiting": 140,
    "unreachable": 110,
    "definition": {"name": "tenth", "percent": 10, "soak": "1h"},
}
REST = {"name": "rest", "gate": "100%", "definition": {"approval": "before", "percent": 100}}


def rollout(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "shop"}, "status": status}


def lines(view: View) -> list[str]:
    return view.lines(80)


def test_what_was_aborted_is_not_waited_for() -> None:
    waves = [CANARY, {**TENTH, "phase": "AwaitingApproval", "step": 1}, REST]
    said = lines(rollout_view(rollout(revision=7, phase="Aborted", wave=2, waves=waves), 0))
    assert [line.split()[1] for line in said[2:5]] == ["done", "aborted", "not"]


def test_a_rollout_under_way_shows_each_wave_and_the_command_that_it_needs() -> None:
    said = lines(
        rollout_view(
            rollout(
                revision=7,
                overRevision=6,
                phase="Soaking",
                wave=2,
                waves=[CANARY, TENTH, REST],
                next="leafcast rollout approve shop rest",
            ),
            0,
        )
    )
    assert said[0] == "shop  revision 7 over 6  wave 2 of 3, tenth: soaking 42m of 1h"
    titles = "WAVE STATE MEMBERS HEALTHY FAILING WAITING UNREACHABLE GATE"
    assert said[1].split() == titles.split()
    assert said[2].split()[:2] == ["canary", "done"]
    assert "99,871" in said[3]
    assert said[4].startswith("rest    needs approval  ")
    # Counts end where their titles do.
    assert said[3].index("99,871") + 6 == said[1].index("MEMBERS") + 7
    assert max(map(len, said)) <= 80
    assert said[5] == "Next: leafcast rollout approve shop rest"


def test_whom_a_wave_admits_is_cut_at_a_terminal_and_whole_in_a_pipe() -> None:
    long = {"name": "canary", "gate": "region in (north, south)"}
    view = rollout_view(rollout(revision=2, wave=1, waves=[{**TENTH, **long}, REST]), 0)
    at_terminal = lines(view)
    assert at_terminal[2].startswith("canary  soaking")
    assert "…" in at_terminal[2]
    assert view.lines(None)[2].endswith("region in (north, south)")


def test_all_rollouts_are_listed_with_what_each_waits_for() -> None:
    one = rollout(revision=2, phase="Paused", waveName="canary", message="paused by a person")
    one["spec"] = {"placement": {"name": "web"}}
    other = rollout(revision=7, phase="Complete", waveName="rest")
    other["spec"] = {"placement": {"kind": "BindingPolicy", "name": "x"}}
    said = lines(rollouts_view([one, other], 0))
    assert said[0].split()[:6] == ["NAME", "PLACEMENT", "REVISION", "STATE", "WAVE", "AGE"]
    assert said[1].split()[:5] == ["shop", "epl/web", "2", "paused", "canary"]
    assert said[1].endswith("paused by a person")
    assert said[2].split()[:5] == ["shop", "bp/x", "7", "complete", "-"]
    assert "apply one" in lines(rollouts_view([], 0))[0]


def test_what_is_rejected_is_told_with_its_objects() -> None:
    rejected = {"reason": "Aborted", "revision": 3, "objects": 6, "names": ["shop/services/a"] * 6}
    said = rollout_view(rollout(revision=3, phase="Aborted", rejected=rejected), 0).lines(None)
    told = "Rejected: revision 3 was aborted, and the centre still says it: shop/services/a"
    assert said[1].startswith(told)
    assert said[1].endswith(" and 2 more")


def test_counts_that_may_be_more_say_so_and_failures_after_the_end_are_late() -> None:
    said = lines(
        rollout_view(
            rollout(revision=2, phase="Complete", waves=[CANARY], complete=False, late=3), 0
        )
    )
    assert said[0] == "shop  revision 2  complete"
    assert "Not all have answered yet: counts are at least." in said
    assert "Late: 3 failing since the rollout ended." in said


def test_what_is_kept_back_is_named() -> None:
    said = lines(
        rollout_view(
            rollout(
                revision=2,
                phase="Paused",
                waves=[],
                pins=[{"path": "/emea/s-1", "revision": 1}],
                freezes=[{"path": "/apac", "layers": []}],
                message="wave canary failed: 2 of 12 fail",
            ),
            0,
        )
    )
    assert said[1:] == [
        "Pinned: /emea/s-1 to revision 1",
        "Frozen: /apac",
        "wave canary failed: 2 of 12 fail",
    ]


def test_a_rollout_that_the_centre_has_not_seen_says_that_it_waits() -> None:
    assert lines(rollout_view(rollout(), 0)) == ["shop  waits for the centre"]


def test_the_history_begins_with_the_newest_revision() -> None:
    history = [
        {"number": 1, "manifest": "a", "size": 1, "time": "2026-11-01T00:00:00Z", "cause": "begin"},
        {"number": 2, "manifest": "b", "size": 1, "user": "ann", "outcome": ""},
    ]
    said = lines(history_view(rollout(revision=2, phase="Soaking", history=history), 0))
    assert said[1].split() == ["2", "<unknown>", "ann", "-", "under", "way"]
    assert said[2].split()[:1] == ["1"]
    assert "begin" in said[2]


def test_a_revision_that_failed_is_not_said_to_be_under_way() -> None:
    history = [{"number": 1, "outcome": "Complete"}, {"number": 2}]
    for phase, wave_phase, outcome in (
        ("Paused", "Failed", "failed"),
        ("Paused", "Progressing", "paused"),
        ("AwaitingApproval", "AwaitingApproval", "needs approval"),
        ("Progressing", "Progressing", "under way"),
    ):
        waves = [{**CANARY, "phase": wave_phase}]
        shown = rollout(revision=2, phase=phase, wave=1, waves=waves, history=history)
        newest = lines(history_view(shown, 0))[1]
        assert newest.rstrip().endswith(outcome), newest


def test_the_name_of_a_wave_is_whole_in_a_narrow_terminal() -> None:
    name = "canary-stores-of-the-north"
    wave = {**REST, "name": name, "phase": "AwaitingApproval"}
    view = rollout_view(rollout(revision=2, wave=1, phase="AwaitingApproval", waves=[wave]), 0)
    said = lines(view)
    assert max(map(len, said)) <= 80
    assert "".join(line.split(" ")[0] for line in said[2:]).startswith(name)
    assert "needs approval" in said[2]
