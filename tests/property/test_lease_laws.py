"""Laws of the lease of a node's members: whatever is lost, late or paused, one holds it."""

import heapq
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.members import lease as rules
from relay.members.lease import (
    ALONE_SECONDS,
    GONE_SECONDS,
    LOOK_SECONDS,
    LOOKS_MIN,
    QUIET_LOOK_SECONDS,
    QUIET_SECONDS,
    RENEW_SECONDS,
    SILENT_SECONDS,
    TOLD_MAX,
    VALID_SECONDS,
    LeaseNote,
    LeaseSeen,
    MemberLease,
    clock_trouble,
)

STORY_SECONDS = 90.0
MEMBERS_SECONDS = 0.5
RATE_MAX = 0.05
RESET_APART_SECONDS = 30.0
TWO_HELD = (180, 446, 749, 755, 1439, 1449, 1984, 2114)
"""Stories in which two held the lease as long as a hold that was put back counted as the last."""


class TwoHolders(AssertionError):
    """Two members held the lease at once."""


class Member:
    """One member: its clock, its pauses, and the lease as it knows it."""

    def __init__(self, lease, random):
        self.lease = lease
        self.rate, self.offset = 1 + random.uniform(-RATE_MAX, RATE_MAX), random.uniform(0, 1000)
        self.asked, self.is_waiting, self.has_asked = 0, False, False

    def clock(self, at):
        return self.offset + at * self.rate


