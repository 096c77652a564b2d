"""The session: how a child asks to be heard, and how its parent tells who is there.

Both sides are tables of transitions; a pair that is not in its table cannot be, and raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from schemas.reports.link import Hello
from schemas.reports.states import NEVER_JOINED

HELLO_SECONDS = 30.0
HELLO_RETRY_SECONDS, HELLO_RETRY_MAX_SECONDS = 1.0, 30.0
SILENT_AFTER_SECONDS = 3 * HELLO_SECONDS
STOPPED_RETRY_SECONDS = 60.0
CATCHING_UP = "catching up"


class SessionState(Enum):
    """A child's session, as the child sees it."""

    # There is no way to the parent.
    UNLINKED = auto()
    # It said hello, and was not welcomed in this link yet.
    ASKING = auto()
    WELCOMED = auto()
    # Another run has its place: it does nothing, and asks again now and then.
    STOPPED = auto()


class SessionEvent(Enum):
    LINKED = auto()
    UNLINKED = auto()
    WELCOME = auto()
    STOP = auto()
    # The parent is another run than the one that welcomed.
    PARENT_RESTARTED = auto()


SESSION: dict[tuple[SessionState, SessionEvent], SessionState] = {
    (SessionState.UNLINKED, SessionEvent.LINKED): SessionState.ASKING,
    (SessionState.UNLINKED, SessionEvent.UNLINKED): SessionState.UNLINKED,
    (SessionState.ASKING, SessionEvent.LINKED): SessionState.ASKING,
    (SessionState.ASKING, SessionEvent.UNLINKED): SessionState.UNLINKED,
    (SessionState.ASKING, SessionEvent.WELCOME): SessionState.WELCOMED,
    (SessionState.ASKING, SessionEvent.STOP): SessionState.STOPPED,
    (SessionState.ASKING, SessionEvent.PARENT_RESTARTED): SessionState.ASKING,
    (SessionState.WELCOMED, SessionEvent.LINKED): SessionState.ASKING,
    (SessionState.WELCOMED, SessionEvent.UNLINKED): SessionState.UNLINKED,
    (SessionState.WELCOMED, SessionEvent.WELCOME): SessionState.WELCOMED,
    (SessionState.WELCOMED, SessionEvent.STOP): SessionState.STOPPED,
    (SessionState.WELCOMED, SessionEvent.PARENT_RESTARTED): SessionState.ASKING,
    (SessionState.STOPPED, SessionEvent.LINKED): SessionState.ASKING,
    (SessionState.STOPPED, SessionEvent.UNLINKED): SessionState.UNLINKED,
    (SessionState.STOPPED, SessionEvent.WELCOME): SessionState.WELCOMED,
    (SessionState.STOPPED, SessionEvent.STOP): SessionState.STOPPED,
    (SessionState.STOPPED, SessionEvent.PARENT_RESTARTED): SessionState.ASKING,
}


class ParentSession:
    """The child's side: when to say hello, and what state the session is in."""

    def __init__(self) -> None:
        self.state = SessionState.UNLINKED
        # When the next hello is due, in monotonic seconds; None while there is no link.
        self.due: float | None = None
        self._attempts = 0

    @property
    def welcomed(self) -> bool:
        return self.state is SessionState.WELCOMED

    def happened(self, event: SessionEvent, now: float) -> None:
        """Go to the state that follows; a hello is due at once where the session begins anew."""
        former, self.state = self.state, SESSION[self.state, event]
        match self.state:
            case SessionState.UNLINKED:
                self.due = None
            case SessionState.ASKING:
                if event is not SessionEvent.PARENT_RESTARTED or former is not SessionState.ASKING:
                    self._attempts = 0
                    self.due = now
            case SessionState.WELCOMED:
                self.due = now + HELLO_SECONDS if former is not self.state else self.due
            case SessionState.STOPPED:
                self.due = now + STOPPED_RETRY_SECONDS

    def hurry(self, now: float) -> None:
        """Say the next hello now, if there is a session to say it in."""
        if self.state is SessionState.WELCOMED:
            self.due = now

    def hello_sent(self, now: float) -> None:
        """A hello was said: when the next one is due."""
        match self.state:
            case SessionState.ASKING:
                delay = min(HELLO_RETRY_SECONDS * 2**self._attempts, HELLO_RETRY_MAX_SECONDS)
                self._attempts += 1
                self.due = now + delay
            case SessionState.STOPPED:
                self.due = now + STOPPED_RETRY_SECONDS
            case SessionState.UNLINKED:
                self.due = None
            case SessionState.WELCOMED:
                self.due = now + HELLO_SECONDS


class Presence(Enum):
    """A child, as its parent sees it; only what one IN_STEP reports counts."""

    # It was added, and no program ever ran as it.
    NEVER_JOINED = auto()
    # Not heard of for three hellos.
    SILENT = auto()
    # Its last run ended in good order.
    LEFT = auto()
    # It is there, and what it reports does not reflect its mailbox yet.
    CATCHING_UP = auto()
    IN_STEP = auto()


