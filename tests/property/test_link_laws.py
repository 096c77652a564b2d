"""A writer and a reader alone, over a channel that loses, repeats, erases and brings back."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from relay.core.link.reader import Reading
from relay.core.link.session import (
    PRESENCE,
    SESSION,
    ChildSession,
    ParentSession,
    Presence,
    PresenceEvent,
    SessionEvent,
    SessionState,
)
from relay.core.link.writer import Comparison, SlotForm
from relay.core.records.judge import VerifiedSnapshot
from schemas.reports.link import Hello
from schemas.values.identity import SNAPSHOT_KEY, MailKey
from tests.property.examples import examples
from tests.simulation.channel import Channel
from tests.simulation.ends import Child, Disk, Issuer, Parent

NAMES = "abcd"
ROUNDS_SECONDS = (*[5.0] * 20, *[61.0] * 12)
DELIVERED_MAX, REPAIRS_MAX = 200, 8


@dataclass(frozen=True)
class Act:
    """What happens, to which of several."""

    what: str
    at: int = 0


CHANGES = ("full", "full", "head", "delete")
FAULTS = ("cut", "lose hello", "lose welcome", "repeat", "restart child", "restart parent")
DAMAGE = ("wipe child", "copy child", "restore child", "erase", "resurrect", "copy mail")
DAMAGE += ("restore mail", "restore parent", "copy parent")
acts = st.one_of(
    st.builds(Act, st.sampled_from(CHANGES), st.integers(0, 3)),
    st.builds(Act, st.sampled_from(("deliver", "pass")), st.integers(0, 6)),
    st.builds(Act, st.sampled_from(FAULTS), st.integers(0, 9)),
)
damages = st.one_of(acts, st.builds(Act, st.sampled_from(DAMAGE), st.integers(0, 9)))


class Link:
    """One parent and one child, and what happens between them."""

    def __init__(self) -> None:
        self.truth, self.channel = Issuer(), Channel()
        self.keys: dict[str, MailKey] = {}
        # Whether mail may be missing of which neither side could know.
        self.damaged = False
        # The newest snapshot that the child was ever shown.
        self.child = Child(self.truth, self.channel, self.noticed)
        self.parent = Parent(self.truth, self.channel)
        self.child_copy: Disk | None = None
        self.mail_copy = self.channel.mailbox.copy()
        self.parent_copy = (dict(self.parent.held), self.parent.snapshot)

    # Laws, at each step.

    def noticed(self, what: str, key: MailKey, generation: int, snapshot: VerifiedSnapshot) -> None:
        match what:
            case "taken" if snapshot is not None and generation <= snapshot.generation:
                listed = self.truth.listings[snapshot.generation].get(key)
                assert listed == generation, "something superseded is taken"
            case "removed":
                wanted = key in self.truth.in_full[snapshot.generation]
                assert not wanted or self.damaged, "what is wanted is removed"
            case "reached" if not self.damaged:
                held = {k: a.generation for k, a in self.child.records.items() if a.full}
                for wanted, least in self.truth.in_full[generation].items():
                    same = (
                        self.truth.wishes[wanted] is SlotForm.FULL and wanted in self.truth.ledger
                    )
                    if same and self.truth.ledger[wanted].generation == least:
                        assert held.get(wanted) == least, "a snapshot is reached without a record"
            case _:
                pass

    def act(self, act: Act) -> None:
        note(str(act))
        getattr(self, "_" + act.what.replace(" ", "_"))(act.at)
        self.parent.flush()
        self.child.assert_invariants()
        self.parent.writer.assert_invariants()

    # Changes.

    def _put(self, at: int, wish: SlotForm) -> None:
        name = NAMES[at]
        self.keys[name] = self.truth.put(name, wish)
        self.parent.learn()

    def _full(self, at: int) -> None:
        self._put(at, SlotForm.FULL)

    def _head(self, at: int) -> None:
        self._put(at, SlotForm.HEAD)

    def _delete(self, at: int) -> None:
        key = self.keys.get(NAMES[at])
        if key is not None and key in self.truth.ledger:
            self.truth.delete(key)

    # Time and mail.

    def _pass(self, at: int) -> None:
        self.truth.now += (0.1, 1.0, 2.0, 3.0, 30.0, 61.0, 91.0)[at]
        if self.truth.sign():
            self.parent.learn()
        self.parent.writer.flush(self.truth.now)
        self.child.passed()
        self._talk()

    def _talk(self) -> None:
        hello = self.child.hello()
        if hello is not None and self.channel.linked:
            self.channel.up.append(hello)
        while self.channel.up:
            self.channel.down.append(self.parent.hello(self.channel.up.popleft()))
        while self.channel.down:
            self.child.welcomed(self.channel.down.popleft())

    def _deliver(self, at: int) -> None:
        if not self.channel.linked:
            self._relink()
        self._talk()
        for _ in range(at + 1):
            event = self.channel.deliver()
            if event is not None:
                self.child.arrived(event)
        for key in self.child.gone:
            self.parent.writer.clear(key, self.child.reader.judged)
        self.child.gone.clear()

    def _repeat(self, at: int) -> None:
        event = self.channel.repeat(at)
        if event is not None:
            self.child.arrived(event)

    # Faults.

    def _cut(self, _at: int) -> None:
        if self.channel.linked:
            self.channel.cut()
            self.child.linked(up=False)

    def _relink(self) -> None:
        self.channel.link()
        self.child.linked(up=True)

    def _lose_hello(self, _at: int) -> None:
        self.child.hello()

    def _lose_welcome(self, _at: int) -> None:
        hello = self.child.hello()
        if hello is not None and self.channel.linked:
            self.parent.hello(hello)

    def _restart_child(self, _at: int) -> None:
        self._begin(self.child.disk())

    def _begin(self, disk: Disk) -> None:
        self._cut(0)
        self.child.start(disk)

    def _restart_parent(self, _at: int) -> None:
        self._cut(0)
        self.parent.start()

    # Damage.

    def _wipe_child(self, _at: int) -> None:
        self._begin(Disk({}, {}, {}, None, b""))

    def _copy_child(self, _at: int) -> None:
        self.child_copy = self.child.disk()

    def _restore_child(self, _at: int) -> None:
        if self.child_copy is not None:
            self.damaged = True
            self._begin(self.child_copy)

    def _erase(self, at: int) -> None:
        slots = sorted(self.channel.mailbox.slots)
        if slots:
            self.damaged = True
            self.channel.mailbox.erase(slots[at % len(slots)])
            self._restart_parent(0)

    def _resurrect(self, at: int) -> None:
        self.damaged = True
        self.channel.mailbox.resurrect(at)
        self._restart_parent(0)

    def _copy_mail(self, _at: int) -> None:
        self.mail_copy = self.channel.mailbox.copy()

    def _restore_mail(self, _at: int) -> None:
        self.damaged = True
        self.channel.mailbox = self.mail_copy.copy()
        self.channel.acknowledged = min(self.channel.acknowledged, self.channel.mailbox.last)
        self._restart_parent(0)

    def _copy_parent(self, _at: int) -> None:
        self.parent_copy = (dict(self.parent.held), self.parent.snapshot)

    def _restore_parent(self, _at: int) -> None:
        """The parent's own records are those of the copy; its own parent brings the rest later."""
        self.damaged = True
        self.parent.held, self.parent.snapshot = dict(self.parent_copy[0]), self.parent_copy[1]
        self._restart_parent(0)

    # The end.

    def rest(self) -> None:
        """Faults stop: the child comes to the target, with a bounded number of messages."""
        self.parent.learn()
        begun, repaired = self.channel.delivered, self.parent.repairs
        for seconds in ROUNDS_SECONDS:
            self.truth.now += seconds
            if self.truth.sign():
                self.parent.learn()
            self._deliver(50)
            self.child.passed()
            self.parent.flush()
        self.child.assert_invariants()
        self.parent.writer.assert_invariants()
        assert self.channel.delivered - begun <= DELIVERED_MAX, "mail is read again and again"
        assert self.parent.repairs - repaired <= REPAIRS_MAX, "the ladder of repair has no end"
        full = {k: a.generation for k, a in self.child.records.items() if a.full}
        target = {
            key: accepted.generation
            for key, accepted in self.truth.ledger.items()
            if self.truth.wishes[key] is SlotForm.FULL
        }
        assert full == target, "the child does not hold the target"
        assert self.child.content == target, "what is gone is still there"
        assert self.child.reader.state is Reading.FOLLOWING
        reader, reached = self.child.reader, self.child.judge.reached
        if reached is not None:
            place = self.parent.writer.place(reader.judged)
            found = self.parent.writer.compare(place, reached.generation, reader.digest)
            assert found is Comparison.EQUAL, f"the digests are {found.name}"