class Story:
    """Three members and a stream in memory, with delays, losses, pauses and elections of a seed."""

    def __init__(self, seed, lease=MemberLease):
        self.random, self.lease = Random(seed), lease
        self.now, self.order = 0.0, count()
        self.events = []
        self.sequence, self.note = 0, None
        self.leader_from = 0.0
        self.reset_at = float("-inf")
        self.roughness = self.random.choice([0.0, 0.05, 0.3])
        self.members = [Member(lease(name, f"run of {name}"), self.random) for name in "abc"]
        self.is_copied = False
        self.holds = set()
        self.cut = None
        for member in self.members:
            self.later(self.random.uniform(0, 1), self.step, member)
        self.later(self.random.uniform(5, 30), self.trouble)

    def later(self, seconds, what, *arguments):
        heapq.heappush(self.events, (self.now + seconds, next(self.order), what, arguments))

    def run(self):
        while self.events and self.events[0][0] < STORY_SECONDS:
            self.now, _, what, arguments = heapq.heappop(self.events)
            what(*arguments)
            holders = [m for m in self.members if m.lease.holds(m.clock(self.now))]
            self.holds.update(m.lease.member for m in holders)
            if len(holders) > 1:
                raise TwoHolders

    def step(self, member):
        """What the keeper of a lease does each second, and more often where nothing changes."""
        lease, now = member.lease, member.clock(self.now)
        lease.lost_if_over(now)
        if member.is_waiting and not lease.holds(now):
            lease.saw_nothing()
        is_quiet = not lease.is_confirmed(now) if lease.holds(now) else lease.is_quiet
        pause = RENEW_SECONDS if lease.is_confirmed(now) else lease.look_seconds
        self.later(pause * self.random.uniform(0.9, 1.1), self.step, member)
        if is_quiet or lease.is_of_former_run:
            self.ask_others(member)
        if lease.is_of_former_run and not member.has_asked:
            # Of those that answer none is to be active.
            member.has_asked = True
            return
        member.asked += 1
        if lease.holds(now) or lease.may_take() or lease.lacks_mark:
            write = lease.write(now)
            self.tell(member, write.note)
            self.send(self.decide, member, write)
            return
        self.send(self.look, member)

    def tell(self, member, note):
        """Have the others hear of a note before it lies there; what is told may be lost, too."""
        for other in self.members:
            is_lost = self.random.random() < self.roughness
            if other is not member and self.cut not in (member, other) and not is_lost:
                self.later(self.delay(), self.hear, other, note)

    def hear(self, member, note):
        member.lease.told(note, member.clock(self.now))

    def ask_others(self, member):
        """Learn of the others whether the holder is there; one that is cut off learns nothing."""
        now = member.clock(self.now)
        for other in self.members:
            if other is not member and self.cut not in (member, other):
                self.later(self.delay(), self.asked_by, other, member, now)

    def asked_by(self, other, member, asked_at):
        now = other.clock(self.now)
        heard_seconds = now - other.lease.heard_at
        self.later(self.delay(), self.told, member, other.lease.holds(now), heard_seconds, asked_at)

    def told(self, member, is_active, heard_seconds, asked_at):
        now = member.clock(self.now)
        if now - asked_at > MEMBERS_SECONDS:
            return
        if is_active:
            member.lease.heard(now)
        else:
            sign_at = asked_at if member.lease.holds(asked_at) else now
            member.lease.others_heard(sign_at - heard_seconds)

    def send(self, what, member, *arguments):
        asked, member.is_waiting = member.asked, True
        if self.random.random() >= self.roughness:
            self.later(self.delay(), what, member, asked, *arguments)

    def answer(self, what, member, *arguments):
        if self.random.random() >= self.roughness:
            self.later(self.delay(), self.heard, what, member, *arguments)

    def delay(self):
        random = self.random
        return random.expovariate(1 / 20) if random.random() < self.roughness else 0.01

    def is_led_for(self, member):
        return self.now >= self.leader_from and member is not self.cut

    def look(self, member, asked):
        if self.is_led_for(member):
            self.answer(self.saw, member, asked, LeaseSeen(self.sequence, self.note))

    def decide(self, member, asked, write):
        if not self.is_led_for(member):
            return
        mark = self.note.mark if self.note is not None else write.note.mark
        if (mark, self.sequence) != (write.note.mark, write.expected):
            self.answer(self.refused, member, asked, LeaseSeen(self.sequence, self.note))
            return
        self.sequence, self.note = self.sequence + 1, write.note
        self.answer(self.written, member, asked, write, self.sequence)

    def heard(self, what, member, asked, *arguments):
        if asked == member.asked:
            member.is_waiting = False
            member.asked += 1  # Whoever waits has its answer; a later one is thrown away.
            what(member, *arguments)

    def saw(self, member, seen):
        member.lease.saw(seen, member.clock(self.now))

    def written(self, member, write, sequence):
        member.lease.written(write, sequence, member.clock(self.now))

    def refused(self, member, seen):
        member.lease.refused(seen, member.clock(self.now))

    def trouble(self):
        """A pause of a member, or a cut, a time without a leader, or the stream's memory lost."""
        self.later(self.random.uniform(2, 30), self.trouble)
        troubles = ["pause", "pause", "cut", "election", "reset", "kill", "kill", "copy"]
        match self.random.choice(troubles):
            case "pause":
                self.pause(self.random.choice(self.members), self.random.uniform(1, 25))
            case "cut":
                self.cut = self.random.choice(self.members)
                self.later(self.random.uniform(1, 25), self.reach_all)
            case "election":
                self.leader_from = self.now + self.random.uniform(1, 17)
            case "reset" if self.now - self.reset_at > RESET_APART_SECONDS:
                self.sequence, self.note, self.reset_at = 0, None, self.now
            case "kill":
                self.kill(self.random.choice(self.members))
            case "copy" if not self.is_copied:
                self.is_copied = True
                name = self.random.choice(self.members).lease.member
                self.begin(self.lease(name, "run of a copy"), 0.0)

    def kill(self, member):
        """End a process; what it sent goes on. Another one begins where it worked, after it."""
        former = member.lease
        self.members.remove(member)
        self.events = [it for it in self.events if not self.is_done_by(member, it[2], it[3])]
        heapq.heapify(self.events)
        lease = self.lease(former.member, f"{former.run}, again", {former.run})
        self.begin(lease, self.delay())
        if self.cut is member:
            self.cut = self.members[-1]

    def begin(self, lease, seconds):
        self.members.append(Member(lease, self.random))
        self.later(seconds, self.step, self.members[-1])

    def reach_all(self):
        self.cut = None

    def pause(self, member, seconds):
        """What the member would do meanwhile it does after that, at once."""
        until = self.now + seconds
        self.events = [
            (max(at, until), order, what, given)
            if at < until and self.is_done_by(member, what, given)
            else (at, order, what, given)
            for at, order, what, given in self.events
        ]
        heapq.heapify(self.events)

    def is_done_by(self, member, what, given):
        if what in (self.look, self.decide):
            return False
        return member in (given[1:2] if what == self.heard else given[:1])


