"""What becomes of a Rollout is told once, and in words."""

from leafcast.daemon.rollout_events import events_between

BEGUN = {"revision": 2, "waveName": "canary", "waves": [{}], "phase": "Progressing"}


def told(before, **after):
    return [(event.kind, event.reason) for event in events_between(before, {**before, **after})]


def test_revisions_waves_and_ends_are_told():
    assert told({}, **BEGUN) == [("Normal", "RevisionBegan")]
    assert told(BEGUN, waveName="rest") == [("Normal", "WaveBegan")]
    assert told(BEGUN, phase="Paused", message="x") == [("Warning", "RolloutPaused")]
    assert told(BEGUN, phase="Complete") == [("Normal", "RolledOut")]
    assert told(BEGUN, phase="Soaking") == []
    assert told(BEGUN) == []


def test_commands_and_late_failures_are_told_once():
    request = {"id": "1", "action": "abort", "outcome": "Refused", "message": "no"}
    assert told(BEGUN, request=request) == [("Warning", "RequestRefused")]
    assert told({**BEGUN, "request": request}) == []
    assert told({**BEGUN, "phase": "Complete"}, late=2) == [("Warning", "LateFailures")]