def live(script: list[Act]) -> None:
    link = Link()
    for act in script:
        link.act(act)
    link.rest()


RULES = settings(deadline=None, max_examples=examples(300), suppress_health_check=list(HealthCheck))


@RULES
@given(st.lists(acts, max_size=30))
def test_a_child_comes_to_hold_the_target_whatever_is_lost_or_repeated(script):
    live(script)


@RULES
@given(st.lists(damages, max_size=30))
def test_a_child_comes_to_hold_the_target_whatever_disks_forget_or_bring_back(script):
    live(script)


@RULES
@given(st.lists(acts, max_size=20), st.sampled_from(NAMES))
def test_who_lacks_nothing_reads_no_record_again_after_its_parent_restarts(script, name):
    link = Link()
    for act in script:
        link.act(act)
    link.rest()
    link.act(Act("full", NAMES.index(name)))
    link.act(Act("deliver", 50))
    link.act(Act("restart parent"))
    read = []
    arrived = link.child.arrived
    link.child.arrived = lambda event: (read.append(event.key), arrived(event))
    link.act(Act("deliver", 50))
    assert set(read) <= {SNAPSHOT_KEY}
    link.rest()


LED_TO = {
    SessionState.UNLINKED: (),
    SessionState.ASKING: (SessionEvent.LINKED,),
    SessionState.WELCOMED: (SessionEvent.LINKED, SessionEvent.WELCOME),
    SessionState.STOPPED: (SessionEvent.LINKED, SessionEvent.STOP),
}