class PutBackStory(Story):
    """One in which the stream's memory may be put back to what it was some seconds ago, too."""

    def __init__(self, seed, lease=MemberLease):
        super().__init__(seed, lease)
        self.past = []

    def decide(self, member, asked, write):
        self.past.append((self.now, self.sequence, self.note))
        super().decide(member, asked, write)

    def trouble(self):
        is_due = self.past and self.now - self.reset_at > RESET_APART_SECONDS
        if self.random.random() >= 0.25 or not is_due:
            super().trouble()
            return
        wanted = self.now - self.random.uniform(0, 20)
        before = [it for it in self.past if it[0] <= wanted] or self.past[:1]
        _, self.sequence, self.note = before[-1]
        self.reset_at = self.now
        self.later(self.random.uniform(2, 30), self.trouble)


class QuietStory(Story):
    """One in which nothing is lost or late, but for times without a leader."""

    def __init__(self, seed):
        super().__init__(seed)
        self.roughness = 0.0

    def trouble(self):
        self.later(self.random.uniform(20, 30), self.trouble)
        self.leader_from = self.now + self.random.uniform(4, 17)


@given(st.integers(0, 2**64))
def test_no_two_members_hold_the_lease_at_once(seed):
    Story(seed).run()


@given(st.integers(0, 2**64))
def test_in_quiet_times_a_member_becomes_active_and_stays_over_elections(seed):
    story = QuietStory(seed)
    story.run()
    assert len(story.holds) == 1


class Forgetful(MemberLease):
    """Takes what lies there as the last word, also where it saw later ones."""

    is_put_back = False

    @property
    def _held_at(self):
        return float("inf")

    @_held_at.setter
    def _held_at(self, _at):
        pass


def test_a_memory_that_is_put_back_gives_no_second_holder():
    for seed in (*TWO_HELD, *range(20)):
        PutBackStory(seed).run()


def test_the_search_finds_a_member_that_believes_a_memory_that_is_put_back():
    with pytest.raises(TwoHolders):
        PutBackStory(TWO_HELD[0], Forgetful).run()


class OwnName(MemberLease):
    """Takes what a process of its name held, wherever that runs."""

    def may_take(self):
        note = self._seen.note if self._seen is not None else None
        return super().may_take() or (note is not None and note.member == self.member)


def test_the_search_finds_a_member_that_takes_what_another_process_of_its_name_held():
    with pytest.raises(TwoHolders):
        tell_stories(3000, OwnName)


@pytest.mark.parametrize(
    ("rule", "value"),
    [("GONE_SECONDS", 3.0), ("ALONE_SECONDS", 9.0), ("SILENT_SECONDS", 8.0)],
)
def test_the_search_finds_a_rule_that_is_broken(monkeypatch, rule, value):
    monkeypatch.setattr(rules, rule, value)
    with pytest.raises(TwoHolders):
        tell_stories(3000)


def tell_stories(count, lease=MemberLease):
    for seed in range(count):
        Story(seed, lease).run()


NOTE = LeaseNote("a", "run of a", 7, "m")


def standby(sequence=7, note=NOTE):
    lease = MemberLease("b", "run of b")
    lease.saw(LeaseSeen(sequence, note), 0.0)
    return lease


@given(st.lists(st.floats(0.05, 3.0), min_size=1, max_size=40))
def test_it_is_taken_after_some_seconds_of_silence_that_four_answers_saw(gaps):
    lease, now = standby(), 0.0
    for answers, gap in enumerate(gaps, 2):
        now += gap
        lease.saw(LeaseSeen(7, NOTE), now)
        assert lease.may_take() == (lease.silent_seconds >= GONE_SECONDS and answers >= LOOKS_MIN)
        assert lease.silent_seconds == pytest.approx(now)