class ChildStatus(NamedTuple):
    """How it is with a child, in its parent's words for people."""

    # Since when it is silent or has left, ms since 1970.
    silent_since_ms: int | None
    left: bool
    in_session: bool
    joined: bool = True
    # Whether what it reports reflects its mailbox.
    in_step: bool = True

    @property
    def word(self) -> str:
        """The same in a word or two."""
        if not self.joined:
            return NEVER_JOINED
        if self.silent_since_ms is not None:
            return "stopped" if self.left else "unreachable"
        if not self.in_session:
            return "connecting"
        return "up" if self.in_step else CATCHING_UP


WORDS = ("up", CATCHING_UP, "connecting", "unreachable", "stopped", NEVER_JOINED)
"""All that `ChildStatus.word` says."""


class PresenceEvent(Enum):
    # A hello of a run that is not the present one.
    NEW_RUN = auto()
    # Anything of the present run.
    HEARD = auto()
    # Its progress reached what its mailbox ended with when it came back.
    CAUGHT_UP = auto()
    # Its reports were lost, or it did not reach in time what was written to it.
    FELL_BEHIND = auto()
    SILENCE = auto()
    FAREWELL = auto()


PRESENCE: dict[tuple[Presence, PresenceEvent], Presence] = {
    **{(state, PresenceEvent.NEW_RUN): Presence.CATCHING_UP for state in Presence},
    (Presence.SILENT, PresenceEvent.HEARD): Presence.CATCHING_UP,
    (Presence.LEFT, PresenceEvent.HEARD): Presence.LEFT,
    (Presence.CATCHING_UP, PresenceEvent.HEARD): Presence.CATCHING_UP,
    (Presence.IN_STEP, PresenceEvent.HEARD): Presence.IN_STEP,
    (Presence.CATCHING_UP, PresenceEvent.CAUGHT_UP): Presence.IN_STEP,
    (Presence.IN_STEP, PresenceEvent.CAUGHT_UP): Presence.IN_STEP,
    (Presence.CATCHING_UP, PresenceEvent.FELL_BEHIND): Presence.CATCHING_UP,
    (Presence.IN_STEP, PresenceEvent.FELL_BEHIND): Presence.CATCHING_UP,
    (Presence.CATCHING_UP, PresenceEvent.SILENCE): Presence.SILENT,
    (Presence.IN_STEP, PresenceEvent.SILENCE): Presence.SILENT,
    (Presence.CATCHING_UP, PresenceEvent.FAREWELL): Presence.LEFT,
    (Presence.IN_STEP, PresenceEvent.FAREWELL): Presence.LEFT,
    (Presence.SILENT, PresenceEvent.FAREWELL): Presence.LEFT,
}


class Identity(Enum):
    """What a hello is to the run that has the child's place."""

    SAME = auto()
    SUPERSEDES = auto()
    # Another home's, while the present one is heard of: told to stop.
    SECOND = auto()


@dataclass(slots=True)
class ChildSession:
    """The parent's side: which run of a child has its place, and whether it is heard of."""

    # When anything of the present run was heard last, in monotonic seconds.
    heard: float
    presence: Presence
    run: str = ""
    home: str = ""
    # The run that lost the place last: while the present one is there it does not get it back.
    superseded: str = ""
    # The run whose key is void: what it said before that may come later still.
    void: str = ""
    # Since when it is silent or has left, ms since 1970, for people.
    since_ms: int | None = None
    # When its last word was said, if that was to a former run of the parent; 0 if nobody knows.
    former_ms: int | None = None

    @property
    def is_there(self) -> bool:
        return self.presence in (Presence.CATCHING_UP, Presence.IN_STEP)

    @property
    def is_in_step(self) -> bool:
        return self.presence is Presence.IN_STEP

    @property
    def standing(self) -> ChildStatus:
        """The same for people."""
        left, joined = self.presence is Presence.LEFT, self.presence is not Presence.NEVER_JOINED
        return ChildStatus(self.since_ms, left, bool(self.run), joined, self.is_in_step)

    def identify(self, hello: Hello) -> Identity:
        """A run of the same home supersedes at once, one of another only who is not there."""
        if hello.run == self.run:
            return Identity.SAME
        if hello.run == self.superseded and self.is_there:
            return Identity.SECOND
        if self.run and self.is_there and hello.home != self.home:
            return Identity.SECOND
        return Identity.SUPERSEDES

    def begin(self, hello: Hello, now: float, former_ms: int | None = None) -> None:
        """Give the child's place to the run that says this, or said it to a former run."""
        self.superseded, self.run, self.home = self.run, hello.run, hello.home
        self.heard, self.since_ms, self.former_ms = now, None, former_ms
        self.happened(PresenceEvent.NEW_RUN)

    def end(self) -> None:
        """The run that has the place came by a key that is void: the next has it at once."""
        self.void, self.run, self.home = self.run, "", ""

    def ended(self, hello: Hello) -> bool:
        """Whether a run says this whose key is void."""
        return bool(self.void) and hello.run == self.void

    def happened(self, event: PresenceEvent) -> bool:
        """Go to the state that follows; whether it is another."""
        former, self.presence = self.presence, PRESENCE[self.presence, event]
        return former is not self.presence