@pytest.mark.parametrize("event", SessionEvent)
@pytest.mark.parametrize("state", SessionState)
def test_an_event_leads_on_from_each_state_in_which_it_can_be(state, event):
    session = ParentSession()
    for led in LED_TO[state]:
        session.happened(led, 0.0)
    assert session.state is state
    if (state, event) not in SESSION:
        with pytest.raises(KeyError):
            session.happened(event, 1.0)
        return
    session.happened(event, 1.0)
    assert (session.due is None) == (session.state is SessionState.UNLINKED)


@given(st.lists(st.sampled_from(PresenceEvent), max_size=12))
def test_only_a_child_that_caught_up_is_in_step(events):
    child = ChildSession(0.0, Presence.NEVER_JOINED)
    caught_up = False
    for event in events:
        if (child.presence, event) not in PRESENCE:
            with pytest.raises(KeyError):
                child.happened(event)
            continue
        child.happened(event)
        if event is PresenceEvent.CAUGHT_UP:
            caught_up = True
        elif event is not PresenceEvent.HEARD:
            caught_up = False
        assert (child.presence is Presence.IN_STEP) <= caught_up


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20))
def test_who_is_not_welcomed_asks_again_ever_later_up_to_thirty_seconds(waits):
    session = ParentSession()
    session.happened(SessionEvent.LINKED, 0.0)
    now, gaps = 0.0, []
    for wait in waits:
        assert session.due is not None
        now = max(now, session.due) + wait
        session.hello_sent(now)
        gaps.append(round(session.due - now, 6))
    assert gaps == sorted(gaps)
    assert gaps[0] == pytest.approx(1.0)
    assert max(gaps) <= 30.0


def test_another_home_is_let_in_only_after_silence_or_farewell():
    child = ChildSession(0.0, Presence.NEVER_JOINED)
    first = Hello("run 1", "home 1", "", 0, b"", 0)
    child.begin(first, 0.0)
    other = Hello("run 2", "home 2", "", 0, b"", 0)
    again = Hello("run 3", "home 1", "", 0, b"", 0)
    assert child.identify(other).name == "SECOND"
    assert child.identify(again).name == "SUPERSEDES"
    child.happened(PresenceEvent.SILENCE)
    assert child.identify(other).name == "SUPERSEDES"
