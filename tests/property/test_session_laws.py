"""A child gets a session, however heartbeats and answers were lost, doubled and mixed up before."""

from hypothesis import given
from hypothesis import strategies as st

from relay.core.effects import ResetMail, SendHeartbeat, SendSession
from relay.core.events import HeartbeatArrived, LinkChanged, SessionArrived, Tick
from schemas.reports import Heartbeat, SessionMessage, decode, encode, greeting
from schemas.wire import replace
from tests.unit.test_epochs import Link

QUIET_ROUNDS = 4
"""Heartbeats until a run is in session: one asks, one shows that the parent began once more."""
SECONDS = st.sampled_from((0.25, 2.0, 30.0))
PICK = st.integers(0, 1 << 16)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("link", "greet", "start")), st.just(0)),
        st.tuples(st.just("tick"), SECONDS),
        st.tuples(st.sampled_from(("up", "down", "double_up", "double_down", "lose")), PICK),
    ),
    max_size=40,
)


class Way:
    """One run of a child, its parent, and what is on its way between them, in no order.

    Beside each message is how often the link had come up when the child said what led to it.
    """

    def __init__(self, *, knows_questions=True):
        self.link = Link("/emea")
        self.child = self.link.run("one")
        self.knows_questions = knows_questions
        self.links = 0
        self.up, self.down = [], []

    @property
    def parent_run(self):
        return self.link.parent._state.config.incarnation

    def step(self, what, pick):
        match what:
            case "link":
                self.links += 1
                self._said(LinkChanged(up=True))
            case "tick":
                self.link.now += pick
                self._said(Tick())
            case "greet":
                self.down.append((None, greeting(self.parent_run)))
            case "start":
                self.link.parent = self.link.start_parent()
            case "lose" if on_way := self.up or self.down:
                on_way.pop(pick % len(on_way))
            case "up" | "double_up" if self.up:
                self._hear(*self._take(self.up, pick, twice=what != "up"))
            case "down" | "double_down" if self.down:
                self._answered(*self._take(self.down, pick, twice=what != "down"))

    def quiet(self):
        """All that was on its way comes, the last first; then nothing is lost for some rounds."""
        while self.up or self.down:
            self.step("up" if self.up else "down", len(self.up or self.down) - 1)
        for _ in range(QUIET_ROUNDS):
            self.step("tick", 30.0)
            while self.up or self.down:
                self.step("up" if self.up else "down", 0)

    def _take(self, on_way, pick, *, twice):
        at = pick % len(on_way)
        return on_way[at] if twice else on_way.pop(at)

    def _said(self, event):
        for effect in self.child.handle(event, self.link.instant):
            if isinstance(effect, SendHeartbeat):
                self.up.append((self.links, effect.data))

    def _hear(self, links, data):
        if not self.knows_questions:
            data = encode(replace(decode(Heartbeat, data), question=0))
        heard = HeartbeatArrived(self.link.path.name, data)
        for effect in self.link.parent.handle(heard, self.link.instant):
            if isinstance(effect, SendSession):
                self.down.append((links, effect.data))

    def _answered(self, links, data):
        began = not self.child.own_state()["epoch"]
        for effect in self.child.handle(
            SessionArrived(decode(SessionMessage, data)), self.link.instant
        ):
            if isinstance(effect, SendHeartbeat):
                self.up.append((self.links, effect.data))
            if isinstance(effect, ResetMail) and began and self.knows_questions:
                assert links == self.links, "it begins with what it asked over a link of before"


@given(STEPS, st.booleans())
def test_a_child_gets_a_session_whatever_was_lost_doubled_and_mixed_up(steps, knows_questions):
    way = Way(knows_questions=knows_questions)
    way.step("link", 0)
    for what, pick in steps:
        way.step(what, pick)
    way.quiet()
    mine, known = way.child.own_state(), way.link.parent._state.children[way.link.path.name]
    assert mine["epoch"] == known.epoch > 0
    assert way.child._state.inbox.incarnation == way.parent_run


def test_a_parent_that_greets_more_often_than_answers_come_is_answered_by_a_session():
    """So greets a centre that reads its ledger back, each child that it has not heard of."""
    way = Way()
    way.step("link", 0)
    way.step("lose", 0)
    for _ in range(3):
        way.step("greet", 0)
        way.step("down", 0)
    assert len(way.up) == 3
    way.step("up", 0)
    way.step("greet", 0)
    way.step("down", 1)
    way.step("down", 0)
    assert way.child.own_state()["epoch"] == way.link.parent._state.children["emea"].epoch > 0
