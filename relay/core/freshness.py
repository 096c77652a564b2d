"""A parent that withholds the index, or mail that it lists, is noticed, and said upward.

Measured by the node's own monotonic clock: the centre renews its index every 10 minutes, and edges
get it as often, so one who was shown no newer one for 20 minutes is shown an old view. So is one
whose mailbox does not come to an end. Tombstones and bare heads are in no digest, but the index
tells of them: what it does not list goes by that alone, and of what it lists in a newer version the
mailbox must hold that one, with body or without.
"""

from __future__ import annotations

from relay.core.effects import Noted
from relay.core.state import OUTDATED, STALE, UNREAD, WITHHELD, State
from schemas.identity import MailKey

STALE_AFTER_SECONDS = 1200.0
LOOK_SECONDS = 60.0


class Freshness:
    """Whether one node's view is fresh, and its children's."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._generation = 0
        self._since = state.now.seconds
        self._look_at = state.now.seconds + LOOK_SECONDS
        self._calm = state.now.seconds
        self._missing: dict[MailKey, str] = {}
        self._shown: list[tuple[float, int]] = []

    def deadline(self) -> float:
        return self._look_at

    def tick(self) -> None:
        """Look, if it is time."""
        state = self._state
        if self._look_at > state.now.seconds:
            return
        self._look_at = state.now.seconds + LOOK_SECONDS
        self._look_at_children()
        if not state.is_root:
            self._look_at_index()
            self._look_at_mail()

    def _look_at_index(self) -> None:
        state, now = self._state, self._state.now.seconds
        if state.index.generation > self._generation:
            self._generation, self._since = state.index.generation, now
        if state.inbox.calm:
            self._calm = now
        old = UNREAD if now - self._calm >= STALE_AFTER_SECONDS else ""
        old = STALE if now - self._since >= STALE_AFTER_SECONDS else old
        if old == state.old_view:
            return
        state.old_view = old
        detail = old.partition(": ")[2] if old else "a newer index came"
        state.out.append(Noted("StaleView" if old else "FreshView", "index", detail))
        for held in state.deltas():
            state.touch(held.key)

    def _look_at_mail(self) -> None:
        """Two looks in a row: a parent that lost its memory writes again within a minute."""
        state = self._state
        if not state.inbox.calm:
            return
        missing = self._lacking()
        withheld = {key: why for key, why in missing.items() if key in self._missing}
        self._missing, former, state.withheld = missing, state.withheld, withheld
        for key in former.keys() ^ withheld.keys():
            state.touch(key)
        for key in sorted(withheld.keys() - former.keys()):
            name = state.held[key].record.source.name
            state.out.append(Noted("Withheld", name, withheld[key].partition(": ")[2]))

    def _lacking(self) -> dict[MailKey, str]:
        """What the mailbox lacks of the placements that are in force here, and how."""
        state, lacking = self._state, {}
        for held in state.deltas():
            if not held.has_content or held.key in state.unmeant:
                continue
            listed = state.index.listed(held.key)
            if held.key not in state.inbox.terms:
                lacking[held.key] = WITHHELD
            elif isinstance(listed, int) and listed > held.generation:
                lacking[held.key] = OUTDATED
        return lacking

    def _look_at_children(self) -> None:
        """A child in session that shows an index older than what was here 20 minutes ago."""
        state, now = self._state, self._state.now.seconds
        self._shown.append((now, state.index.generation))
        while len(self._shown) > 1 and self._shown[1][0] <= now - STALE_AFTER_SECONDS:
            self._shown.pop(0)
        at, generation = self._shown[0]
        if at > now - STALE_AFTER_SECONDS:
            return
        for name, child in state.children.items():
            silent = not child.epoch or child.silent_since_ms is not None
            behind = not silent and child.index_shown < generation
            if behind and not child.behind:
                state.out.append(Noted("ChildStale", name, "it shows an index of 20 minutes ago"))
            child.behind = behind
