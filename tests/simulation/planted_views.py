"""Faults planted where sessions, tombstones, views and refusals are dealt with.

Each gives what it changes, as those of `planted` do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from relay.core import (
    accepting,
    children,
    content,
    downlink,
    edge,
    freshness,
    inbox,
    sweeping,
    tombstones,
    uplink,
)
from relay.core.book import is_delta
from schemas import wire
from tests.simulation import space
from tests.simulation.planted import Patch
from tests.simulation.world import WALL_MS

# Which session counts.


def stay_though_superseded() -> Patch:
    """Go on, whatever newer session of the same node there is."""
    return uplink.Uplink, "_heard_otherwise", lambda *_: None


def grant_no_newer_epoch() -> Patch:
    """Grant a new session of a child the epoch that the one before it had."""
    honest = children.Child.answer

    def answer(self: Any, *given: Any) -> Any:
        former, said = self.epoch, honest(self, *given)
        self.epoch = former or self.epoch
        return wire.replace(said, epoch=self.epoch)

    return children.Child, "answer", answer


def hear_an_older_session() -> Patch:
    """Take each heartbeat for one of the session in force."""
    return downlink.Downlink, "_is_of_no_session", lambda *_: False


# What was swept.


def read_on_over_what_was_swept() -> Patch:
    """Go on after the cursor, though tombstones before it were swept unread."""
    honest = inbox.Inbox.begin_session

    def begin(self: Any, message: Any) -> int:
        return honest(self, wire.replace(message, swept_through=0))

    return inbox.Inbox, "begin_session", begin


def sweep_unanswered() -> Patch:
    """Sweep tombstones whether the child has answered for them or not."""
    return tombstones.Tombstones, "_is_old", lambda *_: True


def sweep_no_tombstones() -> Patch:
    """Keep tombstones until they are answered for, however old they are."""
    return tombstones.Tombstones, "_is_old", lambda *_: False


def sweep_at_first_sight() -> Patch:
    """Sweep content as soon as one sweep finds no way to it."""
    honest = sweeping.Sweeper._sweep

    def sweep(self: Any, marked: Any) -> None:
        self.suspects = frozenset(self._state.content.held)
        honest(self, marked)

    return sweeping.Sweeper, "_sweep", sweep


def sweep_no_content() -> Patch:
    """Look for content that nothing leads to, and leave it."""
    return sweeping.Sweeper, "_sweep", lambda self, _marked: self._end()


# What is shown.


def never_say_withheld() -> Patch:
    """Say nothing of mail that the index lists and the mailbox lacks."""
    return freshness.Freshness, "_look_at_mail", lambda _self: None


def never_say_outdated() -> Patch:
    """Take the mailbox for whole if it holds some version of what the index lists."""
    return freshness, "OUTDATED", ""


def never_say_stale() -> Patch:
    """Say nothing of a view that is old."""
    return freshness.Freshness, "_look_at_index", lambda _self: None


def measure_by_the_wall_clock() -> Patch:
    """Measure how old a view is by a clock that people may put back."""
    honest = freshness.Freshness._look_at_index

    def look(self: Any) -> None:
        state, now = self._state, self._state.now
        state.now = replace(now, seconds=(now.wall_ms - WALL_MS) / 1000)
        try:
            honest(self)
        finally:
            state.now = now

    return freshness.Freshness, "_look_at_index", look


def any_index_is_fresh() -> Patch:
    """Take an index for news as often as one looks at it."""
    honest = freshness.Freshness._look_at_index

    def look(self: Any) -> None:
        self._generation = 0
        honest(self)

    return freshness.Freshness, "_look_at_index", look


def wait_for_the_end_for_ever() -> Patch:
    """Say nothing of a mailbox that comes to no end."""
    return freshness, "UNREAD", ""


def take_an_older_index() -> Patch:
    """Take any index that is shown, also one that is older than the one held."""
    honest = inbox._against

    def against(held: Any, known: Any) -> Any:
        return inbox.Take(held) if held.kind == "index" else honest(held, known)

    return inbox, "_against", against


def remember_without_an_index() -> Patch:
    """Believe what is newer than the index before one is shown in this session."""
    return inbox.Inbox, "has_memory", property(lambda self: self.remembers)


def show_by_chunks() -> Patch:
    """Take chunks of the index that was kept for an index that is shown."""
    honest = accepting.Accepting.index_arrived

    def arrived(self: Any, owner: str) -> None:
        own = self._state.inbox
        own.index_came = max(own.index_came, self._state.index.generation)
        honest(self, owner)

    return accepting.Accepting, "index_arrived", arrived


# What cannot be applied.


def ask_at_once() -> Patch:
    """Ask again for content as soon as it could not be had."""
    return content, "RETRY_MAX_SECONDS", 0.0


def silence_is_absence() -> Patch:
    """Call content missing when nobody answered for it."""
    honest = content.Content._missed
    return (
        content.Content,
        "_missed",
        lambda self, want, now, **_: honest(self, want, now, unheard=False),
    )


def one_refusal_stops_all() -> Patch:
    """Do nothing else at a cluster before the first thing to do is done."""
    honest = space.plan
    return space, "plan", lambda *given, **more: honest(*given, **more)[:1]


def drop_what_a_refusal_concerns() -> Patch:
    """Let go of what is held under a key when something under it is refused."""
    honest = uplink.Uplink._judge

    def judge(self: Any, event: Any, *read: Any) -> None:
        refused, known = self._state.refused, self._state.held.get(event.key)
        honest(self, event, *read)
        if self._state.refused > refused and is_delta(known):
            self._accepting._vanish(known)

    return uplink.Uplink, "_judge", judge


def let_go_before_the_new_is_here() -> Patch:
    """Want nothing of a placement while its new content is on its way."""
    return edge.Assignment, "in_force", property(lambda self: self.entries or ())


# What is counted, and begun.


def begin_what_is_not_meant() -> Patch:
    """Keep the body of what was answered for as gone, to begin it when it matches again."""
    return accepting, "bare_of", lambda held: held


def count_who_is_on_the_move() -> Patch:
    """Count a destination also where its record does not say that it hangs."""
    honest = edge.Edge.summary

    def summary(self: Any, key: Any, now_ms: int) -> Any:
        path, self.path = self.path, self.profile.path if self.profile else self.path
        try:
            return honest(self, key, now_ms)
        finally:
            self.path = path

    return edge.Edge, "summary", summary