def test_a_time_without_a_leader_counts_as_nothing_was_renewed_in_it():
    lease = standby()
    lease.saw_nothing()
    for answers in range(2, LOOKS_MIN + 1):
        lease.saw(LeaseSeen(7, NOTE), 60.0 + answers)
        assert lease.silent_seconds == 60.0 + answers
        assert lease.may_take() == (answers == LOOKS_MIN)


@pytest.mark.parametrize("hear", [MemberLease.heard, MemberLease.others_heard])
def test_of_a_holder_that_is_heard_a_longer_silence_is_waited_for(hear):
    lease = standby()
    for second in range(1, 30):
        hear(lease, second - 1.0)
        lease.saw(LeaseSeen(7, NOTE), float(second))
        assert lease.may_take() == (second >= SILENT_SECONDS)


def test_a_holder_that_is_heard_goes_on_without_renewals_for_a_while():
    lease = held()
    assert lease.seconds_left(11.0) == ALONE_SECONDS - 1.0
    for second in range(11, 60):
        lease.others_heard(second - 1.0)
        assert lease.holds(float(second)) == (second < 10.0 + VALID_SECONDS)


def test_it_is_looked_more_often_once_it_is_silent_or_nobody_answers():
    lease = standby()
    assert lease.look_seconds == LOOK_SECONDS
    lease.saw_nothing()
    assert lease.look_seconds == QUIET_LOOK_SECONDS
    lease.saw(LeaseSeen(7, NOTE), QUIET_SECONDS - 0.1)
    assert lease.look_seconds == LOOK_SECONDS
    lease.saw(LeaseSeen(7, NOTE), QUIET_SECONDS)
    assert lease.look_seconds == QUIET_LOOK_SECONDS


def test_a_change_begins_the_silence_anew_and_is_a_sign_of_the_holder():
    lease = standby()
    assert lease.heard_at == float("-inf")
    lease.saw(LeaseSeen(7, NOTE), 5.9)
    lease.saw(LeaseSeen(8, LeaseNote("a", "run of a", 8, "m")), 8.5)
    assert lease.silent_seconds == 0.0
    assert lease.heard_at == 8.5


def test_a_note_that_is_seen_after_an_election_counts_from_when_it_was_told():
    lease, late = standby(), LeaseNote("a", "run of a", 8, "m")
    lease.told(late, 0.2)
    for answers in range(LOOKS_MIN):
        assert not lease.may_take()
        lease.saw(LeaseSeen(8, late), GONE_SECONDS + 0.2 + answers / 10)
    assert lease.heard_at == 0.2
    assert lease.may_take()


def test_a_mark_counts_from_when_it_is_seen_whenever_it_was_told():
    lease, mark = MemberLease("b", "run of b"), LeaseNote("a", "", 1, "m")
    lease.told(mark, 0.0)
    lease.saw(LeaseSeen(1, mark), 30.0)
    assert lease.silent_seconds == 0.0


def test_of_what_is_told_the_last_alone_is_known():
    lease = standby()
    for beat in range(100):
        lease.told(LeaseNote("a", "run of a", beat, "m"), float(beat))
    assert len(lease._told) == TOLD_MAX


def test_what_an_earlier_run_held_on_the_same_directory_is_taken_at_once():
    lease = MemberLease("a", "the next run", {"run of a"})
    lease.saw(LeaseSeen(7, NOTE), 0.0)
    assert lease.may_take()
    lease.saw(LeaseSeen(8, LeaseNote("a", "run of a copy", 8, "m")), 0.1)
    assert not lease.may_take()
    # It was put back to what it was.
    lease.saw(LeaseSeen(7, NOTE), 0.2)
    assert not lease.may_take()


def test_what_an_earlier_run_held_is_not_taken_from_whoever_says_to_be_active():
    lease = MemberLease("a", "the next run", {"run of a"})
    lease.saw(LeaseSeen(7, NOTE), 0.0)
    lease.heard(0.1)
    assert not lease.may_take()


