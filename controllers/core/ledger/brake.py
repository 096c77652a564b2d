"""Removals that follow from an edit, and that are large, wait for a person's word.

Nobody named what goes: a selector or a label says something else, and much is not meant any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controllers.core.ledger.weighing import Confirmations, Loss
from relay.objects.stored_object import timestamp
from schemas.records.placements import short_title
from schemas.values.identity import MailKey

GATHER_MS = 5_000
"""So long after one edit the next counts as part of it: `kubectl label --all` is many."""


@dataclass(slots=True)
class Brake:
    """Which placements hold what an edit takes of them, since when, and for how long.

    Who starts again counts anew: a removal never goes sooner for that. Edits that follow each other
    closely count as one.
    """

    confirmed: Confirmations = field(default_factory=Confirmations)
    # What is held, and since when, in ms since 1970.
    held: dict[MailKey, tuple[Loss, int]] = field(default_factory=dict)
    # When what is held goes by itself.
    due: dict[MailKey, int] = field(default_factory=dict)
    # Holds nothing that was not held before: a change is tried, and is to be told whole.
    tries: bool = False
    _accepted: set[MailKey] = field(default_factory=set)
    # What went at once, as it was little, and when.
    _went: dict[MailKey, tuple[Loss, int]] = field(default_factory=dict)

    def trial(self) -> Brake:
        """The same of its own, to try a change on."""
        return Brake(held=dict(self.held), tries=True)

    def accept(self, placement: MailKey) -> None:
        """Let go what is held of a placement now."""
        if placement in self.held:
            self._accepted.add(placement)

    def let_go(self, placement: MailKey) -> None:
        """Take it that nothing of a placement is to be held."""
        self.held.pop(placement, None)
        self.due.pop(placement, None)
        self._accepted.discard(placement)

    def withholds(self, placement: MailKey, loss: Loss, grace: float | None, now_ms: int) -> bool:
        """Whether a loss waits; `grace` says for how many seconds, None until it is accepted."""
        known = self.held.get(placement)
        if self.tries:
            return known is not None and known[0] == loss
        accepted = placement in self._accepted
        self._accepted.discard(placement)
        grown = known is None or loss.copies > known[0].copies
        # What grows is another removal: nobody knew of it when the time began.
        since = now_ms if known is None or grown else known[1]
        over = grace is not None and now_ms >= since + grace * 1000
        goes = self._is_little(placement, loss, now_ms) or over or (accepted and not grown)
        goes = goes or self.confirmed.covers(placement, loss.copies, now_ms)
        if goes:
            self.let_go(placement)
            return False
        self.held[placement] = loss, since
        self.due.pop(placement, None)
        if grace is not None:
            self.due[placement] = since + int(grace * 1000)
        return True

    def _is_little(self, placement: MailKey, loss: Loss, now_ms: int) -> bool:
        """Whether a loss is no large one, with what went just before."""
        went, at = self._went.get(placement, (Loss(), 0))
        total = loss + went if now_ms < at + GATHER_MS else loss
        if total.is_large:
            return False
        if loss.copies:
            lately = {k: it for k, it in self._went.items() if now_ms < it[1] + GATHER_MS}
            self._went = {**lately, placement: (total, now_ms)}
        return True

    def goes_at(self, placement: MailKey, name: str, said: str) -> int | None:
        """When what is said to be held goes by itself; None if never, or if more is said."""
        due = self.due.get(placement)
        return due if due is not None and said == self.message(placement, name) else None

    def message(self, placement: MailKey, name: str) -> str:
        """What is held of a placement, and what to do."""
        due, (loss, _) = self.due.get(placement), self.held[placement]
        until = f", at {timestamp(due)} by itself" if due is not None else ""
        remedy = f"put the edit back, or let them go with `leafcast accept {short_title(name)}`"
        return f"an edit takes away {loss}{until}; {remedy}"
