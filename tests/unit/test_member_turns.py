"""The members of a node install a release one at a time, whatever they hear, and when."""

import random
from dataclasses import dataclass, field, replace

import pytest

from leafcast.upgrades.turns import MemberWord, Turn, together, turn_of
from schemas.releases.release_folder import WantedRelease
from schemas.reports.running import ReleaseState as State

OLD, NEW = "0.2.0", "0.3.0"
WANTED = WantedRelease(NEW, "a" * 64, 1)
NAMES = ("m1", "m2", "m3")


def word(name, state=State.INSTALLING, version=OLD, **more):
    return MemberWord(name, version, state, manifest=WANTED.manifest, attempt=1, **more)


def words(*, active="m1", **changed):
    """All three wait for their turn; of some of them something else is said."""
    found = {name: word(name, is_active=name == active) for name in NAMES}
    return [replace(it, **changed.get(name, {})) for name, it in found.items()]


def turn(own, said, *, may_begin=True):
    return turn_of(own, said, WANTED, may_begin=may_begin)


DONE = {"state": State.HEALTHY, "version": NEW}


def test_who_stands_by_goes_first_and_the_active_one_last():
    assert turn("m2", words(m2={"claims": True})) == Turn(may_go=True, claims=True)
    assert turn("m1", words()).why == turn("m3", words()).why == "m2 goes before it"
    said = words(m2=DONE, m3={"claims": True})
    assert turn("m3", said).may_go
    assert turn("m1", words(m2=DONE, m3=DONE, m1={"claims": True})).may_go


def test_nobody_goes_before_all_heard_that_it_is_about_to():
    assert turn("m2", words()) == Turn(may_go=False, claims=True, why="the others hear of it")
    # The node moved meanwhile, and the former active one was about to go.
    said = words(active="m2", m1={"claims": True}, m3={"claims": True})
    assert turn("m1", said) == Turn(may_go=False, claims=True, why="m3 is about to go")
    said = words(active="m1", m2={"claims": True}, m1={"claims": True})
    assert turn("m2", said) == Turn(may_go=False, claims=False, why="m1 is about to go")
    assert not turn("m2", words(m3={"claims": True})).claims


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (words()[:2], "2 of 3 members are heard"),
        (words(m3={"trouble": "is behind"}), "m3 is behind"),
        (words(m2={"trouble": "is full"}), "m2 is full"),
        (words(m3={"on_trial": True}), "m3 tries a release"),
        (words(m3={"manifest": "b" * 64}), "m3 has not heard of 0.3.0 yet"),
        (words(m3={"attempt": 0}), "m3 has not heard of 0.3.0 yet"),
        (words(m3={"state": State.ROLLED_BACK, "why": "code 3"}), "at m3 it is rolled-back: code"),
        (words(m3={"state": State.REFUSED, "why": "disk"}), "at m3 it is refused: disk"),
        (words(m2={"state": State.FETCHING}), "it is not there yet"),
    ],
)
def test_nobody_goes_while_something_is_amiss_at_one_of_them(said, why):
    claims = [replace(it, claims=it.name == "m2") for it in said]
    found = turn("m2", claims)
    assert found.why.startswith(why)
    assert (found.may_go, found.claims) == (False, False)


def test_outside_of_its_window_nobody_begins():
    said = words(m2={"claims": True})
    assert turn("m2", said, may_begin=False).why == "it waits for the window of its wave"


def test_a_member_that_a_person_upgrades_is_waited_for_by_nobody():
    by_hand = {"state": State.ELSEWHERE, "manifest": "", "attempt": 0}
    assert turn("m3", words(m2=by_hand, m3={"claims": True})).may_go
    said = words(m2={**by_hand, "why": "no launcher"}, m1=DONE, m3=DONE)
    found = together(said, WANTED)
    assert (found.state, found.version, found.why) == (
        State.ELSEWHERE,
        OLD,
        "member m2: no launcher",
    )
    said = words(m2={**by_hand, "version": NEW}, m1=DONE, m3=DONE)
    assert together(said, WANTED).state is State.HEALTHY


def test_a_node_of_which_one_member_is_upgraded_by_hand_waits_for_the_others_first():
    by_hand = {"state": State.ELSEWHERE, "version": NEW}
    idle = words(m1={"state": State.IDLE}, m2=by_hand, m3={"state": State.IDLE})
    assert together(idle, None).state is State.IDLE
    # It leads back: the one by hand runs it already, and those with a launcher do not yet.
    back = WantedRelease(OLD, WANTED.manifest, 1)
    mixed = words(
        m1={"version": NEW}, m2={"state": State.ELSEWHERE, "version": OLD}, m3={"version": NEW}
    )
    found = together(mixed, back)
    assert (found.state, found.version) == (State.INSTALLING, NEW)
    done = {"state": State.HEALTHY, "version": OLD}
    through = together(words(m1=done, m2={"state": State.ELSEWHERE}, m3=done), back)
    assert (through.state, through.version) == (State.HEALTHY, OLD)
    late = together(words(m1=done, m2=by_hand, m3=done), back)
    assert (late.state, late.version) == (State.ELSEWHERE, NEW)
    assert together(mixed, None).version == OLD
    assert together(mixed, None, of_centre=True).version == NEW


