"""What becomes of a release is told by its cause: once, however many nodes it befalls."""

import asyncio
from contextlib import suppress

from leafcast.daemon.event_log import EventLog
from leafcast.daemon.release_events import CAUSES_MAX, ReleaseStory, follow_releases
from tests.unit.releases_world import upgraded_tree
from tests.unit.test_release_controller import NODES, fail_at_the_canary

BEGUN = {"phase": "Progressing", "waveName": "canary"}
UNSIGNED = "release: 0 of the 1 signatures that the publisher's root 1 asks for are there; sign it"


def refused(path, why=UNSIGNED):
    return f"{path}: refused: {why}"


def full(path, free):
    return refused(path, f"disk: {free} MB are free, and it needs 170 MB; make room at {path}")


class Told:
    """One release, and what is told of it as its status changes."""

    def __init__(self, before=None):
        self._story, self._status = ReleaseStory(), before

    def events(self, **status):
        before, self._status = self._status, {**(self._status or {}), **status}
        return [*self._story.between(before, self._status)]

    def reasons(self, **status):
        return [(event.kind, event.reason) for event in self.events(**status)]


def test_waves_and_ends_are_told_once():
    told = Told({})
    assert told.reasons(phase="Waiting", message="9.0.0 goes first") == [("Normal", "ReleaseWaits")]
    assert told.reasons(phase="Progressing", message="the centre goes first") == [
        ("Normal", "ReleaseBegan")
    ]
    assert told.reasons(waveName="canary") == [("Normal", "WaveBegan")]
    assert told.reasons(phase="Soaking") == []
    assert told.reasons(phase="Paused") == [("Warning", "ReleasePaused")]
    assert told.reasons(phase="Progressing") == []
    assert told.reasons(waveName="rest") == [("Normal", "WaveBegan")]
    waves = [{"members": 2, "healthy": 2}, {"members": 9, "healthy": 7, "failed": 2}]
    (event,) = told.events(phase="Complete", message="all waves are through", waves=waves)
    said = "all waves are through: 9 of 11 nodes healthy, 2 could not take it"
    assert (event.reason, event.message) == ("ReleaseComplete", said)
    assert told.reasons(message="all waves are through, but for the centre") == []


def test_what_the_centre_refuses_is_told_anew_once_it_is_for_another_reason():
    told = Told({})
    assert told.reasons(phase="Refused", message="nobody signed it") == [
        ("Warning", "ReleaseRefused")
    ]
    assert told.reasons(attempt=1) == []
    assert told.reasons(message="it speaks wire 3") == [("Warning", "ReleaseRefused")]


def test_a_cause_is_told_once_with_some_places_however_many_nodes_it_befalls():
    told = Told(BEGUN)
    (one,) = told.events(failures=[refused("/a/s1")], waves=[{"failed": 1}])
    assert (one.reason, one.node) == ("UpgradeRefused", "/a/s1")
    assert one.message == f"refused at /a/s1: {UNSIGNED}"
    everywhere = [refused(f"/a/s{number}") for number in range(8)]
    assert told.events(failures=everywhere, waves=[{"failed": 500}]) == []
    # Figures differ from node to node, and so does where to make room.
    (room,) = told.events(failures=[*everywhere, full("/b/s1", 12), full("/b/s2", 7)])
    assert room.message.startswith("refused at /b/s1, /b/s2: disk: 12 MB are free")
    assert room.message.endswith("(500 nodes could not take it by now)")
    assert told.events(failures=[]) == []
    assert told.events(failures=[full("/b/s1", 11)]) == []
    back = ["/: rolled-back: it ended", "/c: rolled-back: it never joined"]
    centre, relay = told.events(failures=back, waves=[])
    assert (centre.reason, centre.message) == (
        "UpgradeRolledBack",
        "taken back at the centre: it ended",
    )
    assert relay.message == "taken back at /c: it never joined"
    assert told.events(failures=["/d: managed-elsewhere: no launcher runs it"]) == []


def test_no_more_causes_are_told_than_have_room():
    told = Told(BEGUN)
    words = [chr(ord("a") + number) for number in range(26)]
    found = [
        it for word in words for it in told.events(failures=[refused("/s1", f"start: {word}")])
    ]
    assert len(found) == CAUSES_MAX


def test_another_attempt_tells_what_happens_in_it_and_not_what_nodes_still_say():
    told = Told({**BEGUN, "phase": "Failed"})
    told.events(failures=[refused("/s1")])
    assert told.reasons(attempt=1) == [("Normal", "ReleaseBegan")]
    assert told.reasons(failures=[refused("/s1"), refused("/s2")]) == []
    assert told.reasons(failures=[], phase="Progressing") == []
    again = told.reasons(failures=[refused("/s1")], phase="Failed")
    assert again == [("Warning", "UpgradeRefused"), ("Warning", "ReleaseFailed")]


def test_what_is_wrong_as_the_centre_starts_is_told_and_what_ended_is_not():
    failed = {**BEGUN, "phase": "Failed", "failures": [refused("/s1")]}
    assert Told().reasons(**failed) == [("Warning", "UpgradeRefused"), ("Warning", "ReleaseFailed")]
    assert Told().reasons(**BEGUN) == []
    for ended in ("Complete", "Aborted"):
        assert Told().reasons(**{**failed, "phase": ended}) == []


async def test_a_release_that_stops_at_the_canary_is_told_as_its_status_says_it(tmp_path):
    async with asyncio.timeout(60), upgraded_tree(tmp_path, NODES) as (tree, places):
        log = EventLog()
        following = tree.group.create_task(follow_releases(tree.workloads, log, tree.clock))
        _, obj = await fail_at_the_canary(tree, places, tmp_path / "centre")
        while not any(it["reason"] == "ReleaseFailed" for it in log.since(0)):
            await asyncio.sleep(0.02)
        told = {it["reason"]: it for it in log.since(0)}
        assert {*told} <= {
            "ReleaseBegan",
            "WaveBegan",
            "UpgradeRolledBack",
            "ReleaseFailed",
        }
        assert told["UpgradeRolledBack"]["node"] == "/emea/s1"
        assert told["UpgradeRolledBack"]["message"] == "taken back at /emea/s1: it never joined"
        assert told["ReleaseFailed"]["object"] == "leafcastrelease/9.0.0"
        assert told["ReleaseFailed"]["message"] == obj["status"]["message"]
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
