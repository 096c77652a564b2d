"""What members tell each other of a release is read back as it was said, and strangers' not."""

import json
from dataclasses import replace

import pytest

from leafcast.node.member_forms import CHILDREN, STORE_FULL, VERSION
from leafcast.upgrades.member_words import RELEASE, UPGRADE, Told, told_by, upgrade_form, words_in
from leafcast.upgrades.standing import Choice, ReleaseStanding
from relay.adapters.jetstream.member_presence import ACTIVE, CLOCK_TROUBLE, ROLE, STANDBY
from relay.adapters.jetstream.member_servers import MemberServer
from schemas.releases.release_folder import LaunchNote, LaunchState, WantedRelease
from schemas.reports.running import ReleaseState
from schemas.values.identity import MailKey

WANTED = WantedRelease("0.3.0", "a" * 64, 2)
CHOICE = Choice(WANTED, 3, may_begin=True)
TOLD = Told(CHOICE, MailKey("k" * 26))
SERVERS = tuple(MemberServer(name, leads=name == "m1") for name in ("m1", "m2", "m3"))


def facts(**changed):
    """What all three say, as it comes over the wire; of some something else."""
    tried = LaunchNote("0.3.0", "0.2.0", LaunchState.SOAKING)
    standing = ReleaseStanding(ReleaseState.SOAKING)
    its = {
        "m1": {ROLE: ACTIVE, RELEASE: TOLD.form()},
        "m2": {ROLE: STANDBY, RELEASE: None},
        "m3": {
            ROLE: STANDBY,
            UPGRADE: upgrade_form(standing, CHOICE, tried, claims=True),
        },
    }
    said = {
        name: {VERSION: "0.2.0", CHILDREN: ["c"], **it, **changed.get(name, {})}
        for name, it in its.items()
    }
    return json.loads(json.dumps(said))


def test_what_the_active_member_tells_is_what_is_wanted_until_it_tells_something_else():
    assert told_by(facts(), None) == TOLD
    assert told_by(facts(m1={RELEASE: {}}), TOLD) is None
    # One that just became active has not looked yet.
    assert told_by(facts(m1={RELEASE: None}), TOLD) == TOLD
    assert told_by(facts(m1={ROLE: STANDBY}), TOLD) == TOLD


@pytest.mark.parametrize(
    "field", [{"version": "x"}, {"manifest": 3}, {"attempt": -1}, {"wave": None}, {"wave": "x"}]
)
def test_what_says_no_release_is_as_if_it_was_not_told(field):
    assert told_by(facts(m1={RELEASE: {**TOLD.form(), **field}}), None) is None
    assert told_by(facts(m1={RELEASE: {"version": "0.3.0"}}), TOLD) == TOLD


def test_a_member_says_how_far_it_is_and_one_that_says_nothing_has_no_launcher():
    first, second, third = words_in(facts(), SERVERS, None)
    assert (first.is_active, first.is_managed, second.is_managed) == (True, False, False)
    assert (third.state, third.on_trial, third.claims) == (ReleaseState.SOAKING, True, True)
    assert (third.version, third.manifest, third.attempt) == ("0.2.0", WANTED.manifest, 2)
    assert [it.trouble for it in (first, second, third)] == ["", "", ""]
    strange = {UPGRADE: {"state": "sleeps", "attempt": "x", "claims": 1, "onTrial": "yes"}}
    word = words_in(facts(m3=strange), SERVERS, None)[2]
    assert (word.is_managed, word.attempt, word.claims, word.on_trial) == (False, 0, False, False)


@pytest.mark.parametrize(
    ("said", "servers", "why"),
    [
        ({ROLE: "none"}, SERVERS, "is not heard"),
        ({STORE_FULL: True}, SERVERS, "has a server that is full"),
        ({}, SERVERS[:2], "has a server that is down"),
        ({}, (*SERVERS[:2], replace(SERVERS[2], is_current=False)), "has a server that is behind"),
        ({}, (*SERVERS[:2], replace(SERVERS[2], is_reached=False)), "has a server that is down"),
        ({CHILDREN: []}, SERVERS, "does not let in the same children as the active one yet"),
        ({CLOCK_TROUBLE: "its clock is off"}, SERVERS, "does not become active: its clock is off"),
    ],
)
def test_who_is_not_in_step_is_said_with_the_reason(said, servers, why):
    words = words_in(facts(m3=said), servers, None)
    assert [word.trouble for word in words] == ["", "", why]


def test_a_silent_member_whose_server_runs_is_not_heard():
    found = facts()
    del found["m2"]
    assert [word.trouble for word in words_in(found, SERVERS, None)] == ["", "is not heard", ""]