def test_a_note_that_was_told_and_is_put_back_counts_from_when_it_is_seen():
    lease, later = standby(), LeaseNote("a", "run of a", 8, "m")
    for note, at in ((NOTE, 1.0), (later, 2.0)):
        lease.told(note, at)
    lease.saw(LeaseSeen(8, later), 2.1)
    lease.saw(LeaseSeen(7, NOTE), 20.0)
    assert lease.silent_seconds == 0.0


def test_what_was_given_back_is_taken_at_once_but_not_where_it_was_put_back():
    lease, given = standby(sequence=6), LeaseNote("", "run of a", 8, "m")
    lease.saw(LeaseSeen(7, given), 0.1)
    assert lease.may_take()
    lease.saw(LeaseSeen(8, LeaseNote("c", "run of c", 1, "m")), 0.2)
    lease.saw(LeaseSeen(7, given), 0.3)
    assert not lease.may_take()
    for answers in range(1, LOOKS_MIN):
        lease.saw(LeaseSeen(7, given), GONE_SECONDS + answers)
    assert lease.may_take()


def test_a_hold_of_the_same_run_is_over_for_it_unless_another_holder_was_heard_since():
    lease = held()
    own = lease._seen
    lease.lost()
    lease.saw(own, 15.0)
    assert lease.may_take()
    lease.saw(LeaseSeen(9, LeaseNote("b", "run of b", 2, "m")), 15.1)
    assert lease.may_take()
    lease.told(NOTE, 15.2)
    assert not lease.may_take()


def test_what_was_given_back_is_taken_at_once():
    assert standby(note=LeaseNote("", "run of a", 8, "m")).may_take()


def held():
    lease = standby(note=LeaseNote("", "run of a", 8, "m"))
    lease.written(lease.write(10.0), 8, 10.5)
    return lease


def test_a_hold_is_counted_from_when_it_was_sent():
    lease = held()
    assert lease.holds(10.0 + ALONE_SECONDS - 0.01)
    assert not lease.holds(10.0 + ALONE_SECONDS)
    assert lease.is_confirmed(10.9)
    assert not lease.is_confirmed(11.1)


def test_a_renewal_whose_answer_was_lost_is_found_again():
    lease = held()
    first = lease.write(11.0)
    lease.write(12.5)
    lease.refused(LeaseSeen(9, first.note), 12.6)
    assert lease.seconds_left(12.6) == pytest.approx(11.0 + ALONE_SECONDS - 12.6)


def test_a_note_of_another_ends_the_hold():
    lease = held()
    lease.write(11.0)
    lease.refused(LeaseSeen(9, LeaseNote("a", "run of a", 9, "m")), 11.1)
    assert not lease.holds(11.1)
    assert not lease.may_take()


def test_an_answer_that_comes_after_the_hold_is_over_gives_it_to_no_one():
    lease = held()
    write = lease.write(15.5)
    lease.lost()
    lease.written(write, 9, 16.5)
    assert not lease.holds(16.5)


def test_where_nothing_lies_a_mark_comes_first_and_is_nobodys_hold():
    lease = MemberLease("b", "run of b")
    lease.saw(LeaseSeen(), 0.0)
    assert lease.lacks_mark
    write = lease.write(0.1)
    lease.written(write, 1, 0.2)
    assert write.note.run == ""
    assert not lease.holds(0.2)
    assert not lease.may_take()


def test_giving_it_back_ends_the_hold_first():
    lease = held()
    write = lease.give_back()
    assert write is not None
    assert (write.note.member, write.expected) == ("", 8)
    assert not lease.holds(10.6)
    assert lease.give_back() is None


@pytest.mark.parametrize(
    ("mine", "others", "said"),
    [
        (0.0, [3600.0], ""),
        (3600.0, [0.1, -0.2], "its clock is 3600 s ahead of"),
        (-11.0, [0.0, 2.0], "its clock is 11 s behind"),
        (9.0, [0.0, 1.0], ""),
        (0.0, [0.3, 3600.0], ""),
    ],
)
def test_a_member_whose_clock_is_off_the_median_of_three_stands_back(mine, others, said):
    assert clock_trouble(mine, others).startswith(said)
    assert bool(clock_trouble(mine, others)) == bool(said)