def test_the_node_is_as_old_and_as_far_as_the_last_of_its_members():
    said = words(m1={"state": State.SOAKING, "version": NEW}, m2=DONE)
    assert together(said, WANTED).state is State.INSTALLING
    assert together(said, WANTED).version == OLD
    assert together(words(m1=DONE, m2=DONE, m3=DONE), WANTED).state is State.HEALTHY
    failed = words(m1=DONE, m2=DONE, m3={"state": State.ROLLED_BACK, "why": "code 3"})
    assert together(failed, WANTED).why == "member m3: code 3"
    # What is said of a former release, or try, is no word on this one.
    before = words(m1=DONE, m2={**DONE, "manifest": "b" * 64}, m3=DONE)
    assert together(before, WANTED).state is State.FETCHING
    before = words(m1={**DONE, "attempt": 0}, m2={"state": State.REFUSED, "attempt": 0}, m3=DONE)
    assert together(before, WANTED).state is State.FETCHING
    assert together(before[::2], None).state is State.IDLE
    # Of one nothing was ever heard.
    assert together(words(m1=DONE, m2=DONE)[:2], WANTED).state is State.INSTALLING
    assert together([], WANTED).state is State.INSTALLING
    assert together([], None).state is State.IDLE


@dataclass
class Machine:
    """A member with its launcher: what it said may be heard late, and it goes when it may."""

    name: str
    version: str = OLD
    state: State = State.INSTALLING
    on_trial: bool = False
    is_active: bool = False
    # Seconds until it is back, while it is away.
    away: int = 0
    claims: bool = False
    # As the launcher reads it, a while after it was written.
    may_go: bool = False
    # What was asked after the last word, and answered so far.
    heard: dict[str, MemberWord] = field(default_factory=dict)

    def word(self):
        more = {"on_trial": self.on_trial, "claims": self.claims, "is_active": self.is_active}
        return word(self.name, self.state, self.version, **more)


class Trio:
    """Three machines on which all happens in any order: answers, decisions, moves of the node."""

    def __init__(self, seed, fails=""):
        self.dice, self.fails = random.Random(seed), fails
        self.machines = {name: Machine(name) for name in NAMES}
        self.order = []

    def active(self):
        there = [it for it in self.machines.values() if not it.away]
        if self.dice.random() < 0.2 or not any(it.is_active for it in there):
            for it in self.machines.values():
                it.is_active = False
            if there:
                self.dice.choice(there).is_active = True

    def step(self):
        self.active()
        one = self.machines[self.dice.choice(NAMES)]
        if one.away:
            one.away -= 1
            if not one.away:
                one.claims = one.may_go = False
                one.heard.clear()
            return
        if one.on_trial:
            if self.dice.random() < 0.2:
                one.on_trial = False
                one.state = State.ROLLED_BACK if self.fails == one.name else State.HEALTHY
                one.version = OLD if self.fails == one.name else NEW
            return
        if one.may_go and one.state is State.INSTALLING and self.dice.random() < 0.3:
            one.on_trial, one.version, one.away, one.is_active = True, NEW, 3, False
            self.order.append(one.name)
            unwell = [it.name for it in self.machines.values() if it.away or it.on_trial]
            assert unwell == [one.name]
            return
        missing = [name for name in NAMES if name not in one.heard]
        if missing:
            other = self.machines[self.dice.choice(missing)]
            if not other.away:
                one.heard[other.name] = other.word()
            elif self.dice.random() < 0.5:
                self.decide(one)
        else:
            self.decide(one)

    def decide(self, one):
        found = turn(one.name, list(one.heard.values()))
        one.may_go, one.claims = found.may_go, found.claims
        one.heard.clear()

    def run(self, until, steps=20_000):
        for _ in range(steps):
            if until(self):
                return
            self.step()
        raise AssertionError(f"{self.machines}")


@pytest.mark.parametrize("seed", range(40))
def test_one_goes_after_the_other_in_whatever_order_they_hear_and_decide(seed):
    trio = Trio(seed)
    trio.run(lambda it: all(m.state is State.HEALTHY for m in it.machines.values()))
    assert sorted(trio.order) == list(NAMES)


@pytest.mark.parametrize("seed", range(10))
def test_one_that_goes_back_keeps_the_others_as_they_are(seed):
    first = Trio(seed)
    first.run(lambda it: it.order)
    trio = Trio(seed, fails=first.order[0])
    trio.run(lambda it: any(m.state is State.ROLLED_BACK for m in it.machines.values()))
    for _ in range(500):
        trio.step()
    assert len(trio.order) == 1
